// The nearest of a few targets for rows with many columns: columns are in the lanes. With so few products for each value,
// transposing rows to have them in the lanes would take as long as the products.

#if FW_BYTES == 64
constexpr size_t few_tile_rows = 4, few_tile_targets = 5;  // 20 of 32 registers are sums
constexpr bool few_quick = true;
#else
constexpr size_t few_tile_rows = 2, few_tile_targets = 4;
constexpr bool few_quick = false;  // too few registers
#endif
constexpr size_t few_least_columns = 192, few_most = 24;

// Adds the halves of two vectors: lanes without bit `h` are sums of lanes of a, the others of b.
template <class T, size_t h, size_t... lane> inline Vec<T> add_halves(Vec<T> a, Vec<T> b, std::index_sequence<lane...>) {
    constexpr size_t L = lanes<T>;
    return __builtin_shufflevector(a, b, int(lane & h ? L + lane : lane)...) +
           __builtin_shufflevector(a, b, int(lane & h ? L + lane - h : lane + h)...);
}

// Adds up the lanes of `count` vectors, until h lanes are left of each; those of vector i are then in lanes i * h and after.
template <class T, size_t count, size_t h = lanes<T> / 2> inline Vec<T> fold_lanes(Vec<T> *v) {
    if constexpr (count == 1) return v[0];
    else {
        FW_UNROLL(8)
        for (size_t i = 0; i < count / 2; ++i)
            v[i] = add_halves<T, h>(v[i], v[i + count / 2], std::make_index_sequence<lanes<T>>{});
        return fold_lanes<T, count / 2, h / 2>(v);
    }
}

// Compares panels of rows with all targets, which are in order.
template <class T> class FewTargets {
    using V = Vec<T>;
    static constexpr size_t L = lanes<T>, R = few_tile_rows, G = L / R;
    const Targets<T> &t;
    const size_t stride, tiles;
    T *y;      // R rows, shifted
    T *parts;  // by target: G vectors of sums that are still to be folded; at last, squared lengths of the rows
    Ints<T> mask;  // of the last vector of a row
    const T *rows[R], *next[R];

    static size_t stride_of(const Targets<T> &t) { return round_up(t.d, 16); }

    template <size_t nc, bool first, bool whole>
    __attribute__((always_inline)) inline void multiply(size_t j, const T *c, V (&sum)[nc][R], V (&squares)[R]) const {
        V row[R];
        if constexpr (first) {
            const V p = load<V>(t.pivot + j);
            FW_UNROLL(4)
            for (size_t r = 0; r < R; ++r) {
                row[r] = load<V>(rows[r] + j) * t.scale - p;
                if constexpr (!whole) row[r] = (V)((Ints<T>)row[r] & mask);
                store(y + r * stride + j, row[r]);
                squares[r] += row[r] * row[r];
                __builtin_prefetch(next[r] + j, 0, 1);
            }
        } else {
            FW_UNROLL(4)
            for (size_t r = 0; r < R; ++r) row[r] = load<V>(y + r * stride + j);
        }
        FW_UNROLL(8)
        for (size_t i = 0; i < nc; ++i) {
            const V one = load<V>(c + i * t.d + j);
            FW_UNROLL(4)
            for (size_t r = 0; r < R; ++r) sum[i][r] += one * row[r];
        }
    }

    // Products of R rows, the g-th ones of a vector's, with the targets from `slot` on.
    template <size_t nc, bool first> __attribute__((noinline)) void multiply_all(size_t slot, size_t g) const {
        V sum[nc][R] = {}, squares[R] = {};
        const T *c = t.shifted + slot * t.d;
        size_t j = 0;
        for (; j + L <= t.d; j += L) multiply<nc, first, true>(j, c, sum, squares);
        if (j < t.d) multiply<nc, first, false>(j, c, sum, squares);
        FW_UNROLL(8)
        for (size_t i = 0; i < nc; ++i) store(parts + ((slot + i) * G + g) * L, fold_lanes<T, R>(sum[i]));
        if constexpr (first) store(parts + (t.k * G + g) * L, fold_lanes<T, R>(squares));
    }
    template <bool first, size_t nc = few_tile_targets> inline void multiply_width(size_t width, size_t slot, size_t g) const {
        if (width == nc) return multiply_all<nc, first>(slot, g);
        if constexpr (nc > 1) multiply_width<first, nc - 1>(width, slot, g);
    }
    inline V folded(size_t slot) const {
        V v[G];
        FW_UNROLL(8)
        for (size_t g = 0; g < G; ++g) v[g] = load<V>(parts + (slot * G + g) * L);
        return fold_lanes<T, G, G / 2>(v);
    }

public:
    // Whether this is the quickest way, and the error bound of scores (longest_chain) holds for its sums, too.
    static bool suit(const Targets<T> &t) {
        return few_quick && t.in_order && t.d >= few_least_columns && t.k <= few_most && double(t.d / L + 10) <= longest_chain(t.d);
    }
    static size_t bytes(const Targets<T> &t) {
        return round_up((R * stride_of(t) + (t.k + 1) * G * L) * sizeof(T), 64);
    }
    FewTargets(const Targets<T> &t_, char *memory)
        : t(t_), stride(stride_of(t_)), tiles((t_.k + few_tile_targets - 1) / few_tile_targets), y((T *)memory), parts(y + R * stride) {
        for (size_t i = 0; i < L; ++i) mask[i] = i < t.d % L ? -1 : 0;
    }

    // `after` lists the rows that will be compared next, as many as a vector has lanes; they are fetched.
    void compare(PanelWorkspace<T> &work, const T *const *after, BestTwo<T> &leaders) {
        constexpr size_t chunk = size_t(1) << tag_bits;
        FW_UNROLL(1)
        for (size_t v = 0; v < panel_vectors; ++v) {
            const T *const *here = work.rows + v * L, *const *ahead = v + 1 < panel_vectors ? here + L : after;
            FW_UNROLL(1)
            for (size_t g = 0; g < G; ++g) {
                for (size_t r = 0; r < R; ++r) rows[r] = here[r * G + g], next[r] = ahead[r * G + g];
                size_t slot = 0;
                for (size_t tile = 0; tile < tiles; ++tile) {
                    const size_t width = t.k / tiles + (tile < t.k % tiles);
                    if (tile) multiply_width<false>(width, slot, g);
                    else multiply_width<true>(width, slot, g);
                    slot += width;
                }
            }
            store(work.squares + v * L, folded(t.k));
            for (size_t c = 0; c < t.k; c += chunk) {
                V top = V{} - T(__builtin_inff()), second = top;
                for (size_t i = 0; i < chunk && c + i < t.k; ++i) {
                    const V score = BestTwo<T>::tagged(folded(c + i) + t.minus_half[c + i], typename LaneInt<T>::type(i));
                    second = larger(second, smaller(top, score));
                    top = larger(top, score);
                }
                leaders.merge(v, c, top, second);
            }
        }
    }
};
