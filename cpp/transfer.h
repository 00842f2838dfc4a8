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

// The parts are added to one cluster's sums and, if `leaves`, taken from another's.
template <bool leaves>
inline void combine(const double *part_high, const double *part_low, size_t d, double *high, double *low, double *old_high, double *old_low) {
    using V = Vec<double>;
    constexpr size_t L = lanes<double>;
    size_t j = 0;
    for (; j + L <= d; j += L) {
        const V h = load<V>(part_high + j), l = load<V>(part_low + j);
        store(high + j, load<V>(high + j) + h);
        store(low + j, load<V>(low + j) + l);
        if (!leaves) continue;
        store(old_high + j, load<V>(old_high + j) - h);
        store(old_low + j, load<V>(old_low + j) - l);
    }
    for (; j < d; ++j) {
        high[j] += part_high[j];
        low[j] += part_low[j];
        if (!leaves) continue;
        old_high[j] -= part_high[j];
        old_low[j] -= part_low[j];
    }
}

template <class T> struct Transfer {
    const T *x;
    const double *w;
    const Targets<T> &t;
    double weight_scale;
    const int *after, *slots;
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

    // One row that was in cluster `from`, or in none; `length` is the number of columns if the compiler may know it, else 0.
    template <size_t length> inline bool row(size_t i, int from, double *part_high, double *part_low) const {
        const size_t d = length ? length : t.d;
        const double share = factor(i);
        size_t come, go = 0;
        if (!slot(after[i], come) || (from >= 0 && !slot(from, go))) return false;
        if (share == 0) return true;
        double near_high[length ? length : 1], near_low[length ? length : 1];
        if (length) part_high = near_high, part_low = near_low;
        cut(x + i * d, d, t.wide_scale, t.wide_pivot, share, grid, part_high, part_low);
        weigh(share, come, go, from >= 0);
        double *to_high = high + come * d, *to_low = low + come * d;
        if (from < 0)
            combine<false>(part_high, part_low, d, to_high, to_low, nullptr, nullptr);
        else
            combine<true>(part_high, part_low, d, to_high, to_low, high + go * d, low + go * d);
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
            if (!row<0>(size_t(order[i]), -1, part, part + room)) return false;
        return true;
    }

    template <size_t length> bool all(size_t n) const {
        const size_t room = round_up(t.d, 8), sums = 2 * room * sizeof(double), counts = (m + 1) * sizeof(size_t);
        const bool by_cluster = t.d >= 16;
        double *part = (double *)scratch(sums + (by_cluster ? counts + n * sizeof(int) : 0));
        char *more = (char *)part + sums;
        if (by_cluster) return sorted(n, part, room, (int *)(more + counts), (size_t *)more);
        for (size_t i = 0; i < n; ++i)
            if (!row<length>(i, -1, part, part + room)) return false;
        return true;
    }

    template <size_t length> bool some(const int *which, const int *before, size_t n, size_t count) const {
        const size_t room = round_up(t.d, 8);
        double *part = (double *)scratch(2 * room * sizeof(double));
        for (size_t i = 0; i < count; ++i)
            if (size_t(which[i]) >= n || !row<length>(size_t(which[i]), before[i], part, part + room)) return false;
        return true;
    }

    template <size_t length = 8> bool run(const int *which, const int *before, size_t n, size_t count) const {
        if (t.d == length || length == 0) return which ? some<length>(which, before, n, count) : all<length>(n);
        if constexpr (length > 0) return run<length - 1>(which, before, n, count);
    }
};

// Rows that have a new label, `which` (all, and all in no cluster so far, if that is null), are added to their new cluster and
// taken from the one that they were in before. `slots` maps a cluster to its place in `high`, `low` (m x d) and `weight`
// (2 x m). False if a label has no slot.
template <class T>
bool transfer(const T *x, const double *w, size_t n, const Targets<T> &t, double weight_scale, const int *which, size_t count,
              const int *before, const int *after, const int *slots, size_t m, Grid grid, double *high, double *low,
              double *weight) {
    return Transfer<T>{x, w, t, weight_scale, after, slots, m, grid, high, low, weight}.run(which, before, n, count);
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
