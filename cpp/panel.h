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

// Rows given by address to a panel, as y; their squared lengths on the way.
template <class T>
void pack_panel_rows(const T *const *rows, size_t d, const T *pivot, T scale, T *panel, T *squares) {
    using V = Vec<T>;
    constexpr size_t L = lanes<T>, N = panel_rows<T>;
    V sums[panel_vectors] = {};
    size_t j = 0;
    for (; j + L <= d; j += L) {
        const V p = load<V>(pivot + j);
        for (size_t v = 0; v < panel_vectors; ++v) {
            V y[L];
            FW_UNROLL(16)
            for (size_t i = 0; i < L; ++i) y[i] = load<V>(rows[v * L + i] + j) * scale - p;
            transpose_step<T, L / 2>(y);
            V sum = sums[v];
            FW_UNROLL(16)
            for (size_t i = 0; i < L; ++i) {
                store(panel + (j + i) * N + v * L, y[i]);
                sum += y[i] * y[i];
            }
            sums[v] = sum;
        }
    }
    for (; j < d; ++j) {
        const T p = pivot[j];
        T *to = panel + j * N;
        for (size_t i = 0; i < N; ++i) to[i] = rows[i][j] * scale - p;
        for (size_t v = 0; v < panel_vectors; ++v) {
            const V y = load<V>(to + v * L);
            sums[v] += y * y;
        }
    }
    for (size_t v = 0; v < panel_vectors; ++v) store(squares + v * L, sums[v]);
}

// The same for a whole panel of short rows that lie one after the other: with their length known to the compiler it
// finds the shuffles itself.
template <class T, size_t d>
inline void pack_short_rows(const T *x, const T *pivot, T scale, T *panel, T *squares) {
    constexpr size_t N = panel_rows<T>;
    T sums[N] = {};
    FW_UNROLL(8)
    for (size_t j = 0; j < d; ++j) {
        const T p = pivot[j];
        for (size_t i = 0; i < N; ++i) {
            const T y = x[i * d + j] * scale - p;
            panel[j * N + i] = y;
            sums[i] += y * y;
        }
    }
    __builtin_memcpy(squares, sums, sizeof sums);
}

template <class T, size_t d = lanes<T> - 1>
inline bool pack_short(size_t length, const T *x, const T *pivot, T scale, T *panel, T *squares) {
    if (length == d) {
        pack_short_rows<T, d>(x, pivot, scale, panel, squares);
        return true;
    }
    if constexpr (d > 1) return pack_short<T, d - 1>(length, x, pivot, scale, panel, squares);
    return false;
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

// Targets of one group in panels of at most `panel_targets`, as equal as they can be.
struct Split {
    size_t panels, base, extra;
    explicit Split(size_t count) {
        panels = (count + panel_targets - 1) / panel_targets;
        base = panels ? count / panels : 0;
        extra = panels ? count % panels : 0;
    }
    size_t width(size_t p) const { return base + (p < extra); }
};

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
    multiply<T, nc>(panel + from * N, t.packed + slot * t.d + from * nc, depth, sum);
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

// The same for all targets of some groups: `wanted(group)` says of which.
template <class T, class Wanted, class Take>
inline void score_groups(const T *panel, const Targets<T> &t, T *partial, Wanted wanted, Take take) {
    constexpr size_t N = panel_rows<T>;
    for (size_t from = 0; from < t.d; from += stretch) {
        size_t slot = 0;
        for (size_t g = 0; g < t.groups; ++g) {
            const size_t end = size_t(t.ends[g]);
            if (wanted(g)) {
                const Split split(end - slot);
                for (size_t p = 0; p < split.panels; ++p) {
                    const size_t width = split.width(p);
                    score_width<T, panel_targets>(width, panel, t, slot, partial + slot * N, from,
                                                  [&](size_t at, auto &sum) { take(g, at, sum); });
                    slot += width;
                }
            }
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
