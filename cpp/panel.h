// Rows in lanes: a panel holds `panel_rows` rows as [feature][row], and a tile multiplies it with a few targets.

#if FW_BYTES == 64
constexpr size_t panel_vectors = 3, panel_targets = 8;  // 24 of 32 registers accumulate
#elif FW_BYTES == 32
constexpr size_t panel_vectors = 2, panel_targets = 6;  // 12 of 16
#elif defined(__aarch64__)
constexpr size_t panel_vectors = 4, panel_targets = 4;
#else
constexpr size_t panel_vectors = 2, panel_targets = 4;
#endif

template <class T> constexpr size_t panel_rows = panel_vectors * lanes<T>;

// Features are multiplied in stretches of this many, so that a panel's part stays in the first cache and a sum in T
// is never longer than that.
constexpr size_t stretch = 192;

// Unit roundoff of T, and a bound on |computed - true| of a score, in units of it: the length of the longest chain of
// additions, and a few more for the roundings of row and target themselves.
template <class T> constexpr double unit = sizeof(T) == 4 ? 0x1p-24 : 0x1p-53;
// More than what is lost where products underflow.
template <class T> constexpr T tiny = sizeof(T) == 4 ? T(0x1p-110) : T(0x1p-900);
inline double chain(size_t d) { return double(least(d, stretch) + d / stretch + 10); }

template <class T> struct LaneInt;
template <> struct LaneInt<float> { using type = int; };
template <> struct LaneInt<double> { using type = long long; };
template <class T> using Ints = Vec<typename LaneInt<T>::type>;

template <class V> inline V larger(V a, V b) { return a > b ? a : b; }
template <class V> inline V smaller(V a, V b) { return a < b ? a : b; }

// One step of a transposition in registers: the off-diagonal quarters of size `h` trade places.
template <class T, size_t h, size_t... lane>
inline void trade(Vec<T> &a, Vec<T> &b, std::index_sequence<lane...>) {
    constexpr size_t L = lanes<T>;
    const Vec<T> low = __builtin_shufflevector(a, b, int(lane & h ? L + lane - h : lane)...);
    b = __builtin_shufflevector(a, b, int(lane & h ? L + lane : lane + h)...);
    a = low;
}

template <class T, size_t h> inline void transpose_step(Vec<T> *v) {
    FW_UNROLL(16)
    for (size_t i = 0; i < lanes<T>; ++i)
        if (!(i & h)) trade<T, h>(v[i], v[i + h], std::make_index_sequence<lanes<T>>{});
    if constexpr (h > 1) transpose_step<T, h / 2>(v);
}

// A stretch of rows, given by address, to a panel, as y; their squared lengths are added up on the way. Whole vectors are
// loaded, so there must be something to read up to the next multiple of a vector's length behind each row, and behind the
// pivot.
template <class T>
void pack_panel_rows(const T *const *rows, size_t from, size_t depth, const T *pivot, T scale, T *panel, T *squares) {
    using V = Vec<T>;
    constexpr size_t L = lanes<T>, N = panel_rows<T>;
    V sums[panel_vectors] = {};
    if (from)
        for (size_t v = 0; v < panel_vectors; ++v) sums[v] = load<V>(squares + v * L);
    for (size_t j = 0; j < depth; j += L) {
        const V p = load<V>(pivot + from + j);
        const size_t width = least(L, depth - j);
        for (size_t v = 0; v < panel_vectors; ++v) {
            V y[L];
            FW_UNROLL(16)
            for (size_t i = 0; i < L; ++i) y[i] = load<V>(rows[v * L + i] + from + j) * scale - p;
            transpose_step<T, L / 2>(y);
            V sum = sums[v];
            T *to = panel + j * N + v * L;
            if (width == L) {
                FW_UNROLL(16)
                for (size_t i = 0; i < L; ++i) {
                    store(to + i * N, y[i]);
                    sum += y[i] * y[i];
                }
            } else {
                FW_UNROLL(16)
                for (size_t i = 0; i < L; ++i) {
                    if (i >= width) break;
                    store(to + i * N, y[i]);
                    sum += y[i] * y[i];
                }
            }
            sums[v] = sum;
        }
    }
    for (size_t v = 0; v < panel_vectors; ++v) store(squares + v * L, sums[v]);
}

// Every second lane of two vectors.
template <class T, size_t... lane>
inline void part(Vec<T> a, Vec<T> b, Vec<T> &even, Vec<T> &odd, std::index_sequence<lane...>) {
    even = __builtin_shufflevector(a, b, int(2 * lane)...);
    odd = __builtin_shufflevector(a, b, int(2 * lane + 1)...);
}

// The same for a whole panel of pairs that lie one after the other.
template <class T> inline void pack_pairs(const T *x, const T *pivot, T scale, T *panel, T *squares) {
    using V = Vec<T>;
    constexpr size_t L = lanes<T>, N = panel_rows<T>;
    FW_UNROLL(4)
    for (size_t v = 0; v < panel_vectors; ++v) {
        V first, second;
        part<T>(load<V>(x + 2 * v * L), load<V>(x + 2 * v * L + L), first, second, std::make_index_sequence<L>{});
        first = first * scale - pivot[0];
        second = second * scale - pivot[1];
        store(panel + v * L, first);
        store(panel + N + v * L, second);
        store(squares + v * L, first * first + second * second);
    }
}

// sum[c][v] += x' c over `depth` features.
template <class T, size_t nc>
inline void multiply(const T *x, const T *c, size_t depth, Vec<T> (&sum)[nc][panel_vectors]) {
    using V = Vec<T>;
    constexpr size_t L = lanes<T>, N = panel_rows<T>;
    FW_UNROLL(2)
    for (size_t j = 0; j < depth; ++j) {
        V row[panel_vectors];
        FW_UNROLL(4)
        for (size_t v = 0; v < panel_vectors; ++v) row[v] = load<V>(x + v * L);
        FW_UNROLL(8)
        for (size_t i = 0; i < nc; ++i) {
            const V one = broadcast(c[i]);
            FW_UNROLL(4)
            for (size_t v = 0; v < panel_vectors; ++v) sum[i][v] += one * row[v];
        }
        x += N;
        c += nc;
    }
}

// The scores y'c - |c|^2 / 2 of a panel of rows with `nc` targets from `slot` on, given to `take(slot, scores)` once they are
// complete. `partial` holds what earlier stretches of features gave.
template <class T, size_t nc, class Take>
__attribute__((noinline)) void score_targets(const T *panel, const Targets<T> &t, size_t slot, T *partial, size_t from, Take take) {
    using V = Vec<T>;
    constexpr size_t L = lanes<T>, N = panel_rows<T>;
    const size_t depth = least(stretch, t.d - from);
    V sum[nc][panel_vectors];
    FW_UNROLL(8)
    for (size_t i = 0; i < nc; ++i) {
        const V start = from ? V{} : broadcast(t.minus_half[slot + i]);
        FW_UNROLL(4)
        for (size_t v = 0; v < panel_vectors; ++v) sum[i][v] = start;
    }
    multiply<T, nc>(panel, t.packed + slot * t.d + from * nc, depth, sum);
    if (from) {
        FW_UNROLL(8)
        for (size_t i = 0; i < nc; ++i) {
            FW_UNROLL(4)
            for (size_t v = 0; v < panel_vectors; ++v) sum[i][v] += load<V>(partial + i * N + v * L);
        }
    }
    if (from + depth < t.d) {
        FW_UNROLL(8)
        for (size_t i = 0; i < nc; ++i) {
            FW_UNROLL(4)
            for (size_t v = 0; v < panel_vectors; ++v) store(partial + i * N + v * L, sum[i][v]);
        }
        return;
    }
    take(slot, sum);
}

template <class T, size_t nc, class Take>
inline void score_width(size_t width, const T *panel, const Targets<T> &t, size_t slot, T *partial, size_t from,
                        Take take) {
    if (width == nc) return score_targets<T, nc>(panel, t, slot, partial, from, take);
    if constexpr (nc > 1) score_width<T, nc - 1>(width, panel, t, slot, partial, from, take);
}

// The same for all targets of some groups: `wanted(group)` says of which. `desk` has the rows; each stretch of them is brought
// to its panel when it is due, and is still in the first cache when it is multiplied.
template <class T, class Desk, class Wanted, class Take>
inline void score_groups(Desk &desk, const Targets<T> &t, Wanted wanted, Take take) {
    constexpr size_t N = panel_rows<T>;
    const T *panel = desk.panel;
    T *partial = desk.partial;
    for (size_t from = 0; from < t.d; from += stretch) {
        desk.bring(from, t);
        size_t slot = 0;
        const unsigned char *width = t.widths;
        for (size_t g = 0; g < t.groups; ++g) {
            const size_t end = size_t(t.ends[g]);
            const unsigned char *last = width + t.panels[g];
            if (wanted(g)) {
                for (; width < last; slot += *width++)
                    score_width<T, panel_targets>(*width, panel, t, slot, partial + slot * N, from,
                                                  [&](size_t at, auto &sum) { take(g, at, sum); });
            }
            width = last;
            slot = end;
        }
    }
}

// The best two scores of each row of a panel, and whose the best is (its slot).
template <class T> struct Leaders {
    Vec<T> best[panel_vectors], second[panel_vectors];
    Ints<T> slot[panel_vectors];

    void clear() {
        for (size_t v = 0; v < panel_vectors; ++v) {
            best[v] = second[v] = Vec<T>{} - T(__builtin_inff());
            slot[v] = Ints<T>{};
        }
    }
    template <size_t nc> inline void see(size_t first, Vec<T> (&score)[nc][panel_vectors]) {
        FW_UNROLL(4)
        for (size_t v = 0; v < panel_vectors; ++v) {
            Vec<T> top = best[v], next = second[v];
            Ints<T> whose = slot[v];
            FW_UNROLL(8)
            for (size_t i = 0; i < nc; ++i) {
                const Vec<T> s = score[i][v];
                const auto won = s > top;
                next = larger(next, smaller(top, s));
                top = larger(top, s);
                whose = won ? Ints<T>{} + typename LaneInt<T>::type(first + i) : whose;
            }
            best[v] = top;
            second[v] = next;
            slot[v] = whose;
        }
    }
};
