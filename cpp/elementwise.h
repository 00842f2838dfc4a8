// Kernels that visit every value once: is it finite, and its difference from a centre.

template <class T> ptrdiff_t finite(const T *x, size_t n) {
    using V = Vec<T>;
    constexpr size_t L = lanes<T>, ways = 8, piece = 512 * L;
    size_t from = 0;
    for (; from + piece <= n; from += piece) {
        V sum[ways] = {};  // x * 0 is 0 for finite x and NaN otherwise, and NaN propagates
        for (size_t i = from; i < from + piece; i += ways * L) {
            FW_UNROLL(8)
            for (size_t v = 0; v < ways; ++v) sum[v] += load<V>(x + i + v * L) * V{};
        }
        FW_UNROLL(8)
        for (size_t v = 1; v < ways; ++v) sum[0] += sum[v];
        T total = 0;
        for (size_t l = 0; l < L; ++l) total += sum[0][l];
        if (total != 0) break;
    }
    for (; from < n; ++from)
        if (x[from] * T(0) != 0) return ptrdiff_t(from);
    return -1;
}

// (x - centre) / scale in float64, rounded once. Short centres and scales are repeated until the inner loop is long
// enough to be worth vectorising. The division is not replaced by a multiplication, which would round differently.
template <class T>
void centred(const T *x, const double *centre, const double *scale, size_t n, size_t d, T *out) {
    if (n == 0 || d == 0) return;
    const size_t length = n * d, wide = d < 64 ? least(n, 256 / d) * d : d;
    if (wide > d) {
        double *room = (double *)scratch(2 * wide * sizeof(double));
        for (size_t j = 0; j < wide; ++j) {
            room[j] = centre[j % d];
            room[wide + j] = scale ? scale[j % d] : 1;
        }
        centre = room;
        if (scale) scale = room + wide;
    }
    for (size_t from = 0; from < length; from += wide) {
        const size_t here = least(wide, length - from);
        const T *values = x + from;
        T *to = out + from;
        if (scale) for (size_t j = 0; j < here; ++j) to[j] = T((double(values[j]) - centre[j]) / scale[j]);
        else for (size_t j = 0; j < here; ++j) to[j] = T(double(values[j]) - centre[j]);
    }
}
