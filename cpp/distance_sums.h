// Sums of the distances from some points to the rows of each cluster: all pairs, without a table of them.

// Rows of weight 0 are left out; the others are sorted by cluster and transposed, so that a vector holds one column of
// rows of a single cluster. The last vector of a cluster is filled up with rows of weight 0 at the origin.
struct ClusterVectors {
    size_t count;           // of vectors, a multiple of tile_vectors
    const double *values;   // [tile of tile_vectors vectors][column][lane]
    const double *weights;  // [vector][lane]
    const int *cluster;     // of each vector
};

template <class T>
ClusterVectors cluster_vectors(const T *x, const double *w, const int *labels, size_t n, size_t d, double scale, size_t k) {
    constexpr size_t L = lanes<double>, wide = tile_vectors * L;
    const size_t most = round_up(n / L + least(n, k) + 1, tile_vectors);
    const size_t bytes = most * L * (d + 1) * sizeof(double) + (k + 1) * sizeof(size_t) + most * sizeof(int);
    double *values = (double *)scratch(bytes), *weights = values + most * L * d;
    size_t *next = (size_t *)(weights + most * L);  // the place of the next row of each cluster
    int *cluster = (int *)(next + k + 1);
    for (size_t c = 0; c <= k; ++c) next[c] = 0;
    for (size_t i = 0; i < n; ++i) next[labels[i] + 1] += !w || w[i] != 0;
    size_t count = 0;
    for (size_t c = 0; c < k; ++c) {
        const size_t here = (next[c + 1] + L - 1) / L;
        next[c] = count * L;
        for (size_t v = 0; v < here; ++v) cluster[count++] = int(c);
    }
    const int last = count ? cluster[count - 1] : 0;
    while (count % tile_vectors) cluster[count++] = last;
    for (size_t i = 0; i < count * L * d; ++i) values[i] = 0;
    for (size_t i = 0; i < count * L; ++i) weights[i] = 0;
    for (size_t i = 0; i < n; ++i) {
        if (w && w[i] == 0) continue;
        const size_t place = next[labels[i]]++;
        double *to = values + place / wide * wide * d + place % wide;
        for (size_t j = 0; j < d; ++j) to[j * wide] = double(x[i * d + j]) * scale;
        weights[place] = w ? w[i] : 1;
    }
    return {count, values, weights, cluster};
}

// The weighted distances from `rows` points to the vectors of one tile: sums of squared differences, which do not
// cancel, and their roots. If `observed`, cells may be missing (NaN): squares are summed over the cells that both have, and
// multiplied by the number of columns over that of such cells. `pairs` then receives the weight of a row, or 0 if it has no
// such cell.
template <size_t rows, bool observed>
inline void weighted_distances(const double *points, size_t d, const double *values, const double *weights, double *out,
                               double *pairs) {
    using V = Vec<double>;
    constexpr size_t L = lanes<double>, wide = tile_vectors * L;
    V sum[rows][tile_vectors] = {}, common[observed ? rows : 1][tile_vectors] = {};
    for (size_t j = 0; j < d; ++j) {
        V right[tile_vectors];
        FW_UNROLL(4)
        for (size_t v = 0; v < tile_vectors; ++v) right[v] = load<V>(values + j * wide + v * L);
        FW_UNROLL(16)
        for (size_t i = 0; i < rows; ++i) {
            const V left = broadcast(points[i * d + j]);
            FW_UNROLL(4)
            for (size_t v = 0; v < tile_vectors; ++v) {
                V gap = right[v] - left;
                if constexpr (observed) {
                    common[i][v] += gap == gap ? V{} + 1.0 : V{};
                    gap = gap == gap ? gap : V{};
                }
                sum[i][v] += gap * gap;
            }
        }
    }
    FW_UNROLL(16)
    for (size_t i = 0; i < rows; ++i) {
        FW_UNROLL(4)
        for (size_t v = 0; v < tile_vectors; ++v) store(out + i * wide + v * L, sum[i][v]);
    }
    if constexpr (observed) {
        FW_UNROLL(16)
        for (size_t i = 0; i < rows; ++i) {
            FW_UNROLL(4)
            for (size_t v = 0; v < tile_vectors; ++v) store(pairs + i * wide + v * L, common[i][v]);
        }
        for (size_t i = 0; i < rows; ++i)
            for (size_t l = 0; l < wide; ++l) {
                const double cells = pairs[i * wide + l], some = cells > 0 ? cells : 1;
                pairs[i * wide + l] = cells > 0 ? weights[l] : 0;
                out[i * wide + l] *= double(d) / some;
            }
    }
    for (size_t i = 0; i < rows; ++i)
        for (size_t l = 0; l < wide; ++l) out[i * wide + l] = __builtin_sqrt(out[i * wide + l]) * weights[l];
}

// Adds the distances from `rows` points to all rows of a few tiles to `out` (one line of k sums for each point). Sums
// stay in lanes until the cluster changes. If `observed`, the weights of the rows compared are added to `compared`.
template <size_t rows, bool observed>
inline void add_distances(const double *points, size_t d, const ClusterVectors &all, size_t first, size_t last, size_t k,
                          double *out, double *compared) {
    using V = Vec<double>;
    constexpr size_t L = lanes<double>, wide = tile_vectors * L;
    double each[rows * wide], pairs[observed ? rows * wide : 1];
    V sum[rows] = {}, weight[observed ? rows : 1] = {};
    int current = all.cluster[first];
    const auto flush = [&] {
        for (size_t i = 0; i < rows; ++i) {
            double total = 0;
            for (size_t l = 0; l < L; ++l) total += sum[i][l];
            out[i * k + current] += total;
            sum[i] = V{};
            if constexpr (observed) {
                double heavy = 0;
                for (size_t l = 0; l < L; ++l) heavy += weight[i][l];
                compared[i * k + current] += heavy;
                weight[i] = V{};
            }
        }
    };
    for (size_t tile = first; tile < last; tile += tile_vectors) {
        weighted_distances<rows, observed>(points, d, all.values + tile * L * d, all.weights + tile * L, each, pairs);
        for (size_t v = 0; v < tile_vectors; ++v) {
            if (all.cluster[tile + v] != current) {
                flush();
                current = all.cluster[tile + v];
            }
            for (size_t i = 0; i < rows; ++i) sum[i] += load<V>(each + i * wide + v * L);
            if constexpr (observed)
                for (size_t i = 0; i < rows; ++i) weight[i] += load<V>(pairs + i * wide + v * L);
        }
    }
    flush();
}

// out (m x k) = sums over the rows x of each cluster of w |point - x scale|; the points are scaled already. If `observed`,
// over the cells that both have; `compared` (m x k) receives the weight of the rows that have such a cell.
template <class T, bool observed = false>
void distance_sums(const double *points, size_t m, const T *x, const double *w, const int *labels, size_t n, size_t d,
                   double scale, size_t k, double *out, double *compared) {
    constexpr size_t rows = observed ? (tile_rows + 1) / 2 : tile_rows;  // two sums for each take twice the registers
    for (size_t i = 0; i < m * k; ++i) out[i] = 0;
    for (size_t i = 0; observed && i < m * k; ++i) compared[i] = 0;
    const ClusterVectors all = cluster_vectors(x, w, labels, n, d, scale, k);
    constexpr size_t cached = 32 << 10;  // bytes of rows that stay in the nearest cache while all points pass by
    const size_t tile_bytes = tile_vectors * lanes<double> * d * sizeof(double);
    const size_t step = tile_vectors * (cached > tile_bytes ? cached / tile_bytes : 1);
    for (size_t first = 0; first < all.count; first += step) {
        const size_t last = least(first + step, all.count);
        size_t i = 0;
        for (; i + rows <= m; i += rows)
            add_distances<rows, observed>(points + i * d, d, all, first, last, k, out + i * k, observed ? compared + i * k : nullptr);
        for (; i < m; ++i) add_distances<1, observed>(points + i * d, d, all, first, last, k, out + i * k, observed ? compared + i * k : nullptr);
    }
}
