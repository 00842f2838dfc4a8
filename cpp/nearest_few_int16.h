// The nearest of a few targets for rows with many columns, as integers of 16 bits: columns are in the lanes, as in nearest_few.h,
// and rows are read one after the other. Transposing rows of many columns would take longer than the products, in part because
// so many lines of memory are in use at a time.

#if defined(__x86_64__) && FW_BYTES == 64
constexpr size_t few_int16_columns = 32;  // a vector of them

class FewInt16 {
    using U = Vec<unsigned>;
    static constexpr size_t L = lanes<int>, R = few_tile_rows, G = L / R;
    const Int16Targets &t;
    const size_t d, k, tiles, stride;
    int *const y;            // R rows, rounded
    unsigned *const parts;   // by target: G vectors of sums that are still to be folded
    float *const lengths;    // G vectors of squares that are still to be folded
    IntVec mask[2];          // of the last columns of a row
    const float *rows[R], *next[R];  // rows to compare; rows to fetch meanwhile

    __attribute__((always_inline)) inline IntVec rounded(const float *from, size_t j) const {
        return nearest_integers(load<Vec<float>>(from + j) * t.row_scale - load<Vec<float>>(t.row_pivot + j));
    }
    // The columns from j on of a row; fewer than a vector of them unless `whole`.
    template <bool whole> __attribute__((always_inline)) inline IntVec take_columns(const float *row, size_t j) const {
        if constexpr (whole) return packed_int16(rounded(row, j), rounded(row, j + L));
        const IntVec low = rounded(row, j) & mask[0];
        return packed_int16(low, j + L < d ? rounded(row, j + L) & mask[1] : IntVec{});
    }
    template <size_t nc, bool first, bool whole>
    __attribute__((always_inline)) inline void multiply(size_t j, const int *c, IntVec (&sum)[nc][R], IntVec (&squares)[R]) const {
        IntVec row[R];
        FW_UNROLL(4)
        for (size_t r = 0; r < R; ++r) {
            if constexpr (first) {
                row[r] = take_columns<whole>(rows[r], j);
                store(y + r * stride + j / 2, row[r]);
                add_products(squares[r], row[r], row[r]);
                __builtin_prefetch(next[r] + j, 0, 2);
                __builtin_prefetch(next[r] + j + L, 0, 2);
            } else {
                row[r] = load<IntVec>(y + r * stride + j / 2);
            }
        }
        FW_UNROLL(8)
        for (size_t i = 0; i < nc; ++i) {
            IntVec one = load<IntVec>(c + i * stride + j / 2);
            settle(one);  // one load for all rows
            FW_UNROLL(4)
            for (size_t r = 0; r < R; ++r) add_products(sum[i][r], row[r], one);
        }
    }
    template <size_t nc, bool first> __attribute__((noinline)) void multiply_all(size_t slot, unsigned *to, float *to_lengths) const {
        IntVec sum[nc][R] = {};
        Vec<float> total[R] = {};
        const int *c = t.packed + slot * stride;
        size_t j = 0;
        const auto some = [&](auto whole) __attribute__((always_inline)) {
            IntVec squares[R] = {};
            multiply<nc, first, whole>(j, c, sum, squares);
            if constexpr (first) {  // at once: more of them could exceed 32 bits
                FW_UNROLL(4)
                for (size_t r = 0; r < R; ++r) total[r] += to_float(squares[r]);
            }
        };
        for (; j + few_int16_columns <= d; j += few_int16_columns) some(std::true_type());
        if (j < d) some(std::false_type());
        FW_UNROLL(8)
        for (size_t i = 0; i < nc; ++i) {
            U folded[R];
            FW_UNROLL(4)
            for (size_t r = 0; r < R; ++r) folded[r] = (U)sum[i][r];
            store(to + i * G * L, fold_lanes<unsigned, R>(folded));
        }
        if constexpr (first) store(to_lengths, fold_lanes<float, R>(total));
    }
    template <bool first, size_t nc = few_tile_targets>
    inline void multiply_width(size_t width, size_t slot, unsigned *to, float *to_lengths) const {
        if (width == nc) return multiply_all<nc, first>(slot, to, to_lengths);
        if constexpr (nc > 1) multiply_width<first, nc - 1>(width, slot, to, to_lengths);
    }
    template <class T> static inline Vec<T> folded(const T *from) {
        Vec<T> v[G];
        FW_UNROLL(4)
        for (size_t g = 0; g < G; ++g) v[g] = load<Vec<T>>(from + g * L);
        return fold_lanes<T, G, G / 2>(v);
    }

public:
    static size_t bytes(const Targets<float> &t, const Int16Targets &rounded) {
        return R * rounded.stride * sizeof(int) + (t.k + 1) * G * L * sizeof(int);
    }
    FewInt16(const Targets<float> &of, const Int16Targets &rounded, char *memory)
        : t(rounded), d(of.d), k(of.k), tiles((of.k + few_tile_targets - 1) / few_tile_targets), stride(rounded.stride),
          y((int *)memory), parts((unsigned *)(y + R * stride)), lengths((float *)(parts + k * G * L)) {
        for (size_t i = 0; i < 2 * L; ++i) mask[i / L][i % L] = i < d % few_int16_columns ? -1 : 0;
    }

    // The best two targets of a vector of rows, and the lengths of the rounded rows; the rows in `after` are fetched.
    void compare(const float *const *here, const float *const *after, BestOfChunks &found, Vec<float> &length) {
        FW_UNROLL(1)
        for (size_t g = 0; g < G; ++g) {
            for (size_t r = 0; r < R; ++r) rows[r] = here[r * G + g], next[r] = after[r * G + g];
            size_t done = 0;
            for (size_t tile = 0; tile < tiles; ++tile) {
                const size_t width = k / tiles + (tile < k % tiles);
                unsigned *to = parts + (done * G + g) * L;
                if (tile) multiply_width<false>(width, done, to, nullptr);
                else multiply_width<true>(width, done, to, lengths + g * L);
                done += width;
            }
        }
        BestInts best;
        for (size_t c = 0; c < k; ++c) {
            const U score = folded(parts + c * G * L) + unsigned(t.start[c]);
            best.take((IntVec)score, broadcast(int16_numbers.of[c]));
        }
        found.merge(0, best);
        length = square_roots(folded(lengths));
    }
};

// Writes the labels of rows up to the one whose number it returns, as nearest_int16.
inline size_t nearest_few_int16(const float *x, size_t n, const Targets<float> &t, ChangeLog<float> &log, AssignCounts &result) {
    constexpr size_t N = panel_rows<float>, L = lanes<float>;
    const Int16Targets rounded = *t.rounded;
    char *extra;
    PanelWorkspace<float> work(x, n, t, FewInt16::bytes(t, rounded), &extra);
    FewInt16 way(t, rounded, extra);
    Int16Labels labels(x, t, rounded, work, log, result);
    for (size_t first = 0; first < n && !labels.hopeless(); first += N) {
        const size_t count = least(N, n - first);
        work.use_rows_from(x + first * t.d, count, t);
        const float *after[L];
        for (size_t i = 0; i < L; ++i) after[i] = x + (first + N + i) * t.d;
        BestOfChunks found[panel_vectors];
        Vec<float> length[panel_vectors];
        FW_UNROLL(1)
        for (size_t v = 0; v < panel_vectors; ++v) {
            const float *const *here = work.rows + v * L;
            way.compare(here, v + 1 < panel_vectors ? here + L : after, found[v], length[v]);
        }
        labels.take(found, length, count);
    }
    return labels.finish();
}
#endif
