// The scatter matrix about the mean: subtract a pivot, add up products of panels of columns, then shift from the
// pivot to the mean.

#include "arena.h"

// Maximum length of a sum in T; two panels of this many rows fit in L1. Rounding errors of a float32 sum do not average out
// if the data have only a few distinct values: then its relative error is up to a quarter of its length times 2^-24.
template <class T> constexpr size_t chunk_rows = sizeof(T) < sizeof(double) ? 64 : 128;
constexpr size_t block_rows = 768;  // maximum number of rows packed at a time,
constexpr size_t block_bytes = 3 << 20;  // and their maximum size,
constexpr size_t least_rows = 384;  // unless these are more: with fewer, many columns wait for the sums, which are in memory
constexpr size_t resident_bytes = 256 << 10;  // size of the right-hand panels that should stay in L2
constexpr size_t few_rows = 256;  // float32 blocks with fewer rows are summed in float64: errors would not average out

// The upper triangle of C, stored as contiguous blocks (panel by panel): adding to C in place would touch a different
// page for every row.
template <class T> struct Blocks {
    static constexpr size_t full = Panels<T>::full, size = full * full;
    double *base;
    size_t place(size_t p, size_t q) const { return (q * (q + 1) / 2 + p) * size; }
    double *at(size_t p, size_t q) const { return base + place(p, q); }
    static size_t total(size_t panels) { return panels * (panels + 1) / 2 * size; }
};

template <class In, class T> struct ScatterWorkspace {
    In *pivot, *stage;
    T *plain, *weighted, *bits_seen;
    double *sums;
    Blocks<T> blocks;

    ScatterWorkspace(Arena &arena, const Panels<T> &panels, size_t rows, bool has_weights) {
        const size_t padded = panels.padded();
        pivot = arena.take<In>(padded);
        stage = arena.take<In>(padded * group);
        sums = arena.take<double>(padded);
        bits_seen = arena.take<T>(padded);
        plain = arena.take<T>(padded * rows);
        weighted = has_weights ? arena.take<T>(padded * rows) : plain;
        blocks.base = arena.take<double>(blocks.total(panels.count));
    }
};

// Adds the products of two panels of rows to block (p, q), which is cleared if they are the first; `next` are the sums that
// come next.
template <class T>
void add_block(const Packed<T> &packed, const Panels<T> &panels, size_t rows, size_t p, size_t q,
               const Blocks<T> &blocks, bool first, const double *next, HeldSums<T> &held) {
    double *out = blocks.at(p, q);
    for (size_t i = 0; first && i < Blocks<T>::size; ++i) out[i] = 0;
    const size_t width = panels.width(p), used = panels.columns(p);
    const T *a = packed.weighted + panels.place(p) * packed.stride;
    const T *b = packed.plain + panels.place(q) * packed.stride;
    TileAhead<T> ahead{nullptr, nullptr, (const char *)next, held};
    for (size_t k = 0; k < rows; k += chunk_rows<T>) {
        const size_t depth = least(chunk_rows<T>, rows - k);
        const T *left = a + k * width, *right = b + k * Panels<T>::full;
        if (p == q) {
            diagonal<T>(left, b + k * width, width, used, depth, out);
            continue;
        }
        // Beyond the last chunk is the first of the next panel.
        ahead.left = (const char *)(left + depth * width), ahead.right = (const char *)(right + depth * Panels<T>::full);
        off_diagonal<T>(left, width, used, right, depth, out, ahead);
    }
}

// Adds the products of the packed rows. As many right-hand panels as fit in L2 are held there while
// all left-hand panels pass by.
template <class T>
void add_products(const Packed<T> &packed, const Panels<T> &panels, size_t rows, const Blocks<T> &blocks, bool first) {
    const size_t fit = resident_bytes / (rows * Panels<T>::full * sizeof(T)), together = fit ? fit : 1;
    HeldSums<T> held;
    for (size_t from = 0; from < panels.count; from += together) {
        const size_t to = least(panels.count, from + together);
        for (size_t p = 0; p < to; ++p)
            for (size_t q = p > from ? p : from; q < to; ++q) {
                const double *next = q + 1 < to ? blocks.at(p, q + 1) : blocks.at(p + 1, p + 1 > from ? p + 1 : from);
                add_block(packed, panels, rows, p, q, blocks, first, next, held);
            }
    }
    held.add_all();
}

// An upper triangle in a square matrix, or packed: its rows one after the other. Entry j of row i is row(i)[j], from j = i on.
template <class D> struct Triangle {
    D *base;
    size_t d;
    bool packed;
    size_t size() const { return packed ? d * (d + 1) / 2 : d * d; }
    D *row(size_t i) const { return base + (packed ? i * d - i * (i + 1) / 2 : i * d); }
};

// Converts products about the pivot to products about the mean, and writes the upper triangle of C. `scale`
// compensates for the rounding of the weights.
template <class T>
void centre_scatter(const Blocks<T> &blocks, const Panels<T> &panels, const double *shift, double weight, double scale,
                    const Triangle<double> &C) {
    // Block by block, which is how they lie in memory: rows of C from end to end would be in as many places as there are panels.
    for (size_t q = 0; q < panels.count; ++q)
        for (size_t p = 0; p <= q; ++p) {
            const double *row = blocks.at(p, q), *right = shift + panels.column(q);
            for (size_t i = 0; i < panels.columns(p); ++i, row += Panels<T>::full) {
                const double left = weight * shift[panels.column(p) + i];
                double *out = C.row(panels.column(p) + i) + panels.column(q);
                for (size_t j = q == p ? i : 0; j < panels.columns(q); ++j) out[j] = row[j] * scale - left * right[j];
                if (q == p && out[i] < 0) out[i] = 0;
            }
        }
}

// If short rows were placed side by side, the scatter matrix of the rows is the sum of the diagonal blocks.
template <class T> void unfold(double *block, double *sums, size_t d, size_t wide) {
    constexpr size_t full = Panels<T>::full;
    for (size_t b = d; b < wide; b += d)
        for (size_t i = 0; i < d; ++i) {
            for (size_t j = i; j < d; ++j) block[i * full + j] += block[(b + i) * full + b + j];
            sums[i] += sums[b + i];
        }
}

// Products of float32 values overflow and underflow early. The sums of squares show, with a safety margin, whether
// they did. Columns whose shifted values were all exactly zero are exempt.
inline bool in_range(const Blocks<float> &blocks, const Panels<float> &panels, const float *bits_seen, size_t n) {
    for (size_t p = 0; p < panels.count; ++p)
        for (size_t i = 0; i < panels.columns(p); ++i) {
            const double squares = blocks.at(p, p)[i * Panels<float>::full + i];
            unsigned bits;
            __builtin_memcpy(&bits, bits_seen + panels.place(p) + i, sizeof bits);
            if (!(squares <= 0x1p112) || (bits << 1 && squares < double(n) * 0x1p-92)) return false;  // -0 is zero, too
        }
    return true;
}
inline bool in_range(const Blocks<double> &, const Panels<double> &, const double *, size_t) { return true; }

inline bool weights_in_range(const double *w, size_t n) {
    for (size_t i = 0; w && i < n; ++i)
        if (!(w[i] == 0 || (w[i] >= 0x1p-20 && w[i] <= 0x1p20))) return false;
    return true;
}

// Returns false if the products are out of range for T; the caller then uses a wider type.
template <class T, class In>
bool scatter_in(const In *x, const double *w, size_t n, size_t d, double total, double *mean, const Triangle<double> &C) {
    // Short rows are placed side by side to fill a vector.
    const size_t fold = !w && 2 * d <= lanes<T> ? lanes<T> / d : 1;
    const size_t wide = fold * d, wide_rows = (n + fold - 1) / fold;
    const Panels<T> panels(wide);
    const size_t fit = block_bytes / (panels.padded() * sizeof(T)) / chunk_rows<T> * chunk_rows<T>;
    const size_t stride = least(least(block_rows, fit < least_rows ? least_rows : fit), round_up(wide_rows, group));

    Arena arena{nullptr, 0};
    ScatterWorkspace<In, T>(arena, panels, stride, w);
    arena = {(char *)scratch(arena.used), 0};
    const ScatterWorkspace<In, T> work(arena, panels, stride, w);
    find_pivot(x, w, n, d, work.pivot);
    for (size_t j = d; j < panels.padded(); ++j) work.pivot[j] = j < wide ? work.pivot[j - d] : In(0);
    for (size_t j = 0; j < panels.padded(); ++j) work.sums[j] = 0, work.bits_seen[j] = 0;

    const size_t reach = panels.count > 1 ? wide : panels.padded();
    const Rows<In> rows{x, n * d, wide, reach, work.pivot, work.stage};
    const Packed<T> packed{work.plain, work.weighted, stride, work.sums, work.bits_seen};
    double rounded_total = 0;  // of the weights rounded to T
    for (size_t from = 0; from < wide_rows; from += stride) {
        const size_t here = least(stride, wide_rows - from);
        for (size_t k = 0; k < here; k += group) {
            double weights[group];
            for (size_t g = 0; w && g < group; ++g) {
                weights[g] = from + k + g < n ? w[from + k + g] : 0;
                rounded_total += double(T(weights[g]));
            }
            pack_group(rows, from + k, w ? weights : nullptr, k, panels, packed);
        }
        add_products(packed, panels, round_up(here, group), work.blocks, from == 0);
    }
    if (!in_range(work.blocks, panels, work.bits_seen, n)) return false;

    if (fold > 1) unfold<T>(work.blocks.base, work.sums, d, wide);
    // All sums use the same weights rounded to T, so the mean is right if it is divided by their rounded total; the
    // products are rescaled.
    const double held = w ? rounded_total : total;
    for (size_t j = 0; j < d; ++j) {
        work.sums[j] = work.sums[j < panels.used ? j : j + panels.first - panels.used] / held;
        store_two_parts(double(work.pivot[j]), work.sums[j], mean + j, d);
    }
    centre_scatter(work.blocks, Panels<T>(d), work.sums, total, total / held, C);
    for (size_t j = 0; j < d; ++j) {
        bool varies = false;
        for (size_t copy = 0; copy < fold; ++copy) {
            const size_t c = copy * d + j;
            varies = varies || work.bits_seen[c < panels.used ? c : c + panels.first - panels.used] != 0;
        }
        if (varies && C.row(j)[j] == 0) C.row(j)[j] = least_positive;
    }
    return true;
}

double scatter_f32(const float *x, const double *w, size_t n, size_t d, double *mean, double *out, bool packed) {
    const double total = total_weight(w, n);
    const Triangle<double> C{out, d, packed};
    if (zero_if_empty(total, d, mean, out, C.size())) return total;
    if (n < few_rows || !weights_in_range(w, n) || !scatter_in<float>(x, w, n, d, total, mean, C))
        scatter_in<double>(x, w, n, d, total, mean, C);
    return total;
}

double scatter_f64(const double *x, const double *w, size_t n, size_t d, double *mean, double *out, bool packed) {
    const double total = total_weight(w, n);
    const Triangle<double> C{out, d, packed};
    if (!zero_if_empty(total, d, mean, out, C.size())) scatter_in<double>(x, w, n, d, total, mean, C);
    return total;
}

// The moments of the union of two sets of rows (Chan, Golub and LeVeque), with centres in two parts and upper
// triangles.
void merge_moments(const double *left, const double *left_scatter, double left_weight, const double *right,
                   const double *right_scatter, double right_weight, size_t d, double *centre, double *scatter,
                   bool packed) {
    const Triangle<const double> lefts{left_scatter, d, packed}, rights{right_scatter, d, packed};
    const Triangle<double> sums{scatter, d, packed};
    const double weight = left_weight + right_weight, share = right_weight / weight, factor = left_weight * share;
    double *delta = (double *)scratch(d * sizeof(double));
    for (size_t j = 0; j < d; ++j) {
        delta[j] = (right[j] - left[j]) + (right[d + j] - left[d + j]);
        double moved[2];
        store_two_parts(left[j], delta[j] * share, moved, 1);
        store_two_parts(moved[0], moved[1] + left[d + j], centre + j, d);
    }
    for (size_t i = 0; i < d; ++i) {
        const double *l = lefts.row(i), *r = rights.row(i);
        double *out = sums.row(i);
        const double here = factor * delta[i];
        for (size_t j = i; j < d; ++j) out[j] = l[j] + r[j] + here * delta[j];
        if (out[i] == 0 && delta[i] != 0) out[i] = least_positive;
    }
}
