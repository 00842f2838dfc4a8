// The update step of k-means, in one pass over the k x d sums and centres, which may be as large as the data.

// One centre. The squared lengths of mean, old - mean, new - mean and new - old go to `lengths`.
template <bool some, bool given, class T>
void update_centre(const double *high, const double *low, double weight, size_t d, const double *pivot, double scale,
                   const T *old, T *now, double *lengths) {
    using V = Vec<double>;
    constexpr size_t L = lanes<double>, step = 8;  // sums are in as many parts on every instruction set: they have the same bits
    static_assert(step % L == 0);
    const double back = 1 / scale;
    V sums[step / L][4] = {};
    const auto vector = [&](const double *h, const double *l, const double *p, const T *o, T *n, V (&to)[4]) {
        const V middle = load<V>(p), zero = middle * scale, was = load_as<double>(o) * scale - zero;
        V y = was;
        if constexpr (some) y = (load<V>(h) + load<V>(l)) / weight;
        if constexpr (!given) {
            if constexpr (some) store(n, __builtin_convertvector(y * back + middle, typename VecOf<T, L * sizeof(T)>::type));
            else __builtin_memcpy(n, o, L * sizeof(T));
        }
        const V is = load_as<double>(n) * scale - zero, before = was - y, after = is - y, gap = is - was;
        to[0] += y * y;
        to[1] += before * before;
        to[2] += after * after;
        to[3] += gap * gap;
    };
    const auto part = [&](const double *h, const double *l, const double *p, const T *o, T *n) {
        FW_UNROLL(4)
        for (size_t v = 0; v < step / L; ++v) vector(h + v * L, l + v * L, p + v * L, o + v * L, n + v * L, sums[v]);
    };
    size_t j = 0;
    for (; j + step <= d; j += step) part(high + j, low + j, pivot + j, old + j, now + j);
    if (j < d) {  // the rest, filled up with zeros, which add nothing
        const size_t rest = d - j;
        double h[step] = {}, l[step] = {}, p[step] = {};
        T o[step] = {}, n[step] = {};
        for (size_t i = 0; i < rest; ++i) h[i] = high[j + i], l[i] = low[j + i], p[i] = pivot[j + i], o[i] = old[j + i];
        for (size_t i = 0; given && i < rest; ++i) n[i] = now[j + i];
        part(h, l, p, o, n);
        for (size_t i = 0; !given && i < rest; ++i) now[j + i] = n[i];
    }
    for (size_t f = 0; f < 4; ++f) {
        double sum = 0;
        for (size_t i = 0; i < step; ++i) sum += sums[i / L][f][i % L];
        lengths[f] = some || f == 3 ? sum : 0;
    }
}

// Computes new centres from exact sums (`weights` are those of the clusters; everything is in y); an empty cluster
// keeps its centre. If `given`, the new centres are already in `now`. `figures` (4 x k) receives the squared lengths. Does the
// centres `from` to `end` - 1 of all k.
template <class T>
void update_centres(const double *high, const double *low, const double *weights, size_t k, size_t d, const double *pivot,
                    double scale, const T *old, T *now, bool given, double *figures, size_t from, size_t end) {
    for (size_t c = from; c < end; ++c) {
        const bool some = weights[c] > 0;
        const auto update = some ? given ? update_centre<true, true, T> : update_centre<true, false, T>
                                 : given ? update_centre<false, true, T> : update_centre<false, false, T>;
        double lengths[4];
        update(high + c * d, low + c * d, weights[c], d, pivot, scale, old + c * d, now + c * d, lengths);
        for (size_t f = 0; f < 4; ++f) figures[f * k + c] = lengths[f];
    }
}
