// Mean, centred sum of squares and range of each column, in one sweep; sums in float64 throughout.

// The sums of a sweep, one entry per column. Short rows are placed side by side, so there may be several entries for one
// column, which are combined at the end.
template <class In> struct ColumnSums {
    double *sums, *squares;
    In *low, *high;
};

constexpr size_t sweep_bytes = 64;    // of a row that are processed together: a line of the cache
constexpr size_t sweep_ahead = 8192;  // bytes after the next group of rows that are fetched early

// Adds a group of rows, minus the pivot, to the sums and the sums of squares of each column, row by row in each column;
// how many lanes a vector has makes no difference. `weighted` and `ranged` are template parameters because of the
// compiler bug described in vec.h: with `w ? weights[k] * y : y`, where w is a pointer, the AVX-512 kernel for float32
// applied the weights to the first of every eight columns only and took the others with weight 1.
// Meanwhile what lies `ahead` is fetched into the second-level cache, line by line as it lies in memory. Processors foresee
// a single stream, but not a group of rows that are read side by side: without this the sweep took up to twice as long.
template <bool weighted, bool ranged, class In>
inline void add_group(const In *from, size_t step, const In *pivot, const Vec<double> *weights, size_t padded, const In *ahead,
                      const ColumnSums<In> &to) {
    using V = Vec<double>;
    using R = Vec<In>;
    constexpr size_t L = lanes<In>, D = lanes<double>, parts = L / D, line = sweep_bytes / sizeof(In);
    for (size_t unit = 0; unit < padded; unit += line) {
        FW_UNROLL(8)
        for (size_t k = 0; k < group; ++k) __builtin_prefetch(ahead + group * unit + k * line, 0, 2);
        for (size_t j = unit; j < unit + line; j += L) {
            V centre[parts], sum[parts], square[parts];
            R low = {}, high = {};
            if constexpr (ranged) low = load<R>(to.low + j), high = load<R>(to.high + j);
            FW_UNROLL(2)
            for (size_t p = 0; p < parts; ++p) {
                centre[p] = load_as<double>(pivot + j + p * D);
                sum[p] = load<V>(to.sums + j + p * D);
                square[p] = load<V>(to.squares + j + p * D);
            }
            FW_UNROLL(8)
            for (size_t k = 0; k < group; ++k) {
                const In *at = from + k * step + j;
                FW_UNROLL(2)
                for (size_t p = 0; p < parts; ++p) {
                    const V y = load_as<double>(at + p * D) - centre[p];
                    const V wy = weighted ? weights[k] * y : y;
                    sum[p] += wy;
                    square[p] += wy * y;
                }
                if constexpr (ranged) {
                    const R value = load<R>(at);
                    low = value < low ? value : low;
                    high = value > high ? value : high;
                }
            }
            FW_UNROLL(2)
            for (size_t p = 0; p < parts; ++p) {
                store(to.sums + j + p * D, sum[p]);
                store(to.squares + j + p * D, square[p]);
            }
            if constexpr (ranged) store(to.low + j, low), store(to.high + j, high);
        }
    }
}

// Extends the ranges of the first `count` entries by those of others, or by single values (then both are the same).
template <class In> inline void add_range(const In *low, const In *high, size_t count, const ColumnSums<In> &to) {
    for (size_t j = 0; j < count; ++j) {
        to.low[j] = low[j] < to.low[j] ? low[j] : to.low[j];
        to.high[j] = high[j] > to.high[j] ? high[j] : to.high[j];
    }
}

// `low` and `high`, d each, receive the minimum and maximum of each column over the rows with non-zero weight; infinity
// and -infinity if there are none.
template <class In>
double columns(const In *x, const double *w, size_t n, size_t d, double *mean, double *squares, In *low, In *high) {
    using V = Vec<double>;
    const double total = total_weight(w, n);
    for (size_t j = 0; j < d; ++j) low[j] = In(__builtin_inff()), high[j] = -In(__builtin_inff());
    if (zero_if_empty(total, d, mean, squares, d)) return total;
    // Short rows are placed side by side, so that vectors are full.
    const size_t fold = !w && 2 * d <= 64 ? 64 / d : 1;
    const size_t wide = fold * d, padded = round_up(wide, sweep_bytes / sizeof(In)), wide_rows = (n + fold - 1) / fold;
    Arena arena{nullptr, 0};
    arena.take<double>(2 * padded);
    arena.take<In>(padded * (group + 3));
    arena = {(char *)scratch(arena.used), 0};
    double *sums = arena.take<double>(2 * padded);
    In *pivot = arena.take<In>(padded * (group + 3));
    const ColumnSums<In> to{sums, sums + padded, pivot + (group + 1) * padded, pivot + (group + 2) * padded};

    find_pivot(x, w, n, d, pivot);
    for (size_t j = d; j < padded; ++j) pivot[j] = j < wide ? pivot[j - d] : In(0);
    for (size_t j = 0; j < 2 * padded; ++j) sums[j] = 0;
    for (size_t j = 0; j < padded; ++j) to.low[j] = In(__builtin_inff()), to.high[j] = -In(__builtin_inff());
    const Rows<In> rows{x, n * d, wide, padded, pivot, pivot + padded};
    for (size_t row = 0; row < wide_rows; row += group) {
        V weights[group];
        bool all = true;
        if (w)
            for (size_t k = 0; k < group; ++k) {
                const double weight = row + k < n ? w[row + k] : 0.0;
                weights[k] = broadcast(weight);
                all &= weight > 0;
            }
        size_t step;
        const In *from = rows.at(row, step), *ahead = x + (row + group) * wide + sweep_ahead / sizeof(In);
        const bool whole = all && from != rows.stage;  // `stage` has values that are not in the data
        if (w && whole) add_group<true, true>(from, step, pivot, weights, padded, ahead, to);
        else if (w) add_group<true, false>(from, step, pivot, weights, padded, ahead, to);
        else if (whole) add_group<false, true>(from, step, pivot, weights, padded, ahead, to);
        else add_group<false, false>(from, step, pivot, weights, padded, ahead, to);
        if (whole) continue;
        for (size_t k = 0; k < group && row + k < wide_rows; ++k)
            if (!w || w[row + k] > 0) {
                const In *values = x + (row + k) * wide;
                add_range(values, values, least(wide, n * d - (row + k) * wide), to);
            }
    }
    for (size_t j = d; j < wide; ++j) {
        sums[j % d] += sums[j];
        sums[padded + j % d] += sums[padded + j];
    }
    for (size_t from = d; from < wide; from += d) add_range(to.low + from, to.high + from, d, to);
    for (size_t j = 0; j < d; ++j) {
        const double shift = sums[j] / total, centred = sums[padded + j] - total * shift * shift;
        store_two_parts(double(pivot[j]), shift, mean + j, d);
        low[j] = to.low[j];
        high[j] = to.high[j];
        squares[j] = centred > 0 ? centred : 0;
        // Replaces a sum that underflowed, so that a column that varies never looks constant.
        if (squares[j] == 0 && (low[j] != pivot[j] || high[j] != pivot[j])) squares[j] = least_positive;
    }
    return total;
}
