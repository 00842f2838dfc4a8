// The update step of k-means, in one pass over the k x d sums and centres, which may be as large as the data.

// Computes new centres from exact sums (`weights` are those of the clusters; everything is in y); an empty cluster
// keeps its centre. If `given`, the new centres are already in `now`. `figures` (4 x k) receives the squared lengths
// of mean, old - mean, new - mean and new - old.
template <class T>
void update_centres(const double *high, const double *low, const double *weights, size_t k, size_t d, const double *pivot,
                    double scale, const T *old, T *now, bool given, double *figures) {
    constexpr size_t step = 8;
    const double back = 1 / scale;
    for (size_t c = 0; c < k; ++c) {
        const double weight = weights[c];
        const bool some = weight > 0;
        double sums[4][step] = {};
        const auto part = [&](size_t first, size_t count) {
            double y[step] = {}, was[step] = {}, is[step] = {};
            for (size_t i = 0; i < count; ++i) {
                const size_t j = first + i, at = c * d + j;
                const double zero = pivot[j] * scale;
                if (some) y[i] = (high[at] + low[at]) / weight;
                if (!given) now[at] = some ? T(y[i] * back + pivot[j]) : old[at];
                was[i] = double(old[at]) * scale - zero;
                is[i] = double(now[at]) * scale - zero;
                if (!some) y[i] = was[i];
            }
            for (size_t i = 0; i < step; ++i) {
                const double before = was[i] - y[i], after = is[i] - y[i], gap = is[i] - was[i];
                sums[0][i] += y[i] * y[i];
                sums[1][i] += before * before;
                sums[2][i] += after * after;
                sums[3][i] += gap * gap;
            }
        };
        size_t first = 0;
        for (; first + step <= d; first += step) part(first, step);
        if (first < d) part(first, d - first);
        for (size_t f = 0; f < 4; ++f) {
            double sum = 0;
            for (size_t i = 0; i < step; ++i) sum += sums[f][i];
            figures[f * k + c] = some || f == 3 ? sum : 0;
        }
    }
}
