// Copies rows, minus a pivot, into panels [panel][row][column of the panel], and adds up the columns.

#include "rows.h"

template <class V> inline V sum_of_group(const V *y) {
    return ((y[0] + y[1]) + (y[2] + y[3])) + ((y[4] + y[5]) + (y[6] + y[7]));
}

// Columns are indexed here with the padding of the first panel included.
template <class T> struct Packed {
    T *plain, *weighted;  // identical if there are no weights
    size_t stride;        // capacity of each panel, in rows
    double *sums;         // of w (x - pivot), by column
    T *bits_seen;              // bitwise OR of all shifted values: zero for a column that equals its pivot everywhere
};

template <class T> struct BitsOf;
template <> struct BitsOf<float> { using type = unsigned; };
template <> struct BitsOf<double> { using type = unsigned long long; };
template <class T> using Bits = Vec<typename BitsOf<T>::type>;

template <class T, class In, size_t nv>
inline void pack_panel(const In *from, size_t step, const In *pivots, const double *w, size_t place,
                       size_t to, const Packed<T> &packed) {
    using V = Vec<T>;
    constexpr size_t L = lanes<T>, width = nv * L;
    const size_t start = place * packed.stride + to * width;
    FW_UNROLL(4)
    for (size_t v = 0; v < nv; ++v) {
        T *plain = packed.plain + start + v * L, *weighted = packed.weighted + start + v * L;
        const size_t j = place + v * L;
        const V pivot = load_as<T>(pivots + v * L);
        Bits<T> bits_seen = (Bits<T>)load<V>(packed.bits_seen + j);
        V y[group];
        FW_UNROLL(8)
        for (size_t k = 0; k < group; ++k) {
            y[k] = load_as<T>(from + k * step + v * L) - pivot;
            store(plain + k * width, y[k]);
            if (!w || w[k] > 0) bits_seen |= (Bits<T>)y[k];
        }
        store(packed.bits_seen + j, (V)bits_seen);
        if (w) {
            FW_UNROLL(8)
            for (size_t k = 0; k < group; ++k) {
                y[k] *= broadcast(T(w[k]));
                store(weighted + k * width, y[k]);
            }
        }
        add_to<T>(packed.sums + j, sum_of_group(y));
    }
}

template <class T, class In, size_t nv = tile_vectors>
inline void pack_first(size_t width, const In *from, size_t step, const In *pivots, const double *w,
                       size_t to, const Packed<T> &packed) {
    if (width == nv * lanes<T>) return pack_panel<T, In, nv>(from, step, pivots, w, 0, to, packed);
    if constexpr (nv > 1) pack_first<T, In, nv - 1>(width, from, step, pivots, w, to, packed);
}

// Packs a group of rows into all panels. The padding of the first panel receives columns of the next one; it is never
// used.
template <class T, class In>
void pack_group(const Rows<In> &rows, size_t row, const double *w, size_t to, const Panels<T> &panels,
                const Packed<T> &packed) {
    size_t step;
    const In *from = rows.at(row, step);
    pack_first<T>(panels.first, from, step, rows.pivot, w, to, packed);
    for (size_t p = 1; p < panels.count; ++p)
        pack_panel<T, In, tile_vectors>(from + panels.column(p), step, rows.pivot + panels.column(p), w,
                                        panels.place(p), to, packed);
}
