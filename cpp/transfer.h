// Exact sums: what a cluster's rows add up to does not depend on the order, nor on how often a row came and went.

// Values of at most 1 are cut in two: a multiple of 2^-coarse and the rest as a multiple of 2^-fine. Sums of up to
// 2^(52 - coarse) of them are exact in float64. Adding and subtracting grid.coarse = 1.5 * 2^52 * 2^-coarse rounds to that unit.

// A row as the two parts of its weighted y. Only here is a row cut: if sums of equal rows were to be formed in two places, the
// compiler might fuse a product with a sum in one of them and not in the other.
template <class T>
inline void cut(const T *row, size_t d, double scale, const double *pivot, double factor, Grid grid, double *high, double *low) {
    using V = Vec<double>;
    constexpr size_t L = lanes<double>;
    size_t j = 0;
    for (; j + L <= d; j += L) {
        const V y = (load_as<double>(row + j) * scale - load<V>(pivot + j)) * factor;
        const V h = (y + grid.coarse) - grid.coarse;
        store(high + j, h);
        store(low + j, ((y - h) + grid.fine) - grid.fine);
    }
    for (; j < d; ++j) {
        const double y = (double(row[j]) * scale - pivot[j]) * factor;
        const double h = (y + grid.coarse) - grid.coarse;
        high[j] = h;
        low[j] = ((y - h) + grid.fine) - grid.fine;
    }
}

template <class Op> inline void combine(double *to, const double *part, size_t d, Op op) {
    using V = Vec<double>;
    constexpr size_t L = lanes<double>;
    size_t j = 0;
    for (; j + L <= d; j += L) store(to + j, op(load<V>(to + j), load<V>(part + j)));
    for (; j < d; ++j) to[j] = op(to[j], part[j]);
}

// For rows whose label changed: add them to their new cluster and take them from the old one. `slots` maps a cluster to
// its place in `high`, `low` (m x d) and `weight` (2 x m).
template <class T>
void transfer(const T *x, const double *w, size_t n, const Targets<T> &t, double weight_scale, const int *before,
              const int *after, const int *slots, size_t m, Grid grid, double *high, double *low, double *weight) {
    const size_t d = t.d;
    double *part_high = (double *)scratch(2 * round_up(d, 8) * sizeof(double)), *part_low = part_high + round_up(d, 8);
    const auto add = [](auto a, auto b) { return a + b; };
    const auto subtract = [](auto a, auto b) { return a - b; };
    for (size_t i = 0; i < n; ++i) {
        const int from = before ? before[i] : -1, to = after[i];
        if (from == to) continue;
        const double factor = w ? w[i] * weight_scale : 1;
        if (factor == 0) continue;
        cut(x + i * d, d, t.wide_scale, t.wide_pivot, factor, grid, part_high, part_low);
        const double whole = (factor + grid.coarse) - grid.coarse;
        const double rest = ((factor - whole) + grid.fine) - grid.fine;
        const size_t come = size_t(slots[to]);
        combine(high + come * d, part_high, d, add);
        combine(low + come * d, part_low, d, add);
        weight[come] += whole;
        weight[m + come] += rest;
        if (from < 0) continue;
        const size_t go = size_t(slots[from]);
        combine(high + go * d, part_high, d, subtract);
        combine(low + go * d, part_low, d, subtract);
        weight[go] -= whole;
        weight[m + go] -= rest;
    }
}

// The weighted squared distance of all rows of each cluster to its target, by differences. `each`, if not null, gets every
// row's own (without its weight).
template <class T>
void residuals(const T *x, const double *w, size_t n, const Targets<T> &t, const int *labels, double *total,
               double *each) {
    for (size_t i = 0; i < n; ++i) {
        const size_t c = size_t(labels[i]);
        const double found = direct(x + i * t.d, t.wide_scale, t.exact + c * t.d, t.d);
        if (each) each[i] = found;
        total[c] += w ? w[i] * found : found;
    }
}

// Least and greatest value of each column.
template <class T> void extent(const T *x, size_t n, size_t d, T *low, T *high) {
    using V = Vec<T>;
    constexpr size_t L = lanes<T>;
    for (size_t j = 0; j < d; ++j) low[j] = high[j] = x[j];
    if (d < L) {
        // Columns repeat every d vectors: whole vectors can be compared as they lie in memory.
        const size_t total = n * d, stride = d * L;
        V least_seen[L], most_seen[L];
        if (total >= stride) {
            for (size_t v = 0; v < d; ++v) least_seen[v] = most_seen[v] = load<V>(x + v * L);
            size_t at = stride;
            for (; at + stride <= total; at += stride)
                for (size_t v = 0; v < d; ++v) {
                    const V value = load<V>(x + at + v * L);
                    least_seen[v] = smaller(value, least_seen[v]);
                    most_seen[v] = larger(value, most_seen[v]);
                }
            for (size_t v = 0; v < d; ++v)
                for (size_t i = 0; i < L; ++i) {
                    const size_t j = (v * L + i) % d;
                    low[j] = smaller(T(least_seen[v][i]), low[j]);
                    high[j] = larger(T(most_seen[v][i]), high[j]);
                }
            for (; at < total; ++at) {
                low[at % d] = smaller(x[at], low[at % d]);
                high[at % d] = larger(x[at], high[at % d]);
            }
            return;
        }
    }
    for (size_t i = 1; i < n; ++i) {
        const T *row = x + i * d;
        size_t j = 0;
        for (; j + L <= d; j += L) {
            const V value = load<V>(row + j);
            store(low + j, smaller(value, load<V>(low + j)));
            store(high + j, larger(value, load<V>(high + j)));
        }
        for (; j < d; ++j) {
            low[j] = smaller(row[j], low[j]);
            high[j] = larger(row[j], high[j]);
        }
    }
}
