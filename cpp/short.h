// The nearest of a few targets for rows of a few columns: all of a panel's rows stay in registers.
//
// Half the squared distances are formed so that rounding cannot make one negative. Then they are ordered like the integers with
// their bits, the lowest of which can say whose distance it is, and minima of integers find the nearest target and its number at
// once. (For longer rows this is no gain: there, products take all the time that there is.)

constexpr size_t short_row = 4, short_targets = 64;

template <size_t d> Assigned nearest_short(const float *x, size_t n, const Targets<float> &t, int *labels, Log log) {
    using V = Vec<float>;
    using I = Vec<int>;
    constexpr size_t N = panel_rows<float>, L = lanes<float>;
    constexpr int place_bits = int(short_targets) - 1;
    constexpr float cut = 1 + 0x1p-17f + 0x1p-20f;  // what the lowest bits can take from a distance, and some roundings
    // Of a sum of d + 3 terms, none of which makes it larger than (|y| + longest)^2 / 2.
    const float wrong = float(2 * unit<float> * double(d + 10) * 1.01), flat = float(wrong * t.longest * t.longest) + tiny<float>;
    const float along = 0.5f + 2 * wrong;
    Desk<float> desk(x, n, t);
    Assigned result{0, n, 0};
    for (size_t first = 0; first < n; first += N) {
        const size_t count = least(N, n - first);
        desk.take_from(x + first * d, count, t);
        desk.bring(0, t);
        V y[d][panel_vectors], start[panel_vectors];
        I best[panel_vectors], second[panel_vectors];
        FW_UNROLL(4)
        for (size_t v = 0; v < panel_vectors; ++v) {
            FW_UNROLL(4)
            for (size_t j = 0; j < d; ++j) y[j][v] = load<V>(desk.panel + j * N + v * L);
            start[v] = load<V>(desk.squares + v * L) * along + 2 * flat;
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
            sure &= (I)(next - near * cut > load<V>(desk.squares + v * L) * wrong + flat);
        }
        if (count == N && all_true(sure)) {
            log.take(label, labels, first);
            continue;
        }
        for (size_t i = 0; i < count; ++i) {
            const float near = ((V)(best[i / L] & ~place_bits))[i % L], next = ((V)(second[i / L] & ~place_bits))[i % L];
            int found = label[i / L][i % L];
            if (!(next - near * cut > desk.squares[i] * wrong + flat)) {
                found = settle(x + (first + i) * d, t, desk.y, desk.scores);
                ++result.settled;
            }
            if (labels[first + i] != found) log.note(first + i, labels[first + i]);
            labels[first + i] = found;
        }
    }
    result.moved = log.count;
    return result;
}

template <size_t d = short_row>
Assigned nearest_short_of(const float *x, size_t n, const Targets<float> &t, int *labels, Log log) {
    if constexpr (d > 1)
        if (t.d != d) return nearest_short_of<d - 1>(x, n, t, labels, log);
    return nearest_short<d>(x, n, t, labels, log);
}
