// The register tile of the scatter matrix, and the division of columns into panels.

#if FW_BYTES == 64
constexpr size_t tile_rows = 8, tile_vectors = 3;  // 24 of 32 registers are accumulators
#elif FW_BYTES == 32
constexpr size_t tile_rows = 4, tile_vectors = 3;  // 12 of 16
#elif defined(__aarch64__)
constexpr size_t tile_rows = 4, tile_vectors = 4;  // 16 of 32
#else
constexpr size_t tile_rows = 4, tile_vectors = 2;  // 8 of 16: without FMA each product needs a register too
#endif

// Divides columns into panels of `tile_vectors` vectors. The first panel takes the remainder and is padded to whole
// vectors. Off the diagonal it is always on the broadcast side, where the padding is skipped.
template <class T> struct Panels {
    static constexpr size_t full = tile_vectors * lanes<T>;
    size_t count, first, used;  // number of panels; width of the first; columns of data in the first

    explicit Panels(size_t d) {
        count = (d + full - 1) / full;
        used = d - (count - 1) * full;
        // A panel must be divisible into tiles of rows. If a vector is shorter than such a tile, the first panel is
        // full as well.
        first = lanes<T> < tile_rows ? full : round_up(used, lanes<T>);
    }
    size_t column(size_t p) const { return p ? used + (p - 1) * full : 0; }  // index among the data columns
    size_t place(size_t p) const { return p ? first + (p - 1) * full : 0; }  // index among the padded columns
    size_t width(size_t p) const { return p ? full : first; }
    size_t columns(size_t p) const { return p ? full : used; }
    size_t padded() const { return first + (count - 1) * full; }
};

// Lanes `from` and following in float64. The place is known when this is compiled: otherwise they would go through memory.
template <class T, size_t from, size_t... lane> inline Vec<double> widened(Vec<T> v, std::index_sequence<lane...>) {
    return Vec<double>{double(v[from + lane])...};
}

// sums[0..lanes<T>) += v, in float64.
template <class T, size_t from = 0> inline void add_to(double *sums, Vec<T> v) {
    constexpr size_t D = lanes<double>;
    settle(v);  // one after the other: GCC would widen all sums of a tile first, and has no registers for them
    const Vec<double> wide = widened<T, from>(v, std::make_index_sequence<D>{});
    store(sums + from, load<Vec<double>>(sums + from) + wide);
    if constexpr (from + D < lanes<T>) add_to<T, from + D>(sums, v);
}

// Sums of a tile that are yet to be added in float64. To convert, load, add and store takes as long as 5 rows of products, but
// not the units that multiply: the next tile does it between its products. That needs registers that only AVX-512 has to spare.
template <class T> struct HeldSums {
    static constexpr size_t count = tile_rows * tile_vectors, size = count * lanes<T>;
    static constexpr bool used = FW_BYTES == 64 && sizeof(T) < sizeof(double);
    static constexpr size_t steps = used ? 2 * count : 0;  // of a tile's products, two for each vector of sums
    alignas(64) T sums[size] = {};
    alignas(64) double nowhere[size] = {};
    double *to = nowhere;  // where they belong, side by side

    void add(size_t i) { add_to<T>(to + i * lanes<T>, load<Vec<T>>(sums + i * lanes<T>)); }
    void add_all() {
        for (size_t i = 0; i < count; ++i) add(i);
        to = nowhere;
    }
};

// What comes next and is fetched while a tile multiplies: values of both panels as fast as tiles use them up, and sums as fast
// as tiles of some 400 rows do. With many columns they are further away than the second-level cache.
template <class T> struct TileAhead {
    static constexpr size_t line = 64;
    static constexpr size_t steps_per_values = line / (tile_rows * sizeof(T));
    static constexpr size_t steps_per_sums = 384 * line / (tile_rows * tile_vectors * lanes<T> * sizeof(double));
    static constexpr bool holds_sums = HeldSums<T>::used;
    const char *left, *right, *sums;
    HeldSums<T> &held;

    // GCC drops calls of functions that only fetch.
    __attribute__((always_inline)) void fetch(size_t step) const {
        if (step % steps_per_values == 0) {
            __builtin_prefetch(left + step / steps_per_values * line);
            __builtin_prefetch(right + step / steps_per_values * line);
        }
        if (step % steps_per_sums == 0) __builtin_prefetch(sums + step / steps_per_sums * line, 1);
    }
    void move_on(size_t steps) {
        left += steps / steps_per_values * line;
        right += steps / steps_per_values * line;
        sums += steps / steps_per_sums * line;
    }
};
struct NothingAhead {
    static constexpr bool holds_sums = false;
    void fetch(size_t) const {}
    void move_on(size_t) {}
};

// sum[i][j] += a[i] * b[j], for vectors of j.
template <class T, size_t rows, size_t nv> inline void add_products_of_row(const T *a, const T *b, Vec<T> (&sum)[rows][nv]) {
    using V = Vec<T>;
    V right[nv];
    FW_UNROLL(4)
    for (size_t v = 0; v < nv; ++v) right[v] = load<V>(b + v * lanes<T>);
    FW_UNROLL(16)
    for (size_t i = 0; i < rows; ++i) {
        const V left = broadcast(a[i]);
        FW_UNROLL(4)
        for (size_t v = 0; v < nv; ++v) sum[i][v] += left * right[v];
    }
}

// out[i][j] += sum over k of a[k][i] * b[k][j], for `rows` rows of C and `nv` vectors of its columns.
// The sum over k is formed in T and added in float64, so a float32 sum has at most `depth` terms.
template <class T, size_t rows, size_t nv, class Next = NothingAhead>
inline void tile(const T *a, size_t a_step, const T *b, size_t b_step, size_t depth,
                 double *out, size_t out_step, Next next = {}) {
    constexpr size_t L = lanes<T>;
    Vec<T> sum[rows][nv] = {};
    size_t k = 0;
    if constexpr (Next::holds_sums) {
        static_assert(rows == tile_rows && nv == tile_vectors);
        if (depth < next.held.steps) next.held.add_all();
        else
            for (; k < next.held.steps; k += 2, a += 2 * a_step, b += 2 * b_step) {
                next.held.add(k / 2);
                next.fetch(k);
                add_products_of_row<T>(a, b, sum);
                next.fetch(k + 1);
                add_products_of_row<T>(a + a_step, b + b_step, sum);
            }
    }
    FW_UNROLL(2)
    for (; k < depth; ++k, a += a_step, b += b_step) {
        next.fetch(k);
        add_products_of_row<T>(a, b, sum);
    }
    if constexpr (Next::holds_sums) next.held.to = out;
    FW_UNROLL(16)
    for (size_t i = 0; i < rows; ++i) {
        FW_UNROLL(4)
        for (size_t v = 0; v < nv; ++v) {
            if constexpr (Next::holds_sums) store(next.held.sums + (i * nv + v) * L, sum[i][v]);
            else add_to<T>(out + i * out_step + v * L, sum[i][v]);
        }
    }
}

// A diagonal block of C: a panel times itself, without the vectors left of the diagonal.
template <class T, size_t nv>
inline void on_diagonal(const T *a, const T *b, size_t width, size_t used, size_t depth, double *out) {
    constexpr size_t L = lanes<T>, full = Panels<T>::full;
    // With only one vector of columns, more rows are needed to keep the FMA units busy.
    constexpr size_t wanted = nv == 1 ? 2 * tile_rows : tile_rows;
    constexpr size_t rows = wanted < L ? wanted : L;
    const size_t v = width / L - nv;
    for (size_t i = v * L; i < least(used, (v + 1) * L); i += rows)
        tile<T, rows, nv>(a + i, width, b + v * L, width, depth, out + i * full + v * L, full);
    if constexpr (nv > 1) on_diagonal<T, nv - 1>(a, b, width, used, depth, out);
}

// The same for a panel whose number of vectors is known only at run time.
template <class T, size_t nv = tile_vectors>
inline void diagonal(const T *a, const T *b, size_t width, size_t used, size_t depth, double *out) {
    if (width == nv * lanes<T>) return on_diagonal<T, nv>(a, b, width, used, depth, out);
    if constexpr (nv > 1) diagonal<T, nv - 1>(a, b, width, used, depth, out);
}

// A block of C to the right of the diagonal, where the right-hand panel is always full.
template <class T, class Next = NothingAhead>
inline void off_diagonal(const T *a, size_t width, size_t used, const T *b, size_t depth, double *out, Next &&next = {}) {
    constexpr size_t full = Panels<T>::full;
    for (size_t i = 0; i < used; i += tile_rows) {
        tile<T, tile_rows, tile_vectors>(a + i, width, b, full, depth, out + i * full, full, next);
        next.move_on(depth);
    }
}
