// X W' in float32 for a few or many rows X (n x d) and vectors W (o x d), the layers of a network: each value is a sum over the
// columns in their order, so a row's values depend neither on the rows beside it nor on how many there are, as they do with
// BLAS, which takes other ways for the rows and columns left over after whole tiles. AVX2 and AVX-512 give the same bits.
//
// The vectors are packed by panels [column][vector of the panel]; rows are broadcast, as in `project_tile`.

inline void row_product(const float *x, size_t n, size_t d, const float *vectors, size_t o, float *out) {
    constexpr size_t P = panel_columns<float>, tile = product_tile;
    const auto take = [&](Arena &arena, float *&panel, float *&sums) {
        panel = arena.take<float>(d * P);
        sums = arena.take<float>(tile * P);
    };
    float *panel, *sums;
    Arena size{nullptr, 0};
    take(size, panel, sums);
    Arena arena{(char *)scratch(size.used), 0};
    take(arena, panel, sums);
    for (size_t first = 0; first < o; first += P) {
        const size_t wanted = least(P, o - first);
        for (size_t j = 0; j < d; ++j)
            for (size_t v = 0; v < P; ++v) panel[j * P + v] = v < wanted ? vectors[(first + v) * d + j] : 0;
        for (size_t row = 0, count = tile; row < n; row += count) {
            if (n - row < tile) count = 1;
            for (size_t i = 0; i < count * P; ++i) sums[i] = 0;
            const char *next = (const char *)panel;
            if (count == tile) project_tile<float, 2>(x + row * d, d, P, panel, P, d, sums, next, 0);
            else project_tile<float, 2, 1>(x + row * d, d, P, panel, P, d, sums, next, 0);
            for (size_t i = 0; i < count; ++i)
                for (size_t v = 0; v < wanted; ++v) out[(row + i) * o + first + v] = sums[i * P + v];
        }
    }
}
