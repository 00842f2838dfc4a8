// Panels with rows in vector lanes: a panel stores `panel_rows` rows as [feature][row], and a register tile
// multiplies it by a few targets at a time.

#if FW_BYTES == 64
constexpr size_t panel_vectors = 3, panel_targets = 8;  // 24 of 32 registers are accumulators
#elif FW_BYTES == 32
constexpr size_t panel_vectors = 2, panel_targets = 6;  // 12 of 16
#elif defined(__aarch64__)
constexpr size_t panel_vectors = 4, panel_targets = 4;
#else
constexpr size_t panel_vectors = 2, panel_targets = 4;
#endif

template <class T> constexpr size_t panel_rows = panel_vectors * lanes<T>;

// Features are processed in stretches of at most this size, so that this part of a panel stays in the L1 cache and no sum
// in T is longer.
constexpr size_t feature_block = 192;

// Stretches of about equal length: a short last one would cost nearly as much as a long one.
inline size_t stretch_length(size_t d) {
    return d <= feature_block ? d : round_up((d + (d + feature_block - 1) / feature_block - 1) / ((d + feature_block - 1) / feature_block), 16);
}

// The unit roundoff of T. The error of a score is bounded by this times `longest_chain`: the longest chain of
// additions, plus a few for the rounding of the row and the target.
template <class T> constexpr double unit_roundoff = sizeof(T) == 4 ? 0x1p-24 : 0x1p-53;
// Exceeds what is lost when products underflow.
template <class T> constexpr T underflow_margin = sizeof(T) == 4 ? T(0x1p-110) : T(0x1p-900);
inline double longest_chain(size_t d) { return double(least(d, feature_block) + d / feature_block + 10); }

template <class T> struct LaneInt;
template <> struct LaneInt<float> { using type = int; };
template <> struct LaneInt<double> { using type = long long; };
template <class T> using Ints = Vec<typename LaneInt<T>::type>;

// Packs a stretch of features of some rows, given by address, into a panel as y, and adds up their squared lengths.
// Whole vectors are loaded, so memory must be readable up to the next multiple of the vector length past each row and
// past the pivot. If `observed`, missing cells become y = 0 (observed.h).
template <class T, bool observed = false>
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
            if constexpr (observed) {
                FW_UNROLL(16)
                for (size_t i = 0; i < L; ++i) y[i] = y[i] == y[i] ? y[i] : V{};
            }
            transpose<T>(y);
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

// Separates the even and the odd lanes of two vectors.
template <class T, size_t... lane>
inline void deinterleave(Vec<T> a, Vec<T> b, Vec<T> &even, Vec<T> &odd, std::index_sequence<lane...>) {
    even = __builtin_shufflevector(a, b, int(2 * lane)...);
    odd = __builtin_shufflevector(a, b, int(2 * lane + 1)...);
}

// The same for a whole panel of rows of 2 columns that are adjacent in memory.
template <class T> inline void pack_pairs(const T *x, const T *pivot, T scale, T *panel, T *squares) {
    using V = Vec<T>;
    constexpr size_t L = lanes<T>, N = panel_rows<T>;
    FW_UNROLL(4)
    for (size_t v = 0; v < panel_vectors; ++v) {
        V first, second;
        deinterleave<T>(load<V>(x + 2 * v * L), load<V>(x + 2 * v * L + L), first, second, std::make_index_sequence<L>{});
        first = first * scale - pivot[0];
        second = second * scale - pivot[1];
        store(panel + v * L, first);
        store(panel + N + v * L, second);
        store(squares + v * L, first * first + second * second);
    }
}

// Memory that the next panel, or the next stretch of this one, will need: fetched while this one is multiplied, since
// packing would wait for every line of it. Addresses past the end do no harm: nothing is loaded.
template <class T> struct Ahead {
    static constexpr size_t line = 64 / sizeof(T), N = panel_rows<T>;
    const T *next;         // the rows of the next panel, adjacent in memory; or null
    const T *const *rows;  // the rows of this panel
    size_t from;           // where the next stretch begins
    size_t jump;           // from a row of this panel to that of the next

    // What belongs to feature `j`: as much as a panel has for one feature. Always inlined: GCC takes a function that only
    // prefetches for one without effect, and drops calls of it.
    __attribute__((always_inline)) inline void fetch(size_t j) const {
        FW_UNROLL(4)
        for (size_t u = 0; u < N / line; ++u) {
            if (next) __builtin_prefetch(next + (j * (N / line) + u) * line, 0, 1);
            else __builtin_prefetch(rows[u * line + j % line] + jump + from + j / line * line, 0, 1);
        }
    }
};

// Which features' part of the memory ahead a tile fetches.
enum class Fetch { none, all, even, odd };

template <class T, size_t nc>
__attribute__((always_inline)) inline void multiply_feature(const T *x, const T *c, Vec<T> (&sum)[nc][panel_vectors]) {
    using V = Vec<T>;
    V row[panel_vectors];
    FW_UNROLL(4)
    for (size_t v = 0; v < panel_vectors; ++v) row[v] = load<V>(x + v * lanes<T>);
    FW_UNROLL(8)
    for (size_t i = 0; i < nc; ++i) {
        const V one = broadcast(c[i]);
        FW_UNROLL(4)
        for (size_t v = 0; v < panel_vectors; ++v) sum[i][v] += one * row[v];
    }
}

// sum[c][v] += x' c over `depth` features.
template <class T, size_t nc, Fetch how = Fetch::none>
inline void multiply(const T *x, const T *c, size_t depth, Vec<T> (&sum)[nc][panel_vectors], const Ahead<T> &ahead = {}) {
    constexpr size_t N = panel_rows<T>;
    size_t j = 0;
    for (; j + 2 <= depth; j += 2) {
        multiply_feature<T, nc>(x, c, sum);
        if constexpr (how == Fetch::all || how == Fetch::even) ahead.fetch(j);
        multiply_feature<T, nc>(x + N, c + nc, sum);
        if constexpr (how == Fetch::all || how == Fetch::odd) ahead.fetch(j + 1);
        x += 2 * N;
        c += 2 * nc;
    }
    if (j < depth) {
        multiply_feature<T, nc>(x, c, sum);
        if constexpr (how == Fetch::all || how == Fetch::even) ahead.fetch(j);
    }
}

// Computes the scores y'c - |c|^2 / 2 of a panel of rows for the `nc` targets starting at `slot`, and passes them to
// `take(slot, scores)` after the last stretch of features. `partial` holds the sums over earlier ones.
template <class T, size_t nc, Fetch how, class Take>
__attribute__((noinline)) void score_targets(const T *panel, const Targets<T> &t, size_t slot, T *partial, size_t from, size_t depth,
                          const Ahead<T> &ahead, Take take) {
    using V = Vec<T>;
    constexpr size_t L = lanes<T>, N = panel_rows<T>;
    V sum[nc][panel_vectors];
    FW_UNROLL(8)
    for (size_t i = 0; i < nc; ++i) {
        const V start = from ? V{} : broadcast(t.minus_half[slot + i]);
        FW_UNROLL(4)
        for (size_t v = 0; v < panel_vectors; ++v) sum[i][v] = start;
    }
    multiply<T, nc, how>(panel, t.packed + slot * t.d + from * nc, depth, sum, ahead);
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

template <class T, Fetch how, size_t nc, class Take>
inline void score_width(size_t width, const T *panel, const Targets<T> &t, size_t slot, T *partial, size_t from, size_t depth,
                        const Ahead<T> &ahead, Take take) {
    if (width == nc) return score_targets<T, nc, how>(panel, t, slot, partial, from, depth, ahead, take);
    if constexpr (nc > 1) score_width<T, how, nc - 1>(width, panel, t, slot, partial, from, depth, ahead, take);
}

// The same for all targets of the groups for which `wanted(group)` is true. `work` holds the rows; each stretch of
// features is packed just before it is used, so that it is still in the L1 cache.
template <class T, class Workspace, class Wanted, class Take>
inline void score_groups(Workspace &work, const Targets<T> &t, Wanted wanted, Take take) {
    constexpr size_t N = panel_rows<T>;
    const T *panel = work.panel;
    T *partial = work.partial;
    const size_t length = stretch_length(t.d);
    for (size_t from = 0; from < t.d; from += length) {
        const size_t depth = least(length, t.d - from);
        work.pack(from, depth, t);
        const Ahead<T> ahead = work.ahead(from + depth, t);
        size_t slot = 0, tile = 0;
        const unsigned char *width = t.widths;
        for (size_t g = 0; g < t.groups; ++g) {
            const size_t end = size_t(t.ends[g]);
            const unsigned char *last = width + t.panels[g];
            if (wanted(g)) {
                for (; width < last; slot += *width++, ++tile) {
                    const auto taken = [&](size_t at, auto &sum) {
                        work.correct(at, sum);
                        take(g, at, sum);
                    };
                    T *sums = partial + slot * N;
                    const size_t w = *width;
                    if (tile > 1) score_width<T, Fetch::none, panel_targets>(w, panel, t, slot, sums, from, depth, ahead, taken);
                    else if (tile) score_width<T, Fetch::odd, panel_targets>(w, panel, t, slot, sums, from, depth, ahead, taken);
                    else score_width<T, Fetch::even, panel_targets>(w, panel, t, slot, sums, from, depth, ahead, taken);
                }
            }
            width = last;
            slot = end;
        }
    }
}

// Which of a few scores is the best is written into their lowest bits, so that a maximum finds both.
constexpr size_t tag_bits = panel_targets > 8 ? 4 : 3;
static_assert(panel_targets <= size_t(1) << tag_bits);
// By how much that changes a score, relative to it.
template <class T> constexpr double tag_error = double((1 << tag_bits) - 1) * 2 * unit_roundoff<T>;

// The two best scores of each row of a panel, with tags, and the first slot of the tile that the best is in.
template <class T> struct BestTwo {
    using Int = typename LaneInt<T>::type;
    static constexpr Int tags = (1 << tag_bits) - 1;
    Vec<T> best[panel_vectors], second[panel_vectors];
    Ints<T> tile[panel_vectors];

    void clear() {
        for (size_t v = 0; v < panel_vectors; ++v) {
            best[v] = second[v] = Vec<T>{} - T(__builtin_inff());
            tile[v] = Ints<T>{};
        }
    }
    Ints<T> slot(size_t v) const { return tile[v] + ((Ints<T>)best[v] & tags); }

    template <size_t nc> inline void update(size_t first, Vec<T> (&score)[nc][panel_vectors]) {
        using V = Vec<T>;
        FW_UNROLL(4)
        for (size_t v = 0; v < panel_vectors; ++v) {
            V top = tagged(score[0][v], 0), next = V{} - T(__builtin_inff());
            FW_UNROLL(8)
            for (size_t i = 1; i < nc; ++i) {
                const V s = tagged(score[i][v], Int(i));
                next = i == 1 ? smaller(top, s) : larger(next, smaller(top, s));
                top = larger(top, s);
            }
            merge(v, first, top, next);
        }
    }
    // Takes in the two best of the targets from `first` on.
    inline void merge(size_t v, size_t first, Vec<T> top, Vec<T> next) {
        const Vec<T> before = best[v];
        const auto won = top > before;
        second[v] = larger(larger(second[v], next), smaller(before, top));
        best[v] = larger(before, top);
        tile[v] = won ? Ints<T>{} + Int(first) : tile[v];
    }
    // Two operations on purpose: where they could be one, it would occupy the units that multiply.
    static inline Vec<T> tagged(Vec<T> score, Int tag) {
        Ints<T> bits = (Ints<T>)score & ~tags;
        if (!tag) return (Vec<T>)bits;
        settle(bits);
        return (Vec<T>)(bits | tag);
    }
};
