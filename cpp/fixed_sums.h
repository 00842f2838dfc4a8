// Moves rows between the sums of clusters in fixed point (FixedSums, targets.h). A row is moved right after its panel was
// compared, while it is in the cache.

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

// Adds a row to the sums of cluster `after` and subtracts it from those of `before`, unless that is negative.
template <class T> inline void move_fixed(const T *x, size_t d, const FixedSums &to, int before, int after) {
    using I = Vec<long long>;
    constexpr size_t L = lanes<long long>;
    long long *sums = to.sums + size_t(after) * d;
    ++to.counts[after];
    size_t j = 0;
    if (before < 0) {
        for (; j + L <= d; j += L) store(sums + j, load<I>(sums + j) + in_fixed_point(x, to, j));
        for (; j < d; ++j) sums[j] = (long long)((unsigned long long)sums[j] + (unsigned long long)in_fixed_point_one(x, to, j));
        return;
    }
    long long *old = to.sums + size_t(before) * d;
    --to.counts[before];
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
