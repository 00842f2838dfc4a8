// The nearest of a few targets for rows with many columns: columns are in the lanes. With so few products for each value,
// transposing rows to have them in the lanes would take as long as the products.

#if FW_BYTES == 64
constexpr size_t few_tile_rows = 4, few_tile_targets = 6;  // 24 of 32 registers are sums
constexpr bool few_quick = true;
#else
constexpr size_t few_tile_rows = 2, few_tile_targets = 6;  // 12 of 16
constexpr bool few_quick = false;  // transposing is quicker
#endif
constexpr size_t few_least_columns = 192;

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

// The scores of a vector of rows for some targets, with columns in the lanes.
template <class T> class DotScores {
    using V = Vec<T>;
    static constexpr size_t L = lanes<T>, R = few_tile_rows, G = L / R;
    const Targets<T> &t;
    T *y;      // R rows, shifted
    T *parts;  // by target: G vectors of sums that are still to be folded; at last, squared lengths of the rows
    Ints<T> mask;  // of the last vector of a row
    const T *rows[R], *next[R];  // rows to compare; rows to fetch meanwhile

    // Products of R rows with nc targets. The first time, the rows are shifted, and their squares are added up.
    template <size_t nc, bool first, bool whole>
    __attribute__((always_inline)) inline void multiply(size_t j, const T *c, V (&sum)[nc][R], V (&squares)[R]) const {
        V row[R];
        if constexpr (first) {
            const V p = load<V>(t.pivot + j);
            FW_UNROLL(4)
            for (size_t r = 0; r < R; ++r) {
                row[r] = load<V>(rows[r] + j) * t.scale - p;
                if constexpr (!whole) row[r] = (V)((Ints<T>)row[r] & mask);
                store(y + r * t.stride + j, row[r]);
                squares[r] += row[r] * row[r];
                if (L * sizeof(T) == 64 || j % 16 == 0) __builtin_prefetch(next[r] + j, 0, 1);
            }
        } else {
            FW_UNROLL(4)
            for (size_t r = 0; r < R; ++r) row[r] = load<V>(rows[r] + j);
        }
        FW_UNROLL(8)
        for (size_t i = 0; i < nc; ++i) {
            V one = load<V>(c + i * t.stride + j);
            settle(one);  // one load for all rows
            FW_UNROLL(4)
            for (size_t r = 0; r < R; ++r) sum[i][r] += one * row[r];
        }
    }
    template <size_t nc, bool first>
    __attribute__((noinline)) void multiply_all(size_t slot, T *to, T *to_squares) const {
        V sum[nc][R] = {}, squares[R] = {};
        const T *c = t.by_slot + slot * t.stride;
        size_t j = 0;
        for (; j + L <= t.d; j += L) multiply<nc, first, true>(j, c, sum, squares);
        if (j < t.d) multiply<nc, first, false>(j, c, sum, squares);
        FW_UNROLL(8)
        for (size_t i = 0; i < nc; ++i) store(to + i * G * L, fold_lanes<T, R>(sum[i]));
        if constexpr (first) store(to_squares, fold_lanes<T, R>(squares));
    }
    template <bool first, size_t nc = few_tile_targets>
    inline void multiply_width(size_t width, size_t slot, T *to, T *to_squares) const {
        if (width == nc) return multiply_all<nc, first>(slot, to, to_squares);
        if constexpr (nc > 1) multiply_width<first, nc - 1>(width, slot, to, to_squares);
    }
    inline V folded(size_t i) const {
        V v[G];
        FW_UNROLL(8)
        for (size_t g = 0; g < G; ++g) v[g] = load<V>(parts + (i * G + g) * L);
        return fold_lanes<T, G, G / 2>(v);
    }

public:
    // Whether the error bound of scores (longest_chain) holds for these sums, too.
    static bool exact_enough(size_t d) { return double(d / L + 10) <= longest_chain(d); }
    // Room for comparisons with up to `most` targets at a time.
    static size_t bytes(const Targets<T> &t, size_t most) {
        return round_up((R * t.stride + (most + 1) * G * L) * sizeof(T), 64);
    }
    DotScores(const Targets<T> &t_, char *memory) : t(t_), y((T *)memory), parts(y + R * t_.stride) {
        for (size_t i = 0; i < L; ++i) mask[i] = i < t.d % L ? -1 : 0;
    }

    // Updates vector v of `leaders` with the scores of a vector of rows for the slots from `from` to `end`. If `shifted`, the
    // rows are y already, with zeros up to whole vectors; otherwise their squared lengths are written to `squares`, and the
    // rows in `after` are fetched. Only `used` tiles of rows are compared: the i-th has those in lanes i, i + row_tiles, ...
    static constexpr size_t row_tiles = G;
    template <bool shifted>
    void compare(const T *const *here, const T *const *after, size_t from, size_t end, T *squares, size_t v, BestTwo<T> &leaders,
                 size_t used = row_tiles) {
        constexpr size_t chunk = size_t(1) << tag_bits;
        const size_t count = end - from, tiles = (count + few_tile_targets - 1) / few_tile_targets;
        FW_UNROLL(1)
        for (size_t g = 0; g < used; ++g) {
            for (size_t r = 0; r < R; ++r) rows[r] = here[r * G + g];
            if constexpr (!shifted)
                for (size_t r = 0; r < R; ++r) next[r] = after[r * G + g];
            size_t done = 0;
            for (size_t tile = 0; tile < tiles; ++tile) {
                const size_t width = count / tiles + (tile < count % tiles);
                T *to = parts + (done * G + g) * L;
                if (tile || shifted) {
                    multiply_width<false>(width, from + done, to, nullptr);
                } else {
                    multiply_width<true>(width, from, to, parts + (count * G + g) * L);
                    for (size_t r = 0; r < R; ++r) rows[r] = y + r * t.stride;
                }
                done += width;
            }
        }
        if constexpr (!shifted) store(squares, folded(count));
        for (size_t c = 0; c < count; c += chunk) {
            V top = V{} - T(__builtin_inff()), second = top;
            for (size_t i = 0; i < chunk && c + i < count; ++i) {
                const V score =
                    BestTwo<T>::tagged(folded(c + i) + t.minus_half[from + c + i], typename LaneInt<T>::type(i));
                second = larger(second, smaller(top, score));
                top = larger(top, score);
            }
            leaders.merge(v, from + c, top, second);
        }
    }
};

// Compares panels of rows with all targets, if they are few.
template <class T> struct FewTargets {
    DotScores<T> scores;
    const size_t k;

    static bool suit(const Targets<T> &t) {
        return few_quick && t.by_slot && t.d >= few_least_columns && t.k <= few_most &&
               DotScores<T>::exact_enough(t.d);
    }
    static size_t bytes(const Targets<T> &t) { return suit(t) ? DotScores<T>::bytes(t, t.k) : 0; }
    FewTargets(const Targets<T> &t, char *memory) : scores(t, memory), k(t.k) {}

    // `after` lists the rows that will be compared next, as many as a vector has lanes.
    void compare(PanelWorkspace<T> &work, const T *const *after, BestTwo<T> &leaders) {
        constexpr size_t L = lanes<T>;
        for (size_t v = 0; v < panel_vectors; ++v) {
            const T *const *here = work.rows + v * L;
            scores.template compare<false>(here, v + 1 < panel_vectors ? here + L : after, 0, k, work.squares + v * L, v, leaders);
        }
    }
};
