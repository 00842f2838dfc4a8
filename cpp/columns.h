// Mean and centred sum of squares of each column, in float64 throughout.

// Adds a group of rows, minus the pivot, to the sums and the sums of squares of each column. `weighted` is a template
// parameter because of the compiler bug described in vec.h: with `w ? weights[k] * y : y`, where w is a pointer, the
// AVX-512 kernel for float32 applied the weights to the first of every eight columns only and took the others with
// weight 1.
template <bool weighted, class In>
inline void add_group(const In *from, size_t step, const In *pivot, const Vec<double> *weights, size_t padded, double *sums,
                      double *sums_of_squares) {
    using V = Vec<double>;
    for (size_t j = 0; j < padded; j += lanes<double>) {
        const V centre = load_as<double>(pivot + j);
        V sum = load<V>(sums + j), square = load<V>(sums_of_squares + j);
        FW_UNROLL(8)
        for (size_t k = 0; k < group; ++k) {
            const V y = load_as<double>(from + k * step + j) - centre;
            const V wy = weighted ? weights[k] * y : y;
            sum += wy;
            square += wy * y;
        }
        store(sums + j, sum);
        store(sums_of_squares + j, square);
    }
}

template <class In>
double columns(const In *x, const double *w, size_t n, size_t d, double *mean, double *squares) {
    using V = Vec<double>;
    const double total = total_weight(w, n);
    if (zero_if_empty(total, d, mean, squares, d)) return total;
    // Short rows are placed side by side, so that vectors are full.
    const size_t fold = !w && 2 * d <= 64 ? 64 / d : 1;
    const size_t wide = fold * d, padded = round_up(wide, lanes<double>), wide_rows = (n + fold - 1) / fold;
    Arena arena{nullptr, 0};
    arena.take<double>(2 * padded);
    arena.take<In>(padded * (group + 1));
    arena = {(char *)scratch(arena.used), 0};
    double *sums = arena.take<double>(2 * padded), *sums_of_squares = sums + padded;
    In *pivot = arena.take<In>(padded * (group + 1));

    find_pivot(x, w, n, d, pivot);
    for (size_t j = d; j < padded; ++j) pivot[j] = j < wide ? pivot[j - d] : In(0);
    for (size_t j = 0; j < 2 * padded; ++j) sums[j] = 0;
    const Rows<In> rows{x, n * d, wide, padded, pivot, pivot + padded};
    for (size_t row = 0; row < wide_rows; row += group) {
        V weights[group];
        for (size_t k = 0; w && k < group; ++k) weights[k] = broadcast(row + k < n ? w[row + k] : 0.0);
        size_t step;
        const In *from = rows.at(row, step);
        if (w) add_group<true>(from, step, pivot, weights, padded, sums, sums_of_squares);
        else add_group<false>(from, step, pivot, weights, padded, sums, sums_of_squares);
    }
    for (size_t j = d; j < wide; ++j) {
        sums[j % d] += sums[j];
        sums_of_squares[j % d] += sums_of_squares[j];
    }
    for (size_t j = 0; j < d; ++j) {
        const double shift = sums[j] / total, centred = sums_of_squares[j] - total * shift * shift;
        store_two_parts(double(pivot[j]), shift, mean + j, d);
        squares[j] = centred > 0 ? centred : 0;
        if (squares[j] > 0) continue;
        for (size_t i = 0; i < n; ++i)
            if ((!w || w[i] > 0) && x[i * d + j] != pivot[j]) {
                squares[j] = least_positive;
                break;
            }
    }
    return total;
}
