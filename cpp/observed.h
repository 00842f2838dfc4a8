// Rows with missing cells, which are NaN. A row is compared with a target over the cells that it has: a missing cell
// becomes y = 0, and what the target's own square contributes there is given back:
//     sum over observed j of (y_j - c_j)^2  =  |y|^2 - 2 y'c + |c|^2 - sum over missing j of c_j^2.
// Where few cells are missing this costs little more than the complete product.

// One bit for each NaN in a vector.
template <class T> inline unsigned long long nan_bits(Vec<T> v) {
#if FW_BYTES == 64
    if constexpr (sizeof(T) == 4) return (unsigned short)__builtin_ia32_cmpps512_mask(v, v, 3, (unsigned short)-1, 4);
    else return (unsigned char)__builtin_ia32_cmppd512_mask(v, v, 3, (unsigned char)-1, 4);
#elif FW_BYTES == 32
    const Vec<T> is = (Vec<T>)(v != v);
    if constexpr (sizeof(T) == 4) return unsigned(__builtin_ia32_movmskps256(is));
    else return unsigned(__builtin_ia32_movmskpd256(is));
#else
    T values[lanes<T>];
    store(values, v);
    unsigned long long bits = 0;
    for (size_t i = 0; i < lanes<T>; ++i) bits |= (unsigned long long)(values[i] != values[i]) << i;
    return bits;
#endif
}

template <class V> inline V zero_if_nan(V v) { return v == v ? v : V{}; }

// Calls f(j) for each missing cell j of a row, in order; returns how many there are. If `padded`, memory is readable
// up to the next whole vector.
template <class T, bool padded, class F> inline size_t each_missing(const T *x, size_t d, F f) {
    constexpr size_t L = lanes<T>;
    size_t count = 0;
    for (size_t first = 0; first < d; first += 64) {  // one word for up to 64 columns: few branches per row
        const size_t width = least(64, d - first);
        unsigned long long word = 0;
        size_t j = 0;
        for (; padded ? j < width : j + L <= width; j += L) word |= nan_bits<T>(load<Vec<T>>(x + first + j)) << j;
        if constexpr (padded) {
            if (width < 64) word &= (1ull << width) - 1;
        } else {
            for (; j < width; ++j) word |= (unsigned long long)(x[first + j] != x[first + j]) << j;
        }
        count += size_t(__builtin_popcountll(word));
        for (; word; word &= word - 1) f(first + size_t(__builtin_ctzll(word)));
    }
    return count;
}

template <class T> inline bool nothing_observed(const T *x, size_t d) {
    for (size_t j = 0; j < d; ++j)
        if (x[j] == x[j]) return false;
    return true;
}

// Half the squares of the targets' coordinates at missing cells are added up in short runs, which bounds the error.
constexpr size_t missing_run = 64;

// The longest chain of additions in such a sum, plus a few for the rounding of the squares.
inline double missing_chain(size_t d) { return double(least(d, missing_run) + d / missing_run + 4); }

// The sums over the missing cells of a panel of rows: [slot][row], to be added to the scores.
template <class T> struct MissingSums {
    static constexpr size_t L = lanes<T>, N = panel_rows<T>;
    T *sums, *by_row;
    int *cells;
    bool any, empty;   // whether a row of this panel misses a cell, or has nothing but missing cells
    size_t counts[N];  // missing cells of each row

    static size_t bytes(const Targets<T> &t) {
        return round_up((t.padded * N + L * t.padded) * sizeof(T), 64) + round_up(t.d * sizeof(int), 64);
    }
    void place(char *memory, const Targets<T> &t) {
        sums = (T *)memory;
        by_row = sums + t.padded * N;
        cells = (int *)(memory + round_up((t.padded * N + L * t.padded) * sizeof(T), 64));
    }

    template <size_t nv> inline void add_cells(size_t count, const T *table, size_t step, T *to) const {
        Vec<T> total[nv] = {};
        for (size_t first = 0; first < count; first += missing_run) {
            const size_t end = least(count, first + missing_run);
            Vec<T> part[nv] = {};
            for (size_t i = first; i < end; ++i) {
                const T *from = table + size_t(cells[i]) * step;
                FW_UNROLL(4)
                for (size_t v = 0; v < nv; ++v) part[v] += load<Vec<T>>(from + v * L);
            }
            FW_UNROLL(4)
            for (size_t v = 0; v < nv; ++v) total[v] += part[v];
        }
        FW_UNROLL(4)
        for (size_t v = 0; v < nv; ++v) store(to + v * L, total[v]);
    }

    void find(const T *const *rows, const Targets<T> &t) {
        any = empty = false;
        const size_t K = t.padded;
        for (size_t v = 0; v < panel_vectors; ++v) {
            for (size_t i = 0; i < L; ++i) {
                size_t found = 0;
                each_missing<T, true>(rows[v * L + i], t.d, [&](size_t j) { cells[found++] = int(j); });
                counts[v * L + i] = found;
                any |= found > 0;
                empty |= found == t.d;
                T *to = by_row + i * K;
                size_t s = 0;
                for (; s + 4 * L <= K; s += 4 * L) add_cells<4>(found, t.half_squares + s, K, to + s);
                for (; s + 2 * L <= K; s += 2 * L) add_cells<2>(found, t.half_squares + s, K, to + s);
                for (; s < K; s += L) add_cells<1>(found, t.half_squares + s, K, to + s);
            }
            for (size_t s = 0; s < t.k; s += L) {
                Vec<T> tile[L];
                FW_UNROLL(16)
                for (size_t i = 0; i < L; ++i) tile[i] = load<Vec<T>>(by_row + i * K + s);
                transpose<T>(tile);
                FW_UNROLL(16)
                for (size_t i = 0; i < L; ++i) store(sums + (s + i) * N + v * L, tile[i]);
            }
        }
    }

    template <size_t nc> inline void add_to_scores(size_t slot, Vec<T> (&score)[nc][panel_vectors]) const {
        if (!any) return;
        FW_UNROLL(8)
        for (size_t i = 0; i < nc; ++i) {
            FW_UNROLL(4)
            for (size_t v = 0; v < panel_vectors; ++v) score[i][v] += load<Vec<T>>(sums + (slot + i) * N + v * L);
        }
    }
};
