// The nearest target of rows with few columns: a vector of rows stays in registers while all targets pass by. With a tile of
// several targets, as for longer rows, finding the best would take as long as the products, and not beside them.

#if FW_BYTES >= 32
constexpr size_t short_columns = FW_BYTES == 64 ? 16 : 8;  // half of the registers
constexpr size_t short_targets = FW_BYTES == 64 ? size_t(-1) : few_most;  // without operands that are broadcast, tiles win later

// Compares a vector of rows with target `i` of those from `first` on.
template <size_t d, size_t room>
__attribute__((always_inline)) inline void take_target(const Vec<float> (&y)[room], const Targets<float> &t, size_t first, size_t i,
                                                       Vec<float> &top, Vec<float> &next) {
    const float *target = t.shifted + (first + i) * d;
    Vec<float> score = broadcast(t.minus_half[first + i]);
    FW_UNROLL(16)
    for (size_t j = 0; j < d; ++j) score += broadcast(target[j]) * y[j];
    score = BestTwo<float>::tagged(score, int(i));
    next = larger(next, smaller(top, score));
    top = larger(top, score);
}

template <size_t d, size_t room, size_t... i>
__attribute__((always_inline)) inline void take_targets(const Vec<float> (&y)[room], const Targets<float> &t, size_t first,
                                                        Vec<float> &top, Vec<float> &next, std::index_sequence<i...>) {
    (take_target<d>(y, t, first, i, top, next), ...);
}

// Some rows, given by address, shifted and transposed: a vector for each of their columns, and more.
inline void take_rows(const float *const *rows, const Targets<float> &t, Vec<float> (&y)[lanes<float>]) {
    const Vec<float> p = load<Vec<float>>(t.pivot);
    FW_UNROLL(16)
    for (size_t i = 0; i < lanes<float>; ++i) y[i] = load<Vec<float>>(rows[i]) * t.scale - p;
    transpose<float>(y);
}

// The same for adjacent rows of 8 columns.
inline void take_eights(const float *x, const Targets<float> &t, Vec<float> (&y)[8]) {
#if FW_BYTES == 64  // two rows fill a vector
    typedef float Half __attribute__((vector_size(32)));
    const Half half = load<Half>(t.pivot);
    const Vec<float> p = __builtin_shufflevector(half, half, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    FW_UNROLL(8)
    for (size_t i = 0; i < 8; ++i) {
        const float *row = x + (i + (i & 4)) * 8;
        y[i] = __builtin_shufflevector(load<Half>(row), load<Half>(row + 32), 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15) *
                   t.scale - p;
    }
    transpose_eights(y);
#else
    const Vec<float> p = load<Vec<float>>(t.pivot);
    FW_UNROLL(8)
    for (size_t i = 0; i < 8; ++i) y[i] = load<Vec<float>>(x + i * 8) * t.scale - p;
    transpose<float>(y);
#endif
}

template <size_t d> AssignCounts nearest_short(const float *x, size_t n, const Targets<float> &t, ChangeLog<float> &log) {
    using V = Vec<float>;
    constexpr size_t N = panel_rows<float>, L = lanes<float>, chunk = size_t(1) << tag_bits, line = 64 / sizeof(float);
    PanelWorkspace<float> work(x, n, t);
    const TieMargin<float> margin(t);
    const V lowest = V{} - __builtin_inff();
    AssignCounts result{0, n, 0, 0};
    for (size_t first = 0; first < n; first += N) {
        const size_t count = least(N, n - first);
        const bool eights = d == 8 && count == N;
        const float *after = x + (first + N) * d + 4096 / sizeof(float);
        if (!eights) work.use_rows_from(x + first * d, count, t);
        BestTwo<float> leaders;
        leaders.clear();
        FW_UNROLL(1)
        for (size_t v = 0; v < panel_vectors; ++v) {
            V y[d == 8 ? 8 : L], sum = {};
            if constexpr (d == 8) {
                if (eights) {
                    take_eights(x + (first + v * L) * d, t, y);
                } else {
                    V more[L];
                    take_rows(work.rows + v * L, t, more);
                    __builtin_memcpy(y, more, sizeof y);
                }
            } else {
                take_rows(work.rows + v * L, t, y);
            }
            for (size_t i = 0; i < L * d; i += line) __builtin_prefetch(after + v * L * d + i, 0, 3);
            FW_UNROLL(16)
            for (size_t j = 0; j < d; ++j) sum += y[j] * y[j];
            store(work.squares + v * L, sum);
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
