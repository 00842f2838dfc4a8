// The squared Mahalanobis distances |U'(y - mean)|^2 of panels of rows (rows in lanes, see panel.h) to each
// component.

// Computes `nc` columns of U'z for a panel of rows z = y - mean (z = y if `centre` is false). `u` holds the part of
// these columns above their triangle, row by row, followed by the triangle. The rows of z that belong to these
// columns are written here and read again for later columns.
template <class T, size_t nc, bool centre, class Take>
__attribute__((noinline)) void whiten_columns(const T *u, size_t before, const T *y, const T *mean, T *z, const T *start,
                                              Take take) {
    using V = Vec<T>;
    constexpr size_t L = lanes<T>, N = panel_rows<T>;
    V sum[nc][panel_vectors];
    FW_UNROLL(8)
    for (size_t i = 0; i < nc; ++i) {
        const V first = start ? broadcast(start[i]) : V{};
        FW_UNROLL(4)
        for (size_t v = 0; v < panel_vectors; ++v) sum[i][v] = first;
    }
    multiply<T, nc>(centre ? z : y, u, before, sum);
    u += before * nc;
    FW_UNROLL(8)
    for (size_t t = 0; t < nc; ++t) {
        const size_t at = (before + t) * N;
        V row[panel_vectors];
        FW_UNROLL(4)
        for (size_t v = 0; v < panel_vectors; ++v) {
            row[v] = load<V>(y + at + v * L);
            if constexpr (centre) {
                row[v] -= mean[before + t];
                store(z + at + v * L, row[v]);
            }
        }
        FW_UNROLL(8)
        for (size_t i = t; i < nc; ++i) {
            const V one = broadcast(u[i - t]);
            FW_UNROLL(4)
            for (size_t v = 0; v < panel_vectors; ++v) sum[i][v] += one * row[v];
        }
        u += nc - t;
    }
    take(sum);
}

template <class T, bool centre, size_t nc = panel_targets, class Take>
inline void whiten_width(size_t width, const T *u, size_t before, const T *y, const T *mean, T *z, const T *start, Take take) {
    if (width == nc) return whiten_columns<T, nc, centre>(u, before, y, mean, z, start, take);
    if constexpr (nc > 1) whiten_width<T, centre, nc - 1>(width, u, before, y, mean, z, start, take);
}

inline size_t triangle(size_t before, size_t width) { return before * width + width * (width + 1) / 2; }

template <class T> void square_full(const Components<T> &c, size_t j, const T *y, T *z, T *out) {
    using V = Vec<T>;
    V total[panel_vectors] = {};
    const T *u = c.factors + j * (c.d * (c.d + 1) / 2), *start = c.starts ? c.starts + j * c.d : nullptr;
    size_t before = 0;
    for (size_t b = 0; b < c.blocks; ++b) {
        const size_t width = c.widths[b];
        whiten_width<T, true>(width, u, before, y, c.means + j * c.columns, z, start ? start + before : nullptr, [&](auto &sum) {
            for (auto &each : sum) {
                FW_UNROLL(4)
                for (size_t v = 0; v < panel_vectors; ++v) total[v] += each[v] * each[v];
            }
        });
        u += triangle(before, width);
        before += width;
    }
    for (size_t v = 0; v < panel_vectors; ++v) store(out + v * lanes<T>, total[v]);
}

// Computes U'y.
template <class T> void whiten_panel(const Components<T> &c, const T *y, T *out) {
    constexpr size_t L = lanes<T>;
    const T *u = c.factors;
    size_t before = 0;
    for (size_t b = 0; b < c.blocks; ++b) {
        const size_t width = c.widths[b];
        whiten_width<T, false>(width, u, before, y, nullptr, nullptr, nullptr, [&](auto &sum) {
            T *to = out + before * panel_rows<T>;
            for (auto &each : sum) {
                FW_UNROLL(4)
                for (size_t v = 0; v < panel_vectors; ++v) store(to + v * L, each[v]);
                to += panel_rows<T>;
            }
        });
        u += triangle(before, width);
        before += width;
    }
}

// The sum over features of ((y - near) scale)^2, for `nc` components at once.
template <class T, size_t nc, bool scaled>
__attribute__((noinline)) void diagonal_squares(const T *y, size_t d, const T *near, const T *scale, T *out, size_t step) {
    using V = Vec<T>;
    constexpr size_t L = lanes<T>, N = panel_rows<T>;
    V sum[nc][panel_vectors] = {};
    for (size_t f = 0; f < d; ++f) {
        V row[panel_vectors];
        FW_UNROLL(4)
        for (size_t v = 0; v < panel_vectors; ++v) row[v] = load<V>(y + v * L);
        FW_UNROLL(8)
        for (size_t i = 0; i < nc; ++i) {
            FW_UNROLL(4)
            for (size_t v = 0; v < panel_vectors; ++v) {
                V apart = row[v] - near[i];
                if constexpr (scaled) apart *= scale[i];
                sum[i][v] += apart * apart;
            }
        }
        y += N;
        near += nc;
        if constexpr (scaled) scale += nc;
    }
    for (size_t i = 0; i < nc; ++i)
        for (size_t v = 0; v < panel_vectors; ++v) store(out + i * step + v * L, sum[i][v]);
}

template <class T, bool scaled, size_t nc = panel_targets>
inline void diagonal_squares_width(size_t width, const T *y, size_t d, const T *near, const T *scale, T *out, size_t step) {
    if (width == nc) return diagonal_squares<T, nc, scaled>(y, d, near, scale, out, step);
    if constexpr (nc > 1) diagonal_squares_width<T, scaled, nc - 1>(width, y, d, near, scale, out, step);
}

// Writes out[j * step + row] for every component j and the rows of `count` panels.
template <class T> void mahalanobis_squares(const Components<T> &c, const T *panels, size_t count, T *z, T *out, size_t step) {
    constexpr size_t N = panel_rows<T>;
    if (c.shape == Shape::full) {
        for (size_t j = 0; j < c.k; ++j)  // outer loop, so that the factor stays in the L1 cache
            for (size_t p = 0; p < count; ++p) square_full(c, j, panels + p * c.d * N, z, out + j * step + p * N);
        return;
    }
    for (size_t p = 0; p < count; ++p) {
        const T *y = panels + p * c.d * N;
        if (c.shape == Shape::tied) {
            whiten_panel(c, y, z);
            y = z;
        }
        size_t first = 0;
        for (size_t g = 0; g < c.groups; ++g) {
            const size_t width = c.group_widths[g];
            T *to = out + first * step + p * N;
            if (c.shape == Shape::diag)
                diagonal_squares_width<T, true>(width, y, c.d, c.near + first * c.d, c.scales + first * c.d, to, step);
            else
                diagonal_squares_width<T, false>(width, y, c.d, c.near + first * c.d, nullptr, to, step);
            first += width;
        }
    }
    if (c.shape != Shape::spherical) return;
    for (size_t j = 0; j < c.k; ++j)
        for (size_t i = 0; i < count * N; ++i) out[j * step + i] = out[j * step + i] * c.scales[j] * c.scales[j];
}
