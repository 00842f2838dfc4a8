// The nearest target of rows with few columns: a vector of rows stays in registers while all targets pass by. With a tile of
// several targets, as for longer rows, finding the best would take as long as the products, and not beside them. It takes
// more registers than other instruction sets have: with AVX2 it is slower, also for 8 columns.

#if FW_BYTES == 64
constexpr size_t short_columns = 16;

// Compares a vector of rows with target `i` of those from `first` on.
template <size_t d>
__attribute__((always_inline)) inline void take_target(const Vec<float> (&y)[d], const Targets<float> &t, size_t first, size_t i,
                                                       Vec<float> &top, Vec<float> &next) {
    const float *target = t.shifted + (first + i) * d;
    Vec<float> score = broadcast(t.minus_half[first + i]);
    FW_UNROLL(16)
    for (size_t j = 0; j < d; ++j) score += broadcast(target[j]) * y[j];
    score = BestTwo<float>::tagged(score, int(i));
    next = larger(next, smaller(top, score));
    top = larger(top, score);
}

template <size_t d, size_t... i>
__attribute__((always_inline)) inline void take_targets(const Vec<float> (&y)[d], const Targets<float> &t, size_t first,
                                                        Vec<float> &top, Vec<float> &next, std::index_sequence<i...>) {
    (take_target<d>(y, t, first, i, top, next), ...);
}

template <size_t d> AssignCounts nearest_short(const float *x, size_t n, const Targets<float> &t, ChangeLog<float> &log) {
    using V = Vec<float>;
    constexpr size_t N = panel_rows<float>, L = lanes<float>, chunk = size_t(1) << tag_bits, line = 64 / sizeof(float);
    PanelWorkspace<float> work(x, n, t);
    const TieMargin<float> margin(t);
    AssignCounts result{0, n, 0, 0};
    for (size_t first = 0; first < n; first += N) {
        const size_t count = least(N, n - first);
        if (d == 8 && count == N) {
            work.after = x + (first + N) * d + 4096 / sizeof(float);
            pack_eights(x + first * d, t.pivot, t.scale, work.panel, work.squares);
        } else {
            work.use_rows_from(x + first * d, count, t);
            work.pack(0, d, t);
        }
        for (size_t i = 0; i < N * d; i += line) __builtin_prefetch(work.after + i, 0, 1);
        BestTwo<float> leaders;
        leaders.clear();
        FW_UNROLL(1)
        for (size_t v = 0; v < panel_vectors; ++v) {
            const V lowest = V{} - __builtin_inff();
            V y[d];
            FW_UNROLL(16)
            for (size_t j = 0; j < d; ++j) y[j] = load<V>(work.panel + j * N + v * L);
            size_t c = 0;
            for (; c + chunk <= t.k; c += chunk) {
                V top = lowest, next = lowest;
                take_targets<d>(y, t, c, top, next, std::make_index_sequence<chunk>{});
                leaders.merge(v, c, top, next);
            }
            if (c < t.k) {
                V top = lowest, next = lowest;
                for (size_t i = 0; c + i < t.k; ++i) take_target<d>(y, t, c, i, top, next);
                leaders.merge(v, c, top, next);
            }
        }
        if (count < N || !write_sure_labels(leaders, work.squares, margin, first, log)) {
            for (size_t i = 0; i < count; ++i) {
                int label = leaders.slot(i / L)[i % L];
                if (!margin.decides(leaders.best[i / L][i % L], leaders.second[i / L][i % L], square_root(work.squares[i])))
                    label = resolve_tie(x + (first + i) * d, t, work.y, work.scores, result);
                log.write_label(first + i, label);
            }
        }
        log.after_panel(first);
    }
    result.moved = log.total();
    return result;
}

template <size_t d>
AssignCounts nearest_short_of(const float *x, size_t n, const Targets<float> &t, ChangeLog<float> &log) {
    if constexpr (d > low_dim_columns + 1)
        if (t.d != d) return nearest_short_of<d - 1>(x, n, t, log);
    return nearest_short<d>(x, n, t, log);
}
#endif
