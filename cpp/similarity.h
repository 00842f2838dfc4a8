// Turns the exponents of a Gaussian or Laplacian kernel into similarities, in place: e^x, or 1 if rounding left x
// above 0.
inline void similarity(double *x, size_t n) {
    constexpr size_t L = lanes<double>;
    const auto of = [](Doubles v) { return exp_of(v < 0.0 ? v : Doubles{}); };
    size_t i = 0;
    for (; i + 2 * L <= n; i += 2 * L) {  // two at a time, to hide the latency of the dependent products
        const Doubles a = of(load<Doubles>(x + i)), b = of(load<Doubles>(x + i + L));
        store(x + i, a);
        store(x + i + L, b);
    }
    for (; i < n; i += L) {
        double rest[L] = {};
        const size_t here = least(L, n - i);
        for (size_t l = 0; l < here; ++l) rest[l] = x[i + l];
        store(rest, of(load<Doubles>(rest)));
        for (size_t l = 0; l < here; ++l) x[i + l] = rest[l];
    }
}
