// Rows that are read a group at a time, less a pivot, and what else all moments of rows have in common.
#pragma once

constexpr size_t group = 8;       // rows processed together; their sum is formed in T and added in float64
constexpr size_t pivot_rows = 32;

// Rounds `value` to a multiple of about `spread` / 256. If the pivot had more bits, x - pivot would be rounded in
// float32 in the same direction for most x. Such errors do not average out; they would shift the mean by about 1e-8
// of the spread.
inline float round_to_spread(double value, double spread, float) {
    unsigned long long bits;
    __builtin_memcpy(&bits, &spread, sizeof bits);
    bits &= 0x7ff0000000000000;  // the power of two below it
    __builtin_memcpy(&spread, &bits, sizeof bits);
    const double shift = spread * 0x1.8p44;  // its last bit is worth spread / 256
    return float((value + shift) - shift);
}
inline double round_to_spread(double value, double, double) { return value; }

// The weighted median of each column over a sample of rows spread over the block, in the dtype of x. A mean would do for
// most data, but one far row in the sample takes it away from all others, and products about such a pivot lose digits; a
// median is within a standard deviation or two of the mean whatever the data. The row with the largest weight is in the
// sample, in case it outweighs all others. Rows with weight 0 are skipped: their values must not matter.
template <class In> void find_weighted_pivot(const In *x, const double *w, size_t n, size_t d, In *pivot) {
    size_t heaviest = 0, count = 0, rows[pivot_rows + 2];
    for (size_t i = 1; i < n; ++i)
        if (w[i] > w[heaviest]) heaviest = i;
    rows[count++] = heaviest;
    for (size_t i = 0; i < n; i += n / pivot_rows + 1)
        if (i != heaviest && w[i] != 0) rows[count++] = i;
    double total = 0;
    for (size_t i = 0; i < count; ++i) total += w[rows[i]];
    for (size_t j = 0; j < d; ++j) {
        double values[pivot_rows + 2], weights[pivot_rows + 2], below = 0, spread = 0;
        for (size_t i = 0; i < count; ++i) {
            const double value = double(x[rows[i] * d + j]), weight = w[rows[i]];
            size_t at = i;
            for (; at > 0 && values[at - 1] > value; --at) values[at] = values[at - 1], weights[at] = weights[at - 1];
            values[at] = value, weights[at] = weight;
        }
        size_t middle = 0;
        while (middle + 1 < count && (below += weights[middle]) < total / 2) ++middle;
        for (size_t i = 0; i < count; ++i) spread += weights[i] * __builtin_fabs(values[i] - values[middle]);
        pivot[j] = round_to_spread(values[middle], spread / total, In());
    }
}

// The same without weights, for a vector of columns at a time: sorting values one by one took longer than reading the block.
template <class In> void find_plain_pivot(const In *x, size_t n, size_t d, In *pivot) {
    using V = Vec<In>;
    using D = Vec<double>;
    constexpr size_t L = lanes<In>;
    const size_t step = n / pivot_rows + 1, count = (n + step - 1) / step, middle = (count - 1) / 2;
    for (size_t first = 0; first < d; first += L) {
        const size_t width = least(L, d - first);
        V sorted[pivot_rows];
        for (size_t i = 0; i < count; ++i) {
            const In *from = x + i * step * d + first;
            V value = {};
            if (width == L) value = load<V>(from);
            else __builtin_memcpy(&value, from, width * sizeof(In));
            for (size_t at = 0; at < i; ++at) {
                const V other = sorted[at];
                sorted[at] = value < other ? value : other;
                value = value < other ? other : value;
            }
            sorted[i] = value;
        }
        for (size_t l = 0; l < width; l += lanes<double>) {
            const D centre = load_as<double>((const In *)(sorted + middle) + l);
            D spread = {};
            for (size_t i = 0; i < count; ++i) {
                const D gap = load_as<double>((const In *)(sorted + i) + l) - centre;
                spread += gap < 0 ? -gap : gap;
            }
            for (size_t e = 0; e < lanes<double> && l + e < width; ++e)
                pivot[first + l + e] = round_to_spread(centre[e], spread[e] / double(count), In());
        }
    }
}

template <class In> void find_pivot(const In *x, const double *w, size_t n, size_t d, In *pivot) {
    if (w) find_weighted_pivot(x, w, n, d, pivot);
    else find_plain_pivot(x, n, d, pivot);
}

// A matrix of rows that is read `group` rows at a time. Vectors may extend past the end of a row (the extra lanes are
// never used) but not past the end of the array: groups near the end are first copied to `stage`. Missing rows are
// filled with the pivot, so that they become zero.
template <class In> struct Rows {
    const In *x;
    size_t length, d, reach;  // number of values; columns; columns loaded, including padding
    const In *pivot;
    In *stage;

    const In *at(size_t row, size_t &step) const {
        if ((row + group - 1) * d + reach <= length) {
            step = d;
            return x + row * d;
        }
        step = reach;
        for (size_t k = 0; k < group; ++k)
            for (size_t j = 0; j < reach; ++j) {
                const size_t from = (row + k) * d + j;
                stage[k * reach + j] = j < d && from < length ? x[from] : pivot[j];
            }
        return stage;
    }
};

// With a large offset a mean needs more digits than a double has, or differences between the means of blocks would be
// lost. It is stored as the rounded value and, `step` entries further on, the rounding error (Knuth's TwoSum).
inline void store_two_parts(double a, double b, double *mean, size_t step) {
    const double sum = a + b, back = sum - a;
    mean[0] = sum;
    mean[step] = (a - (sum - back)) + (b - back);
}

// Replaces a sum of squares that underflowed, so that a column that varies never looks constant.
constexpr double least_positive = 0x1p-1074;

inline double total_weight(const double *w, size_t n) {
    if (!w) return double(n);
    double total = 0;
    for (size_t i = 0; i < n; ++i) total += w[i];
    return total;
}

inline bool zero_if_empty(double total, size_t d, double *mean, double *out, size_t size) {
    if (total > 0 && d > 0) return false;
    for (size_t j = 0; j < 2 * d; ++j) mean[j] = 0;
    for (size_t j = 0; j < size; ++j) out[j] = 0;
    return true;
}
