// Sums over rows that a component is responsible for: of y - mean, and of its squares.

// Rows whose sums are formed in T before they are added in float64: short enough for float32, and for the first cache.
constexpr size_t run_rows = 64;

// Rows of one chunk with a share in one component.
template <class T> struct Chosen {
    size_t count;
    int *row;
    T *share;  // or its root
};

// Row by row to a panel of columns (tile.h), centred and times the root of the share: the products of that with itself are
// the weighted squares. The sums of share times row are formed on the way.
template <class T, size_t nv>
inline void pack_chosen(const T *y, size_t columns, const T *mean, const int *row, const T *root, size_t count, T *to, double *sums) {
    using V = Vec<T>;
    constexpr size_t L = lanes<T>;
    V centre[nv], sum[nv] = {};
    FW_UNROLL(4)
    for (size_t v = 0; v < nv; ++v) centre[v] = load<V>(mean + v * L);
    for (size_t i = 0; i < count; ++i) {
        const T *from = y + size_t(row[i]) * columns;
        const V factor = broadcast(root[i]);
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
inline void pack_width(size_t width, const T *y, size_t columns, const T *mean, const int *row, const T *root, size_t count, T *to,
                       double *sums) {
    if (width == nv * lanes<T>) return pack_chosen<T, nv>(y, columns, mean, row, root, count, to, sums);
    if constexpr (nv > 1) pack_width<T, nv - 1>(width, y, columns, mean, row, root, count, to, sums);
}

// `sums` is padded like the panels; `out` holds blocks of the upper triangle (scatter.h), `zeros` one block of nothing.
template <class T>
void weigh_full(const T *y, size_t columns, const T *mean, const Chosen<T> &chosen, const Panels<T> &panels, T *packed,
                const T *zeros, double *sums, double *out) {
    constexpr size_t full = Panels<T>::full, size = full * full;
    for (size_t from = 0; from < chosen.count; from += run_rows) {
        const size_t count = least(run_rows, chosen.count - from);
        for (size_t p = 0; p < panels.count; ++p)
            pack_width<T>(panels.width(p), y + panels.column(p), columns, mean + panels.column(p), chosen.row + from,
                          chosen.share + from, count, packed + panels.place(p) * run_rows, sums + panels.place(p));
        for (size_t q = 0; q < panels.count; ++q) {
            const T *right = packed + panels.place(q) * run_rows;
            double *column = out + q * (q + 1) / 2 * size;
            for (size_t p = 0; p < q; ++p)
                beside<T>(packed + panels.place(p) * run_rows, panels.width(p), panels.columns(p), right, count, zeros,
                          column + p * size);
            diagonal<T>(right, right, panels.width(q), panels.columns(q), count, zeros, column + q * size);
        }
    }
}

// Some vectors of columns on their own, and their squares if wanted.
template <class T, size_t nv, bool squares>
inline void weigh_vectors(const T *y, size_t columns, const T *mean, const int *row, const T *share, size_t count, double *sums,
                          double *out) {
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
void weigh_columns(const T *y, size_t d, size_t columns, const T *mean, const Chosen<T> &chosen, double *sums, double *out) {
    constexpr size_t L = lanes<T>, wide = 4;
    for (size_t from = 0; from < chosen.count; from += run_rows) {
        const size_t count = least(run_rows, chosen.count - from);
        const int *row = chosen.row + from;
        const T *share = chosen.share + from;
        size_t f = 0;
        for (; f + wide * L <= d; f += wide * L)
            weigh_vectors<T, wide, squares>(y + f, columns, mean + f, row, share, count, sums + f, out + f);
        for (; f < d; f += L)
            weigh_vectors<T, 1, squares>(y + f, columns, mean + f, row, share, count, sums + f, out + f);
    }
}
