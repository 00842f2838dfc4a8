// Sums of y - mean and of its squares or products, over rows weighted by the responsibility of a component.

// Number of rows whose sum is formed in T before it is added in float64: few enough for float32, and for the L1
// cache.
constexpr size_t rows_per_sum = 64;

// The rows of a chunk with a significant responsibility ("share") of one component.
template <class T> struct RowShares {
    size_t count;
    int *row;
    T *share;  // or its square root
};

// Packs rows into a panel of columns (tile.h), centred and multiplied by the square root of the share; products of
// the packed values are then weighted products. The sums of share times row are computed on the way.
template <class T, size_t nv>
inline void pack_rows_with_share(const T *y, size_t columns, const T *mean, const int *row, const T *root_share,
                                 size_t count, T *to, double *sums) {
    using V = Vec<T>;
    constexpr size_t L = lanes<T>;
    V centre[nv], sum[nv] = {};
    FW_UNROLL(4)
    for (size_t v = 0; v < nv; ++v) centre[v] = load<V>(mean + v * L);
    for (size_t i = 0; i < count; ++i) {
        const T *from = y + size_t(row[i]) * columns;
        const V factor = broadcast(root_share[i]);
        FW_UNROLL(4)
        for (size_t v = 0; v < nv; ++v) {
            const V value = (load<V>(from + v * L) - centre[v]) * factor;
            store(to + v * L, value);
            sum[v] += value * factor;
        }
        to += nv * L;
    }
    FW_UNROLL(4)
    for (size_t v = 0; v < nv; ++v) add_to<T>(sums + v * L, sum[v]);
}

template <class T, size_t nv = tile_vectors>
inline void pack_width(size_t width, const T *y, size_t columns, const T *mean, const int *row, const T *root_share,
                       size_t count, T *to, double *sums) {
    if (width == nv * lanes<T>) return pack_rows_with_share<T, nv>(y, columns, mean, row, root_share, count, to, sums);
    if constexpr (nv > 1) pack_width<T, nv - 1>(width, y, columns, mean, row, root_share, count, to, sums);
}

// `sums` is padded like the panels; `out` holds blocks of the upper triangle (scatter.h).
template <class T>
void add_weighted_products(const T *y, size_t columns, const T *mean, const RowShares<T> &shares, const Panels<T> &panels,
                           T *packed, double *sums, double *out) {
    constexpr size_t full = Panels<T>::full, size = full * full;
    for (size_t from = 0; from < shares.count; from += rows_per_sum) {
        const size_t count = least(rows_per_sum, shares.count - from);
        for (size_t p = 0; p < panels.count; ++p)
            pack_width<T>(panels.width(p), y + panels.column(p), columns, mean + panels.column(p), shares.row + from,
                          shares.share + from, count, packed + panels.place(p) * rows_per_sum, sums + panels.place(p));
        for (size_t q = 0; q < panels.count; ++q) {
            const T *right = packed + panels.place(q) * rows_per_sum;
            double *column = out + q * (q + 1) / 2 * size;
            for (size_t p = 0; p < q; ++p)
                off_diagonal<T>(packed + panels.place(p) * rows_per_sum, panels.width(p), panels.columns(p), right, count,
                                column + p * size);
            diagonal<T>(right, right, panels.width(q), panels.columns(q), count, column + q * size);
        }
    }
}

// Adds the weighted sums of a few vectors of columns and, if `squares`, those of their squares.
template <class T, size_t nv, bool squares>
inline void add_weighted_vectors(const T *y, size_t columns, const T *mean, const int *row, const T *share,
                                 size_t count, double *sums, double *out) {
    using V = Vec<T>;
    constexpr size_t L = lanes<T>;
    V centre[nv], sum[nv] = {}, square[nv] = {};
    FW_UNROLL(4)
    for (size_t v = 0; v < nv; ++v) centre[v] = load<V>(mean + v * L);
    for (size_t i = 0; i < count; ++i) {
        const T *from = y + size_t(row[i]) * columns;
        const V factor = broadcast(share[i]);
        FW_UNROLL(4)
        for (size_t v = 0; v < nv; ++v) {
            const V z = load<V>(from + v * L) - centre[v], value = z * factor;
            sum[v] += value;
            if constexpr (squares) square[v] += value * z;
        }
    }
    FW_UNROLL(4)
    for (size_t v = 0; v < nv; ++v) {
        add_to<T>(sums + v * L, sum[v]);
        if constexpr (squares) add_to<T>(out + v * L, square[v]);
    }
}

template <class T, bool squares>
void add_weighted_columns(const T *y, size_t d, size_t columns, const T *mean, const RowShares<T> &shares, double *sums,
                          double *out) {
    constexpr size_t L = lanes<T>, wide = 4;
    for (size_t from = 0; from < shares.count; from += rows_per_sum) {
        const size_t count = least(rows_per_sum, shares.count - from);
        const int *row = shares.row + from;
        const T *share = shares.share + from;
        size_t f = 0;
        for (; f + wide * L <= d; f += wide * L)
            add_weighted_vectors<T, wide, squares>(y + f, columns, mean + f, row, share, count, sums + f, out + f);
        for (; f < d; f += L)
            add_weighted_vectors<T, 1, squares>(y + f, columns, mean + f, row, share, count, sums + f, out + f);
    }
}
