// The nearest of a few targets for rows with a few columns: a whole panel of rows stays in registers.
//
// Half the squared distance is computed in a way that rounding cannot make negative. Non-negative floats are ordered
// like the integers with the same bits. The lowest bits are replaced by the number of the target, so that an integer
// minimum finds the nearest target and its number at once. (With more columns this gains nothing, since the products
// then take nearly all of the time.)

constexpr size_t low_dim_columns = 4, low_dim_targets = 64;

template <size_t d> AssignCounts nearest_low_dim(const float *x, size_t n, const Targets<float> &t, ChangeLog<float> &log) {
    using V = Vec<float>;
    using I = Vec<int>;
    constexpr size_t N = panel_rows<float>, L = lanes<float>;
    constexpr int place_bits = int(low_dim_targets) - 1;
    constexpr float cut = 1 + 0x1p-17f + 0x1p-20f;  // effect of replacing the lowest bits, and some rounding
    // The error of a sum of d + 3 terms, in which no partial sum exceeds (|y| + longest)^2 / 2.
    const float wrong = float(2 * unit_roundoff<float> * double(d + 10) * 1.01);
    const float flat = float(wrong * t.longest * t.longest) + underflow_margin<float>;
    const float along = 0.5f + 2 * wrong;
    PanelWorkspace<float> work(x, n, t);
    AssignCounts result{0, n, 0, 0};
    for (size_t first = 0; first < n; first += N) {
        const size_t count = least(N, n - first);
        work.use_rows_from(x + first * d, count, t);
        work.pack(0, d, t);
        V y[d][panel_vectors], start[panel_vectors];
        I best[panel_vectors], second[panel_vectors];
        FW_UNROLL(4)
        for (size_t v = 0; v < panel_vectors; ++v) {
            FW_UNROLL(4)
            for (size_t j = 0; j < d; ++j) y[j][v] = load<V>(work.panel + j * N + v * L);
            start[v] = load<V>(work.squares + v * L) * along + 2 * flat;
            best[v] = second[v] = I{} + 0x7f800000;  // infinity
        }
        I place = {};
        for (size_t c = 0; c < t.k; ++c) {
            const float *target = t.shifted + c * d;
            FW_UNROLL(4)
            for (size_t v = 0; v < panel_vectors; ++v) {
                V half = start[v] - t.minus_half[c];
                FW_UNROLL(4)
                for (size_t j = 0; j < d; ++j) half -= target[j] * y[j][v];
                const I here = ((I)half & ~place_bits) | place;
                second[v] = smaller(second[v], larger(best[v], here));
                best[v] = smaller(best[v], here);
            }
            place += 1;
        }
        I label[panel_vectors], sure = I{} - 1;
        FW_UNROLL(4)
        for (size_t v = 0; v < panel_vectors; ++v) {
            const V near = (V)(best[v] & ~place_bits), next = (V)(second[v] & ~place_bits);
            label[v] = best[v] & place_bits;
            sure &= (I)(next - near * cut > load<V>(work.squares + v * L) * wrong + flat);
        }
        if (count == N && all_true(sure)) {
            log.write_labels(label, first);
            log.after_panel(first);
            continue;
        }
        for (size_t i = 0; i < count; ++i) {
            const float near = ((V)(best[i / L] & ~place_bits))[i % L], next = ((V)(second[i / L] & ~place_bits))[i % L];
            int found = label[i / L][i % L];
            if (!(next - near * cut > work.squares[i] * wrong + flat)) {
                found = resolve_tie(x + (first + i) * d, t, work.y, work.scores, result);
            }
            log.write_label(first + i, found);
        }
        log.after_panel(first);
    }
    result.moved = log.total();
    return result;
}

template <size_t d = low_dim_columns>
AssignCounts nearest_low_dim_of(const float *x, size_t n, const Targets<float> &t, ChangeLog<float> &log) {
    if constexpr (d > 1)
        if (t.d != d) return nearest_low_dim_of<d - 1>(x, n, t, log);
    return nearest_low_dim<d>(x, n, t, log);
}
