// Moves rows between the sums of clusters in fixed point (FixedSums, targets.h). A row is moved right after its panel was
// compared, while it is in the cache. Only rows whose values are numbers in fixed point exactly stay in the integers, all but a
// few as a rule; the others go to the sums in two parts. So the sums are the same as without fixed point.

// After about so many moves (twice as many fit) the integers go to the sums in two parts: so few values leave room for more bits behind
// the point.
constexpr size_t fixed_moves = 8192;
// Rows with more columns are added up by cluster before they go to its integers.
constexpr size_t direct_columns = 8;

inline double two_to(int power) {
    const unsigned long long bits = (unsigned long long)(1023 + power) << 52;
    double value;
    __builtin_memcpy(&value, &bits, sizeof value);
    return value;
}

// The first of the copies of a cluster's sums.
inline long long *sums_of(const FixedSums &to, size_t cluster, size_t d) { return to.sums + cluster * to.copies * d; }
inline long long &count_of(const FixedSums &to, size_t cluster) { return to.counts[cluster * to.copies]; }

// As many values as `start` has lanes.
template <class V, class T> inline auto in_fixed_point(const T *x, double scale, V start) {
    constexpr size_t L = sizeof(V) / sizeof(double);
    // The product with a power of two is exact, so this is rounded once, fused or not.
    return (typename VecOf<long long, sizeof(V)>::type)(convert<V>(x, std::make_index_sequence<L>{}) * scale + start);
}

template <class T> inline long long in_fixed_point_one(const T *x, const FixedSums &to, size_t j) {
    const double y = double(x[j]) * to.scale + to.start[j];
    long long bits;
    __builtin_memcpy(&bits, &y, sizeof bits);
    return bits;
}

// The least of the absolute values of `count` numbers, as integers with the same bits, minus 1: absolute values are ordered
// like these, and 0 minus 1 is the largest of all. The last vector overlaps the one before.
template <size_t bytes> inline auto least_magnitude(const float *x, size_t count) {
    using U = typename VecOf<unsigned, bytes>::type;
    constexpr size_t L = bytes / sizeof(float);
    const auto of = [&](size_t j) { return (load<U>(x + j) & 0x7fffffffu) - 1u; };
    U lowest = of(count - L);
    for (size_t j = 0; j + L < count; j += L) {
        const U here = of(j);
        lowest = here < lowest ? here : lowest;
    }
    return lowest;
}

// Whether all values of a row are 0 or at least `least` in absolute value.
inline bool is_fixed(const float *x, size_t d, float least) {
    unsigned limit;
    __builtin_memcpy(&limit, &least, sizeof limit);
    limit -= 1;
    if (d >= lanes<float>) return all_true(least_magnitude<FW_BYTES>(x, d) >= limit);
    if (FW_BYTES > 32 && d >= 8) return all_true(least_magnitude<32>(x, d) >= limit);
    if (FW_BYTES > 16 && d >= 4) return all_true(least_magnitude<16>(x, d) >= limit);
    bool fixed = true;
    for (size_t j = 0; j < d; ++j) {
        unsigned bits;
        __builtin_memcpy(&bits, x + j, sizeof bits);
        fixed &= (bits & 0x7fffffffu) - 1u >= limit;
    }
    return fixed;
}
inline bool is_fixed(const double *, size_t, float) { return false; }

// The same for a row that is no number in fixed point.
template <class T>
__attribute__((noinline)) void move_in_parts(const T *x, size_t d, const Targets<T> &t, const FixedSums &to, int before, int after) {
    double *high = to.parts, *low = high + round_up(d, 8);
    const Guarded guarded(to.guard);
    split_row(x, d, t.wide_scale, t.wide_pivot, 1.0, to.grid, high, low);
    double *to_high = to.high + size_t(after) * d, *to_low = to.low + size_t(after) * d;
    to.weight[after] += 1;
    if (before < 0) return add_parts<false>(high, low, d, to_high, to_low, nullptr, nullptr);
    to.weight[before] -= 1;
    add_parts<true>(high, low, d, to_high, to_low, to.high + size_t(before) * d, to.low + size_t(before) * d);
}

// Adds a row to the sums of cluster `after` and subtracts it from those of `before`. `columns` is their number if that is known
// when this is compiled, and 0 otherwise, here and in what follows.
template <size_t columns, class T> inline void move_fixed_row(const T *x, size_t d, const FixedSums &to, int before, int after) {
    if (columns) d = columns;
    long long *sums = sums_of(to, size_t(after), d), *old = sums_of(to, size_t(before), d);
    size_t j = 0;
    const auto move = [&](auto start) __attribute__((always_inline)) {
        const auto y = in_fixed_point(x + j, to.scale, start);
        using I = decltype(in_fixed_point(x, 1.0, start));
        store(sums + j, load<I>(sums + j) + y);
        store(old + j, load<I>(old + j) - y);
        j += sizeof start / sizeof(double);
    };
    while (j + lanes<double> <= d) move(load<Vec<double>>(to.start + j));
    if (FW_BYTES == 64 && j + 4 <= d) move(load<VecOf<double, 32>::type>(to.start + j));
    for (; j < d; ++j) {
        const unsigned long long y = (unsigned long long)in_fixed_point_one(x, to, j);
        sums[j] = (long long)((unsigned long long)sums[j] + y);
        old[j] = (long long)((unsigned long long)old[j] - y);
    }
}

// Adds up `vectors` vectors of columns of some rows.
template <size_t vectors, size_t bytes = FW_BYTES, class T>
inline void add_fixed_columns(const T *x, size_t d, const FixedSums &to, const int *rows, size_t count, size_t j, long long *sums) {
    using I = typename VecOf<long long, bytes>::type;
    using D = typename VecOf<double, bytes>::type;
    constexpr size_t L = bytes / sizeof(double);
    I sum[vectors];
    D start[vectors];
    FW_UNROLL(8)
    for (size_t v = 0; v < vectors; ++v) {
        sum[v] = load<I>(sums + v * L);
        start[v] = load<D>(to.start + j + v * L);
        settle(start[v]);  // kept in a register
    }
    const double scale = to.scale;
    for (size_t i = 0; i < count; ++i) {
        const T *row = x + size_t(rows[i]) * d + j;
        FW_UNROLL(8)
        for (size_t v = 0; v < vectors; ++v) sum[v] += in_fixed_point(row + v * L, scale, start[v]);
    }
    FW_UNROLL(8)
    for (size_t v = 0; v < vectors; ++v) store(sums + v * L, sum[v]);
}

// Adds up some rows of a cluster before they are added to its sums, a few vectors of columns at a time.
template <class T> inline void add_fixed_rows(const T *x, size_t d, const FixedSums &to, const int *rows, size_t count, int cluster) {
    constexpr size_t L = lanes<double>, most = FW_BYTES == 64 ? 8 : 4;
    long long *sums = sums_of(to, size_t(cluster), d);
    size_t j = 0;
    for (; j + most * L <= d; j += most * L) add_fixed_columns<most>(x, d, to, rows, count, j, sums + j);
    if (most > 4 && j + 4 * L <= d) {
        add_fixed_columns<4>(x, d, to, rows, count, j, sums + j);
        j += 4 * L;
    }
    if (j + 2 * L <= d) {
        add_fixed_columns<2>(x, d, to, rows, count, j, sums + j);
        j += 2 * L;
    }
    if (j + L <= d) {
        add_fixed_columns<1>(x, d, to, rows, count, j, sums + j);
        j += L;
    }
    if (FW_BYTES == 64 && j + 4 <= d) {
        add_fixed_columns<1, 32>(x, d, to, rows, count, j, sums + j);
        j += 4;
    }
    for (; j < d; ++j) {
        unsigned long long sum = (unsigned long long)sums[j];
        for (size_t i = 0; i < count; ++i) sum += (unsigned long long)in_fixed_point_one(x + size_t(rows[i]) * d, to, j);
        sums[j] = (long long)sum;
    }
}

// Adds a single row of so many columns, a multiple of 8, to the sums of a cluster.
template <size_t columns, class T> inline void add_fixed_row(const T *row, const FixedSums &to, int cluster) {
    using I = Vec<long long>;
    long long *sums = sums_of(to, size_t(cluster), columns);
    FW_UNROLL(8)
    for (size_t j = 0; j < columns; j += lanes<double>)
        store(sums + j, load<I>(sums + j) + in_fixed_point(row + j, to.scale, load<Vec<double>>(to.start + j)));
}

constexpr size_t joining_most = 384, joining_clusters = 64;  // rows; clusters of which several rows are to be expected

// Whether it is of use to collect rows that join clusters.
template <size_t columns> inline bool join_together(size_t k) { return columns > 0 || k <= joining_clusters; }

// Adds `count` rows to the sums of the clusters in `labels[row]`.
template <size_t columns, class T>
inline void join_fixed(const T *x, size_t d, const FixedSums &to, size_t k, const int *rows, size_t count, const int *labels) {
    if constexpr (columns > 0) {
        // Rows of a cluster that follow each other would wait for its count: every other row has a count of its own.
        int counts[2][joining_clusters] = {};
        const bool few = k <= joining_clusters;
        for (size_t i = 0; i < count; ++i) {
            const int cluster = labels[rows[i]];
            add_fixed_row<columns>(x + size_t(rows[i]) * columns, to, cluster);
            if (few) {
                ++counts[i % 2][cluster];
            } else {
                ++count_of(to, size_t(cluster));
                to.touched[cluster] = 1;
            }
        }
        for (size_t c = 0; few && c < k; ++c) {
            count_of(to, c) += counts[0][c] + counts[1][c];
            to.touched[c] = 1;
        }
        return;
    }
    int order[joining_most], ends[joining_clusters + 1];
    for (size_t c = 0; c <= k; ++c) ends[c] = 0;
    for (size_t i = 0; i < count; ++i) ++ends[labels[rows[i]] + 1];
    for (size_t c = 0; c < k; ++c) {
        count_of(to, c) += ends[c + 1];
        to.touched[c] |= ends[c + 1] > 0;
        ends[c + 1] += ends[c];
    }
    if (d <= direct_columns) {
        for (size_t i = 0; i < count; ++i) add_fixed_rows(x, d, to, rows + i, 1, labels[rows[i]]);
        return;
    }
    for (size_t i = 0; i < count; ++i) order[ends[labels[rows[i]]]++] = rows[i];
    for (size_t c = 0, from = 0; c < k; from = size_t(ends[c++]))
        if (size_t(ends[c]) > from) add_fixed_rows(x, d, to, order + from, size_t(ends[c]) - from, int(c));
}

// Whether these are adjacent rows that were in no cluster, as all are in a first pass, and that fixed point can hold.
template <size_t columns, class T>
inline bool can_join(const T *x, const Targets<T> &t, const FixedSums &to, const int *rows, const int *before, size_t count,
                     const int *after) {
    if (!count || count > joining_most || !join_together<columns>(t.k) || size_t(rows[count - 1] - rows[0]) + 1 != count) return false;
    int highest = -1, apart = 0;
    unsigned label = 0;
    for (size_t i = 0; i < count; ++i) {
        const unsigned now = unsigned(after[rows[0] + int(i)]);  // negative ones become very large
        apart |= rows[i] ^ (rows[0] + int(i));
        highest = before[i] > highest ? before[i] : highest;
        label = now > label ? now : label;
    }
    return !apart && highest < 0 && label < t.k && is_fixed(x + size_t(rows[0]) * t.d, count * t.d, to.least);
}

// Moves the rows listed in `rows` from cluster before[i] (none if it is negative) to after[row]; a row that is in none, which
// is one with nothing observed, never was in one. Returns false if a label is no target.
template <size_t columns, class T>
bool move_fixed_of(const T *x, const Targets<T> &t, const FixedSums &sums, const int *rows, const int *before, size_t count,
                   const int *after) {
    const FixedSums to = sums;  // a copy: no store can change it
    const size_t k = t.k, d = columns ? columns : t.d;
    if (can_join<columns>(x, t, to, rows, before, count, after)) {
        join_fixed<columns>(x, d, to, k, rows, count, after);
        return true;
    }
    int joining[joining_most];
    size_t joins = 0;
    bool known = true;
    const bool group = join_together<columns>(k) && count <= joining_most;
    for (size_t i = 0; i < count; ++i) {
        const int row = rows[i], was = before[i], now = after[row];
        if (was >= int(k) || now >= int(k)) {
            known = false;
            continue;
        }
        if (now < 0) continue;
        const T *values = x + size_t(row) * d;
        if (!is_fixed(values, d, to.least)) {
            move_in_parts(values, d, t, to, was, now);
            continue;
        }
        if (was < 0 && group) {
            joining[joins++] = row;
            continue;
        }
        ++count_of(to, size_t(now));
        to.touched[now] = 1;
        if (was < 0) {
            add_fixed_rows(x, d, to, rows + i, 1, now);
            continue;
        }
        --count_of(to, size_t(was));
        to.touched[was] = 1;
        move_fixed_row<columns>(values, d, to, was, now);
    }
    if (joins) join_fixed<columns>(x, d, to, k, joining, joins, after);
    return known;
}

template <class T>
bool move_fixed(const T *x, const Targets<T> &t, const FixedSums &sums, const int *rows, const int *before, size_t count,
                const int *after) {
    if (t.d == 8) return move_fixed_of<8>(x, t, sums, rows, before, count, after);
    if (FW_BYTES == 64 && t.d == 16) return move_fixed_of<16>(x, t, sums, rows, before, count, after);
    return move_fixed_of<0>(x, t, sums, rows, before, count, after);
}

// Adds the integers to the sums in two parts, exactly, and clears them. `k` clusters, `d` columns.
inline void empty_fixed(const FixedSums &from, size_t k, size_t d) {
    const double magic = 1.5 * two_to(52 - from.bits);
    unsigned long long constant;
    __builtin_memcpy(&constant, &magic, sizeof constant);
    const int shift = from.bits > from.coarse_bits ? from.bits - from.coarse_bits : 0;
    const long long rest = (1ll << shift) - 1;
    const double high_unit = two_to(shift - from.bits), low_unit = two_to(-from.bits);
    const Guarded guarded(from.guard);
    for (size_t c = 0; c < k; ++c) {
        if (!from.touched[c]) continue;
        long long *sums = sums_of(from, c, d), &all = count_of(from, c);
        for (size_t copy = 1; copy < from.copies; ++copy) {
            long long *more = sums + copy * d, &count = from.counts[c * from.copies + copy];
            for (size_t j = 0; j < d; ++j) {
                sums[j] = (long long)((unsigned long long)sums[j] + (unsigned long long)more[j]);
                more[j] = 0;
            }
            all += count;
            count = 0;
        }
        const unsigned long long off = (unsigned long long)all * constant;
        double *high = from.high + c * d, *low = from.low + c * d;
        for (size_t j = 0; j < d; ++j) {
            const long long value = (long long)((unsigned long long)sums[j] - off);
            high[j] += double(value >> shift) * high_unit;
            low[j] += double(value & rest) * low_unit;
            sums[j] = 0;
        }
        from.weight[c] += double(all);
        all = 0;
        from.touched[c] = 0;
    }
    for (size_t copy = 1; from.copies > 1 && copy <= from.copies; ++copy) {  // the rows without a label
        for (size_t j = 1; j <= d; ++j) *(from.sums - (copy - 1) * d - j) = 0;
        *(from.counts - copy) = 0;
    }
}

// Moves the rows listed in `which` (all n if it is null) from cluster before[i] (none if it is null) to after[row]. Returns
// false if a label is no target.
template <class T>
bool move_rows_fixed(const T *x, size_t n, const Targets<T> &t, const int *which, size_t count, const int *before, const int *after,
                     const FixedSums &to) {
    constexpr size_t together = 256;
    static_assert(fixed_moves % together == 0);
    int rows[together], was[together];
    bool known = true;
    for (size_t first = 0; first < count; first += together) {
        size_t some = 0;
        for (size_t i = first; i < least(first + together, count); ++i) {
            const size_t row = which ? size_t(which[i]) : i;
            if (row >= n || after[row] < 0) {
                known = false;
                continue;
            }
            rows[some] = int(row);
            was[some++] = before ? before[i] : -1;
        }
        known &= move_fixed(x, t, to, rows, was, some, after);
        if ((first + together) % fixed_moves == 0) empty_fixed(to, t.k, t.d);
    }
    empty_fixed(to, t.k, t.d);
    return known;
}
