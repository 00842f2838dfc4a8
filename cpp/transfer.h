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

template <class T> struct Transfer {
    const T *x;
    const double *w;
    const Targets<T> &t;
    double weight_scale;
    const int *before, *after, *slots;
    size_t m;
    Grid grid;
    double *high, *low, *weight;

    double factor(size_t i) const { return w ? w[i] * weight_scale : 1; }

    bool slot(int label, size_t &at) const {
        if (label < 0 || size_t(label) >= t.k) return false;
        at = size_t(slots[label]);
        return at < m;
    }

    void weigh(double factor, size_t come, size_t go, bool leaves) const {
        const double whole = (factor + grid.coarse) - grid.coarse;
        const double rest = ((factor - whole) + grid.fine) - grid.fine;
        weight[come] += whole;
        weight[m + come] += rest;
        if (!leaves) return;
        weight[go] -= whole;
        weight[m + go] -= rest;
    }

    // One row; `length` is the number of columns if the compiler may know it, else 0.
    template <size_t length> inline bool row(size_t i, double *part_high, double *part_low) const {
        const size_t d = length ? length : t.d;
        const double share = factor(i);
        const int from = before ? before[i] : -1;
        size_t come, go = 0;
        if (!slot(after[i], come) || (from >= 0 && !slot(from, go))) return false;
        if (share == 0) return true;
        const auto add = [](auto a, auto b) { return a + b; };
        const auto subtract = [](auto a, auto b) { return a - b; };
        double near_high[length ? length : 1], near_low[length ? length : 1];
        if (length) part_high = near_high, part_low = near_low;
        cut(x + i * d, d, t.wide_scale, t.wide_pivot, share, grid, part_high, part_low);
        weigh(share, come, go, from >= 0);
        combine(high + come * d, part_high, d, add);
        combine(low + come * d, part_low, d, add);
        if (from < 0) return true;
        combine(high + go * d, part_high, d, subtract);
        combine(low + go * d, part_low, d, subtract);
        return true;
    }

    // All rows, cluster by cluster, so that the sums of one stay in the first cache; exact sums do not mind the order.
    bool sorted(size_t n, double *part, size_t room, int *order, size_t *starts) const {
        for (size_t s = 0; s <= m; ++s) starts[s] = 0;
        for (size_t i = 0, at; i < n; ++i) {
            if (!slot(after[i], at)) return false;
            ++starts[at + 1];
        }
        for (size_t s = 0; s < m; ++s) starts[s + 1] += starts[s];
        for (size_t i = 0; i < n; ++i) order[starts[size_t(slots[after[i]])]++] = int(i);
        for (size_t i = 0; i < n; ++i)
            if (!row<0>(size_t(order[i]), part, part + room)) return false;
        return true;
    }

    template <size_t length> bool rows(size_t n) const {
        const size_t room = round_up(t.d, 8), sums = 2 * room * sizeof(double), counts = (m + 1) * sizeof(size_t);
        const bool all = !before && t.d >= 16;
        double *part = (double *)scratch(sums + (all ? counts + n * sizeof(int) : 0));
        if (all) {
            char *more = (char *)part + sums;
            return sorted(n, part, room, (int *)(more + counts), (size_t *)more);
        }
        constexpr size_t step = 16;
        size_t i = 0;
        for (; before && i + step <= n; i += step) {
            int different = 0;
            for (size_t j = 0; j < step; ++j) different |= before[i + j] ^ after[i + j];
            if (!different) continue;
            for (size_t j = i; j < i + step; ++j)
                if (before[j] != after[j] && !row<length>(j, part, part + room)) return false;
        }
        for (; i < n; ++i)
            if ((!before || before[i] != after[i]) && !row<length>(i, part, part + room)) return false;
        return true;
    }

    template <size_t length = 8> bool run(size_t n) const {
        if (t.d == length) return rows<length>(n);
        if constexpr (length > 1) return run<length - 1>(n);
        return rows<0>(n);
    }
};

// For rows whose label changed: add them to their new cluster and take them from the old one. `slots` maps a cluster to
// its place in `high`, `low` (m x d) and `weight` (2 x m). False if a label has no slot.
template <class T>
bool transfer(const T *x, const double *w, size_t n, const Targets<T> &t, double weight_scale, const int *before,
              const int *after, const int *slots, size_t m, Grid grid, double *high, double *low, double *weight) {
    return Transfer<T>{x, w, t, weight_scale, before, after, slots, m, grid, high, low, weight}.run(n);
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
