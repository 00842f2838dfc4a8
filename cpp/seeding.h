// K-means++ seeding: squared distances to the closest seed, and the effect that each candidate seed would have on
// their sum.

// The first `taken` targets are new seeds: `closest` (n squared distances) is updated with them. The others are
// candidates: `potential` receives, for each, the weighted sum of squared distances if it became a seed as well.
// Returns the current weighted sum. If `observed`, distances are over the observed cells of a row.
template <class T, bool observed = false>
double update_closest(const T *x, const double *w, size_t n, const Targets<T> &t, size_t taken, T *closest, double *potential) {
    using V = Vec<T>;
    constexpr size_t N = panel_rows<T>, L = lanes<T>;
    const size_t candidates = t.k - taken;
    char *memory;
    PanelWorkspace<T, observed> work(x, n, t, round_up((t.k + 1) * N * sizeof(T), 64), &memory);
    T *all = (T *)memory, *weight = all + t.k * N;
    // A squared distance below this (relative) limit has lost too many digits when derived from a score, and is
    // recomputed from differences.
    const T coarse = T(64 * unit_roundoff<T> * score_chain<observed>(t.d));
    double total = 0;
    for (size_t c = 0; c < candidates; ++c) potential[c] = 0;
    for (size_t first = 0; first < n; first += N) {
        const size_t count = least(N, n - first);
        work.use_rows_from(x + first * t.d, count, t);
        score_groups<T>(work, t, [](size_t) { return true; }, [&](size_t, size_t slot, auto &sum) {
            constexpr size_t nc = sizeof(sum) / sizeof(sum[0]);
            FW_UNROLL(8)
            for (size_t i = 0; i < nc; ++i) {
                FW_UNROLL(4)
                for (size_t v = 0; v < panel_vectors; ++v) store(all + (slot + i) * N + v * L, sum[i][v]);
            }
        });
        V near[panel_vectors], factor[panel_vectors];
        T lane[N];
        for (size_t i = 0; i < N; ++i) lane[i] = i < count ? closest[first + i] : T(0);
        for (size_t v = 0; v < panel_vectors; ++v) near[v] = load<V>(lane + v * L);
        for (size_t i = 0; i < N; ++i) weight[i] = i < count ? (w ? T(w[first + i]) : T(1)) : T(0);
        for (size_t v = 0; v < panel_vectors; ++v) factor[v] = load<V>(weight + v * L);
        for (size_t c = 0; c < t.k; ++c) {
            T *scores = all + c * N;
            double sum = 0;
            V part = {};
            for (size_t v = 0; v < panel_vectors; ++v) {
                const V square = load<V>(work.squares + v * L);
                V found = square - 2 * load<V>(scores + v * L);
                const V limit = (square + T(t.longest * t.longest)) * coarse;
                const auto doubtful = found < limit;
                bool any = false;
                for (size_t i = 0; i < L; ++i) any |= doubtful[i] != 0;
                if (any) {
                    T parts[L];
                    store(parts, found);
                    for (size_t i = 0; i < least(L, count > v * L ? count - v * L : 0); ++i)
                        if (doubtful[i])
                            parts[i] = T(squared_distance<observed>(x + (first + v * L + i) * t.d, t.wide_scale,
                                                                    t.exact + size_t(t.ids[c]) * t.d, t.d));
                    found = load<V>(parts);
                }
                found = smaller(found, near[v]);
                if (c < taken) near[v] = found;
                else part += found * factor[v];
            }
            if (c >= taken) {
                T parts[L];
                store(parts, part);
                for (size_t i = 0; i < L; ++i) sum += double(parts[i]);
                potential[c - taken] += sum;
            }
        }
        T now[N];
        for (size_t v = 0; v < panel_vectors; ++v) store(now + v * L, near[v]);
        double sum = 0;
        for (size_t i = 0; i < count; ++i) {
            closest[first + i] = now[i];
            sum += double(now[i]) * double(weight[i]);
        }
        total += sum;
    }
    return total;
}
