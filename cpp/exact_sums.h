// Exact sums over the rows of each cluster: the result depends neither on the order of the rows nor on how often a
// row joined and left.

// A value of magnitude at most 1 is split into a multiple of 2^-coarse and a remainder that is a multiple of 2^-fine.
// Sums of up to 2^(52 - coarse) such parts are exact in float64. Adding and then subtracting grid.coarse = 1.5 * 2^52
// * 2^-coarse rounds to a multiple of 2^-coarse.

// Splits the weighted y of a row into its two parts. This is the only place that does so, and `settle` keeps the compiler
// from fusing a product with a sum in one inlined copy and not in another: equal rows would have unequal parts. (The product
// with `scale`, a power of two, is exact, fused or not.)
// If `observed`, missing cells count as y = 0.
template <bool observed = false, class T>
inline void split_row(const T *row, size_t d, double scale, const double *pivot, double factor, Grid grid, double *high,
                      double *low) {
    using V = Vec<double>;
    constexpr size_t L = lanes<double>;
    size_t j = 0;
    for (; j + L <= d; j += L) {
        V y = (load_as<double>(row + j) * scale - load<V>(pivot + j)) * factor;
        settle(y);
        if constexpr (observed) y = zero_if_nan(y);
        const V h = (y + grid.coarse) - grid.coarse;
        store(high + j, h);
        store(low + j, ((y - h) + grid.fine) - grid.fine);
    }
    for (; j < d; ++j) {
        double y = (double(row[j]) * scale - pivot[j]) * factor;
        settle(y);
        if constexpr (observed) y = y == y ? y : 0;
        const double h = (y + grid.coarse) - grid.coarse;
        high[j] = h;
        low[j] = ((y - h) + grid.fine) - grid.fine;
    }
}

// Adds the parts to the sums of one cluster and, if `leaves`, subtracts them from those of another.
template <bool leaves>
inline void add_parts(const double *part_high, const double *part_low, size_t d, double *high, double *low,
                      double *old_high, double *old_low) {
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

// If `observed`, the weights of missing cells are kept by cluster and column: `missing` has two parts of m x d. A row
// with nothing observed has the label -1 and is in no cluster.
template <class T, bool observed> struct RowMover {
    const T *x;
    const double *w;
    const Targets<T> &t;
    double weight_scale;
    const int *after, *slots;
    size_t m;
    Grid grid;
    double *high, *low, *weight, *missing;

    double factor(size_t i) const { return w ? w[i] * weight_scale : 1; }

    bool slot(int label, size_t &at) const {
        if (label < 0 || size_t(label) >= t.k) return false;
        at = size_t(slots[label]);
        return at < m;
    }

    void add_weight(double factor, size_t to_slot, size_t from_slot, bool leaves) const {
        const double whole = (factor + grid.coarse) - grid.coarse;
        const double rest = ((factor - whole) + grid.fine) - grid.fine;
        weight[to_slot] += whole;
        weight[m + to_slot] += rest;
        if (!leaves) return;
        weight[from_slot] -= whole;
        weight[m + from_slot] -= rest;
    }

    void add_missing(const T *row, double factor, size_t to_slot, size_t from_slot, bool leaves) const {
        const size_t d = t.d, parts = m * d;
        const double whole = (factor + grid.coarse) - grid.coarse;
        const double rest = ((factor - whole) + grid.fine) - grid.fine;
        double *to = missing + to_slot * d, *from = missing + from_slot * d;
        each_missing<T, false>(row, d, [&](size_t j) {
            to[j] += whole;
            to[parts + j] += rest;
            if (!leaves) return;
            from[j] -= whole;
            from[parts + j] -= rest;
        });
    }

    // Processes one row that was in cluster `from` (negative: in none). `length` is the number of columns if it is a
    // compile-time constant, else 0.
    template <size_t length> inline bool move_row(size_t i, int from, double *part_high, double *part_low) const {
        const size_t d = length ? length : t.d;
        const double share = factor(i);
        size_t to_slot, from_slot = 0;
        if (observed && after[i] < 0 && from < 0) return true;
        if (!slot(after[i], to_slot) || (from >= 0 && !slot(from, from_slot))) return false;
        if (share == 0) return true;
        double near_high[length ? length : 1], near_low[length ? length : 1];
        if (length) part_high = near_high, part_low = near_low;
        split_row<observed>(x + i * d, d, t.wide_scale, t.wide_pivot, share, grid, part_high, part_low);
        add_weight(share, to_slot, from_slot, from >= 0);
        if constexpr (observed) add_missing(x + i * d, share, to_slot, from_slot, from >= 0);
        double *to_high = high + to_slot * d, *to_low = low + to_slot * d;
        if (from < 0)
            add_parts<false>(part_high, part_low, d, to_high, to_low, nullptr, nullptr);
        else
            add_parts<true>(part_high, part_low, d, to_high, to_low, high + from_slot * d, low + from_slot * d);
        return true;
    }

    // All rows, cluster by cluster, so that the sums of one cluster stay in the L1 cache. Exact sums do not depend on
    // the order.
    bool add_by_cluster(size_t n, double *part, size_t room, int *order, size_t *starts) const {
        for (size_t s = 0; s <= m; ++s) starts[s] = 0;
        for (size_t i = 0, at; i < n; ++i) {
            if (observed && after[i] < 0) continue;
            if (!slot(after[i], at)) return false;
            ++starts[at + 1];
        }
        for (size_t s = 0; s < m; ++s) starts[s + 1] += starts[s];
        const size_t total = starts[m];
        for (size_t i = 0; i < n; ++i)
            if (!observed || after[i] >= 0) order[starts[size_t(slots[after[i]])]++] = int(i);
        for (size_t i = 0; i < total; ++i)
            if (!move_row<0>(size_t(order[i]), -1, part, part + room)) return false;
        return true;
    }

    template <size_t length> bool add_all(size_t n) const {
        const size_t room = round_up(t.d, 8), sums = 2 * room * sizeof(double), counts = (m + 1) * sizeof(size_t);
        const bool by_cluster = t.d >= 16;
        double *part = (double *)scratch(sums + (by_cluster ? counts + n * sizeof(int) : 0));
        char *more = (char *)part + sums;
        if (by_cluster) return add_by_cluster(n, part, room, (int *)(more + counts), (size_t *)more);
        for (size_t i = 0; i < n; ++i)
            if (!move_row<length>(i, -1, part, part + room)) return false;
        return true;
    }

    template <size_t length> bool move_some(const int *which, const int *before, size_t n, size_t count) const {
        const size_t room = round_up(t.d, 8);
        double *part = (double *)scratch(2 * room * sizeof(double));
        for (size_t i = 0; i < count; ++i)
            if (size_t(which[i]) >= n || !move_row<length>(size_t(which[i]), before[i], part, part + room)) return false;
        return true;
    }

    template <size_t length = 8> bool run(const int *which, const int *before, size_t n, size_t count) const {
        if (t.d == length || length == 0) return which ? move_some<length>(which, before, n, count) : add_all<length>(n);
        if constexpr (length > 0) return run<length - 1>(which, before, n, count);
    }
};

// Adds each row listed in `which` to the sums of its new cluster and subtracts it from those of its previous one. If
// `which` is null, all rows are added, and none was in a cluster before. `slots` maps a cluster to its index in
// `high`, `low` (m x d) and `weight` (2 x m). Returns false if a label has no slot.
template <class T, bool observed = false>
bool move_rows(const T *x, const double *w, size_t n, const Targets<T> &t, double weight_scale, const int *which, size_t count,
               const int *before, const int *after, const int *slots, size_t m, Grid grid, double *high, double *low,
               double *weight, double *missing) {
    return RowMover<T, observed>{x, w, t, weight_scale, after, slots, m, grid, high, low, weight, missing}.run(which, before, n, count);
}

// Adds the weighted squared differences between a row and its target to eight sums, by column modulo 8 (whatever the length
// of a vector), and those of the columns that are left to a ninth one: no sum over the columns of each single row.
template <bool weighted, bool observed, class T>
inline void add_residual(const T *x, double scale, const double *target, size_t d, double weight, double *sums) {
    using V = Vec<double>;
    constexpr size_t L = lanes<double>, eight = 8 / L;
    V s[eight];
    FW_UNROLL(4)
    for (size_t v = 0; v < eight; ++v) s[v] = load<V>(sums + v * L);
    size_t j = 0;
    for (; j + 8 <= d; j += 8) {
        FW_UNROLL(4)
        for (size_t v = 0; v < eight; ++v) {
            V a = load_as<double>(x + j + v * L) * scale - load<V>(target + j + v * L);
            if constexpr (observed) a = zero_if_nan(a);
            if constexpr (weighted) s[v] += (a * weight) * a;
            else s[v] += a * a;
        }
    }
    FW_UNROLL(4)
    for (size_t v = 0; v < eight; ++v) store(sums + v * L, s[v]);
    for (; j < d; ++j) {
        const double a = double(x[j]) * scale - target[j];
        if constexpr (observed)
            if (a != a) continue;
        double square = weighted ? (a * weight) * a : a * a;
        settle(square);  // compilers fuse such single products and sums in some sets and not in others
        sums[8] += square;
    }
}

// Sums of squared differences by cluster: those of add_residual and the number of rows, in two copies for even and odd rows. A
// processor waits for the sums of the row before if it cannot tell that they are others.
template <class T> struct ClusterResiduals {
    static constexpr size_t step = residual_values / 2, copies = 2;
    const Targets<T> &t;
    double *const sums;  // k x residual_values

    void clear() const {
        for (size_t i = 0; i < t.k * residual_values; ++i) sums[i] = 0;
    }
    // Adds the rows from `first` to `end` of a block.
    template <bool weighted, bool observed>
    void add(const T *x, const double *w, const int *labels, size_t first, size_t end) const {
        const auto all = [&](auto d) {
            for (size_t i = first; i < end; ++i) {
                if (observed && labels[i] < 0) continue;
                const size_t c = size_t(labels[i]);
                double *own = sums + (copies * c + i % copies) * step;
                add_residual<weighted, observed>(x + i * d, t.wide_scale, t.exact + c * d, d, weighted ? w[i] : 1.0, own);
                own[9] += 1;
            }
        };
        if (t.d == 8) all(std::integral_constant<size_t, 8>());  // without loops over columns
        else if (t.d == 16) all(std::integral_constant<size_t, 16>());
        else all(t.d);
    }
    // Adds the sums of a block to those of its clusters, and the numbers of rows to `counts`, if that is not null.
    void finish(double *total, double *counts) const {
        for (size_t c = 0; c < t.k; ++c) {
            double *own = sums + c * residual_values;
            for (size_t i = 0; i < step; ++i) own[i] += own[step + i];
            Vec<double> s[8 / lanes<double>];
            __builtin_memcpy(s, own, sizeof s);
            total[c] += sum_of_eight(s) + own[8];
            if (counts) counts[c] += own[9];
        }
    }
};

template <bool weighted, class T, bool observed>
void residual_sums(const T *x, const double *w, size_t n, const Targets<T> &t, const int *labels, double *total, double *counts) {
    const ClusterResiduals<T> sums{t, (double *)scratch(t.k * residual_values * sizeof(double))};
    sums.clear();
    sums.template add<weighted, observed>(x, w, labels, 0, n);
    sums.finish(total, counts);
}

// For each cluster, the weighted sum of squared distances of its rows to its target, computed from differences.
// `each`, if not null, receives the unweighted squared distance of every row; the number of rows of each cluster is added
// to `counts`, if not null. If `observed`, distances are over the observed cells; a row without any has the label -1 and the
// distance NaN.
template <class T, bool observed = false>
void residuals(const T *x, const double *w, size_t n, const Targets<T> &t, const int *labels, double *total,
               double *each, double *counts) {
    for (size_t i = 0; each && i < n; ++i)
        each[i] = observed && labels[i] < 0
                      ? __builtin_nan("")
                      : squared_distance<observed>(x + i * t.d, t.wide_scale, t.exact + size_t(labels[i]) * t.d, t.d);
    if (w) residual_sums<true, T, observed>(x, w, n, t, labels, total, counts);
    else residual_sums<false, T, observed>(x, w, n, t, labels, total, counts);
}
