// Divides rows by their lengths, after scaling by a power of two such that the largest value is near 1: squares could
// otherwise overflow or underflow.
template <class T> size_t unit_rows(const T *x, const int64_t *starts, size_t n, size_t d, T *out) {
    size_t without = 0;
    for (size_t i = 0; i < n; ++i) {
        const size_t begin = starts ? size_t(starts[i]) : i * d, end = starts ? size_t(starts[i + 1]) : begin + d;
        T largest = 0;
        for (size_t p = begin; p < end; ++p) {
            const T size = x[p] < 0 ? -x[p] : x[p];
            largest = size > largest ? size : largest;
        }
        if (largest == 0) {
            for (size_t p = begin; p < end; ++p) out[p] = 0;
            ++without;
            continue;
        }
        int exponent;
        __builtin_frexp(double(largest), &exponent);
        // In two steps, since 2^1074 is not a float64.
        const double half = __builtin_ldexp(1.0, -exponent / 2), rest = __builtin_ldexp(1.0, -exponent + exponent / 2);
        double parts[8] = {};
        size_t p = begin;
        for (; p + 8 <= end; p += 8)
            for (size_t l = 0; l < 8; ++l) {
                const double y = double(x[p + l]) * half * rest;
                parts[l] += y * y;
            }
        for (; p < end; ++p) {
            const double y = double(x[p]) * half * rest;
            parts[0] += y * y;
        }
        const double length =
            __builtin_sqrt(((parts[0] + parts[1]) + (parts[2] + parts[3])) + ((parts[4] + parts[5]) + (parts[6] + parts[7])));
        for (p = begin; p < end; ++p) out[p] = T(double(x[p]) * half * rest / length);
    }
    return without;
}
