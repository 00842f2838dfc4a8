// Moves rows between the sums of clusters in fixed point (FixedSums, targets.h). A row is moved right after its panel was
// compared, while it is in the cache. Only rows whose values are numbers in fixed point exactly are moved in this way, all
// but a few as a rule; the others go to the sums in two parts directly. So the sums are the same as without fixed point.

// After so many moves the integers go to the sums in two parts: so few values leave room for more bits behind the point.
constexpr size_t fixed_moves = 8192;

inline double two_to(int power) {
    const unsigned long long bits = (unsigned long long)(1023 + power) << 52;
    double value;
    __builtin_memcpy(&value, &bits, sizeof value);
    return value;
}

template <class T> inline Vec<long long> in_fixed_point(const T *x, const FixedSums &to, size_t j) {
    // The product with a power of two is exact, so this is rounded once, fused or not.
    return (Vec<long long>)(load_as<double>(x + j) * to.scale + load<Vec<double>>(to.start + j));
}

template <class T> inline long long in_fixed_point_one(const T *x, const FixedSums &to, size_t j) {
    const double y = double(x[j]) * to.scale + to.start[j];
    long long bits;
    __builtin_memcpy(&bits, &y, sizeof bits);
    return bits;
}

// Whether all values of a row are 0 or at least `least` in absolute value. Absolute values are ordered like the integers with
// the same bits, and 0 minus 1 is the largest of all.
inline bool is_fixed(const float *x, size_t d, float least) {
    using U = Vec<unsigned>;
    constexpr size_t L = lanes<float>;
    unsigned limit, found = ~0u;
    __builtin_memcpy(&limit, &least, sizeof limit);
    size_t j = 0;
    if (d >= L) {
        U lowest = ~U{};
        for (; j + L <= d; j += L) {
            const U bits = ((U)load<Vec<float>>(x + j) & 0x7fffffffu) - 1u;
            lowest = bits < lowest ? bits : lowest;
        }
        const auto large = lowest >= limit - 1u;
        if (!all_true(large)) return false;
    }
    for (; j < d; ++j) {
        unsigned bits;
        __builtin_memcpy(&bits, x + j, sizeof bits);
        bits = (bits & 0x7fffffffu) - 1u;
        found = bits < found ? bits : found;
    }
    return found >= limit - 1u;
}
inline bool is_fixed(const double *, size_t, float) { return false; }

// The same for a row that is no number in fixed point.
template <class T>
__attribute__((noinline)) void move_in_parts(const T *x, size_t d, const Targets<T> &t, const FixedSums &to, int before, int after) {
    double *high = to.parts, *low = high + round_up(d, 8);
    split_row(x, d, t.wide_scale, t.wide_pivot, 1.0, to.grid, high, low);
    double *to_high = to.high + size_t(after) * d, *to_low = to.low + size_t(after) * d;
    to.weight[after] += 1;
    if (before < 0) return add_parts<false>(high, low, d, to_high, to_low, nullptr, nullptr);
    to.weight[before] -= 1;
    add_parts<true>(high, low, d, to_high, to_low, to.high + size_t(before) * d, to.low + size_t(before) * d);
}

// Adds a row to the sums of cluster `after` and subtracts it from those of `before`, unless that is negative.
template <class T> inline void move_fixed(const T *x, const Targets<T> &t, const FixedSums &to, int before, int after) {
    using I = Vec<long long>;
    constexpr size_t L = lanes<long long>;
    const size_t d = t.d;
    if (!is_fixed(x, d, to.least)) return move_in_parts(x, d, t, to, before, after);
    long long *sums = to.sums + size_t(after) * d;
    ++to.counts[after];
    to.touched[after] = 1;
    size_t j = 0;
    if (before < 0) {
        for (; j + L <= d; j += L) store(sums + j, load<I>(sums + j) + in_fixed_point(x, to, j));
        for (; j < d; ++j) sums[j] = (long long)((unsigned long long)sums[j] + (unsigned long long)in_fixed_point_one(x, to, j));
        return;
    }
    long long *old = to.sums + size_t(before) * d;
    --to.counts[before];
    to.touched[before] = 1;
    for (; j + L <= d; j += L) {
        const I y = in_fixed_point(x, to, j);
        store(sums + j, load<I>(sums + j) + y);
        store(old + j, load<I>(old + j) - y);
    }
    for (; j < d; ++j) {
        const unsigned long long y = (unsigned long long)in_fixed_point_one(x, to, j);
        sums[j] = (long long)((unsigned long long)sums[j] + y);
        old[j] = (long long)((unsigned long long)old[j] - y);
    }
}

// Adds the integers to the sums in two parts, exactly, and clears them. `k` clusters, `d` columns.
inline void empty_fixed(const FixedSums &from, size_t k, size_t d) {
    const double magic = 1.5 * two_to(52 - from.bits);
    unsigned long long constant;
    __builtin_memcpy(&constant, &magic, sizeof constant);
    const int shift = from.bits > from.coarse_bits ? from.bits - from.coarse_bits : 0;
    const long long rest = (1ll << shift) - 1;
    const double high_unit = two_to(shift - from.bits), low_unit = two_to(-from.bits);
    for (size_t c = 0; c < k; ++c) {
        if (!from.touched[c]) continue;
        const unsigned long long off = (unsigned long long)from.counts[c] * constant;
        long long *sums = from.sums + c * d;
        double *high = from.high + c * d, *low = from.low + c * d;
        for (size_t j = 0; j < d; ++j) {
            const long long value = (long long)((unsigned long long)sums[j] - off);
            high[j] += double(value >> shift) * high_unit;
            low[j] += double(value & rest) * low_unit;
            sums[j] = 0;
        }
        from.weight[c] += double(from.counts[c]);
        from.counts[c] = 0;
        from.touched[c] = 0;
    }
}

// Moves the rows listed in `which` (all n if it is null) from cluster before[i] (none if it is null) to after[row]. Returns
// false if a label is no target.
template <class T>
bool move_rows_fixed(const T *x, size_t n, const Targets<T> &t, const int *which, size_t count, const int *before, const int *after,
                     const FixedSums &to) {
    bool known = true;
    size_t held = 0;
    for (size_t i = 0; i < count; ++i) {
        const size_t row = which ? size_t(which[i]) : i;
        const int was = before ? before[i] : -1;
        if (row >= n || after[row] < 0 || after[row] >= int(t.k) || was >= int(t.k)) {
            known = false;
            continue;
        }
        move_fixed(x + row * t.d, t, to, was, after[row]);
        if (++held < fixed_moves) continue;
        empty_fixed(to, t.k, t.d);
        held = 0;
    }
    empty_fixed(to, t.k, t.d);
    return known;
}
