// The nearest target of rows that are rounded to integers of 16 bits: an instruction multiplies and adds twice as many of them
// as of float32 numbers, sums are exact, and half as many values are transposed. Where the lead of the best target does
// not exceed what rounding can do (int16_storage.h), the row is compared once more, in floating point; so the labels are the same.

#if defined(__x86_64__) && FW_BYTES >= 32
using IntVec = Vec<int>;
using UnsignedVec = Vec<unsigned>;

FW_TWO_TO_ONE(larger, "vpmaxsd", int)
FW_TWO_TO_ONE(smaller, "vpminsd", int)
FW_TWO_TO_ONE(packed_int16, "vpackssdw", int)

inline IntVec nearest_integers(Vec<float> v) {
    IntVec result;
    __asm__("vcvtps2dq %1, %0" : "=" FW_REGISTER(result) : FW_REGISTER(v));
    return result;
}
inline Vec<float> to_float(IntVec v) {
    Vec<float> result;
    __asm__("vcvtdq2ps %1, %0" : "=" FW_REGISTER(result) : FW_REGISTER(v));
    return result;
}
inline Vec<float> square_roots(Vec<float> v) {
    Vec<float> result;
    __asm__("vsqrtps %1, %0" : "=" FW_REGISTER(result) : FW_REGISTER(v));
    return result;
}

// sum += the products of both halves of each lane of a and b.
__attribute__((always_inline)) inline void add_products(IntVec &sum, IntVec a, IntVec b) {
#if FW_BYTES == 64
    __asm__("vpdpwssd %2, %1, %0" : "+v"(sum) : "v"(a), "v"(b));
#else
    IntVec products;
    __asm__("vpmaddwd %2, %1, %0" : "=x"(products) : "x"(a), "x"(b));
    sum = (IntVec)((UnsignedVec)sum + (UnsignedVec)products);  // sums that leave 32 bits are not used
#endif
}
// The same for one pair of a target in memory.
__attribute__((always_inline)) inline void add_products(IntVec &sum, IntVec a, const int *pair) {
#if FW_BYTES == 64
    __asm__("vpdpwssd %2%{1to16%}, %1, %0" : "+v"(sum) : "v"(a), "m"(*pair));
#else
    add_products(sum, a, broadcast(*pair));
#endif
}

// Quadruples of adjacent rows, two columns in each lane: even and odd pairs of columns apart, all rows of a pair together.
inline void gather_pairs(const IntVec *rows, IntVec *to) {
    using V = Vec<float>;
    constexpr size_t G = lanes<int> / 4;  // parts of 16 bytes in a vector; quadruples of rows
    V even[G], odd[G];
    FW_UNROLL(4)
    for (size_t q = 0; q < G; ++q) {
        const V a = (V)packed_int16(rows[4 * q], rows[4 * q + 1]), b = (V)packed_int16(rows[4 * q + 2], rows[4 * q + 3]);
        even[q] = every_other<false>(a, b);
        odd[q] = every_other<true>(a, b);
    }
    transpose_between_parts<float>(even);
    transpose_between_parts<float>(odd);
    FW_UNROLL(4)
    for (size_t l = 0; l < G; ++l) {
        to[2 * l] = (IntVec)even[l];
        to[2 * l + 1] = (IntVec)odd[l];
    }
}

// Rounds as many columns as a vector has lanes, from column j on, of as many rows: half as many vectors of pairs.
inline void round_rows(const float *const *rows, size_t j, const Int16Targets &t, IntVec *to) {
    constexpr size_t L = lanes<float>;
    const Vec<float> p = load<Vec<float>>(t.row_pivot + j);
    IntVec y[L];
    FW_UNROLL(16)
    for (size_t i = 0; i < L; ++i) y[i] = nearest_integers(load<Vec<float>>(rows[i] + j) * t.row_scale - p);
    gather_pairs(y, to);
}

#if FW_BYTES == 64
// The same for adjacent rows of 8 columns, of which two fill a vector.
inline void round_eights(const float *x, const Int16Targets &t, IntVec *to) {
    using V = Vec<float>;
    typedef float Half __attribute__((vector_size(32)));
    const Half half = load<Half>(t.row_pivot);
    const V p = __builtin_shufflevector(half, half, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    IntVec y[8];
    FW_UNROLL(8)
    for (size_t i = 0; i < 8; ++i) {  // rows i and i + 4; for the last four vectors, 4 rows further on
        const float *row = x + (i + (i & 4)) * 8;
        y[i] = nearest_integers(
            __builtin_shufflevector(load<Half>(row), load<Half>(row + 32), 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15) * t.row_scale - p);
    }
    V even[2], odd[2];
    FW_UNROLL(2)
    for (size_t q = 0; q < 2; ++q) {
        const V a = (V)packed_int16(y[4 * q], y[4 * q + 1]), b = (V)packed_int16(y[4 * q + 2], y[4 * q + 3]);
        even[q] = every_other<false>(a, b);
        odd[q] = every_other<true>(a, b);
    }
    to[0] = (IntVec)alternate_parts<float, false>(even[0], even[1]);
    to[1] = (IntVec)alternate_parts<float, false>(odd[0], odd[1]);
    to[2] = (IntVec)alternate_parts<float, true>(even[0], even[1]);
    to[3] = (IntVec)alternate_parts<float, true>(odd[0], odd[1]);
}
#endif

// The sum of the squares of rows, two pairs of columns at a time: more could exceed 32 bits.
struct Int16Squares {
    Vec<float> sum = {};
    inline void add(IntVec pair) {
        IntVec products = {};
        add_products(products, pair, pair);
        sum += to_float(products);
    }
    inline void add(IntVec pair, IntVec other) {
        IntVec products = {};
        add_products(products, pair, pair);
        add_products(products, other, other);
        sum += to_float(products);
    }
};

// Which of up to 256 targets has the best score is written into the lowest bits of scores: next to their rounding, that is
// nothing.
constexpr size_t int16_chunk = 256;
constexpr int int16_tags = int(int16_chunk) - 1, no_score = -0x7fffffff - 1;

struct Int16Numbers {
    int of[int16_chunk];
    constexpr Int16Numbers() : of() {
        for (int i = 0; i < int(int16_chunk); ++i) of[i] = i;
    }
};
constexpr Int16Numbers int16_numbers;  // a load into all lanes keeps none of the computing units busy

inline IntVec tagged_int16(IntVec score, IntVec tag) { return (score & ~int16_tags) | tag; }

// The two best scores of a vector of rows for the targets of a chunk.
struct BestInts {
    IntVec best = broadcast(no_score), second = broadcast(no_score);
    __attribute__((always_inline)) inline void take(IntVec score, IntVec tag) {
        score = tagged_int16(score, tag);
        second = larger(second, smaller(best, score));
        best = larger(best, score);
    }
};

// The same for all targets, and the first slot of the chunk that the best is in.
struct BestOfChunks : BestInts {
    IntVec chunk = {};
    inline IntVec slot() const { return chunk + (best & int16_tags); }
    inline void merge(int first, const BestInts &found) {
        chunk = found.best > best ? broadcast(first) : chunk;
        second = larger(larger(second, found.second), smaller(best, found.best));
        best = larger(best, found.best);
    }
    // Which rows are not certain, as bits. The lead may need 32 bits without a sign: half of it does not.
    inline unsigned long long doubtful(const Int16Targets &t, Vec<float> squares) const {
        const IntVec lead = (IntVec)(((UnsignedVec)best - (UnsignedVec)second) >> 1);
        return false_lanes((to_float(lead) * 2 > t.per_length * square_roots(squares) + t.flat) & (squares <= t.most_squares));
    }
};

// The labels of some panels of rows. Doubtful rows are compared once more, in panels of their own, before labels are written.
class Int16Labels {
    static constexpr size_t L = lanes<int>, N = panel_rows<float>, least_panels = 16, most_panels = 64, panel_bytes = 256 << 10;
    const float *x;
    const Targets<float> &t;
    const Int16Targets &rounded;
    PanelWorkspace<float> &work;  // its list of rows is changed
    ChangeLog<float> &log;
    AssignCounts &result;
    const TieMargin<float> margin;
    const size_t room;
    size_t first = 0, rows = 0, waiting = 0;  // rows from `first` on have labels here; some of them are doubtful
    size_t settled = 0;  // of the rows before, those that were doubtful
    int label[most_panels * N];
    short doubtful[most_panels * N];

    void settle(size_t from, size_t count) {
        for (size_t i = 0; i < count; ++i) work.rows[i] = x + (first + size_t(doubtful[from + i])) * t.d;
        work.use_rows(count, t);
        BestTwo<float> leaders;
        leaders.clear();
        score_groups<float>(work, t, [](size_t) { return true; },
                            [&](size_t, size_t slot, auto &sum) { leaders.update(slot, sum); });
        for (size_t i = 0; i < count; ++i) {
            const float best = leaders.best[i / L][i % L], second = leaders.second[i / L][i % L];
            if (margin.decides(best, second, square_root(work.squares[i]))) label[doubtful[from + i]] = leaders.slot(i / L)[i % L];
            else label[doubtful[from + i]] = resolve_tie(work.rows[i], t, work.y, work.scores, result);
        }
    }

public:
    Int16Labels(const float *x_, const Targets<float> &t_, const Int16Targets &rounded_, PanelWorkspace<float> &work_,
                ChangeLog<float> &log_, AssignCounts &result_)
        : x(x_), t(t_), rounded(rounded_), work(work_), log(log_), result(result_), margin(t_),
          room(larger(least(most_panels, panel_bytes / (N * t_.d * sizeof(float))), least_panels) * N) {}
    Int16Labels(const Int16Labels &) = delete;

    size_t written() const { return first; }
    // Whether so many rows were doubtful that comparing all in floating point takes less time.
    bool hopeless() const { return first >= 1024 && settled > first / 4; }

    // Takes the rows of the next panel.
    inline void take(const BestOfChunks (&found)[panel_vectors], const Vec<float> (&squares)[panel_vectors], size_t count) {
        unsigned long long unsure = 0;
        FW_UNROLL(4)
        for (size_t v = 0; v < panel_vectors; ++v) {
            unsure |= found[v].doubtful(rounded, squares[v]) << v * L;
            store(label + rows + v * L, found[v].slot());
        }
        if (count < N) unsure &= (1ull << count) - 1;
        for (; unsure; unsure &= unsure - 1) doubtful[waiting++] = short(rows + size_t(__builtin_ctzll(unsure)));
        rows += count;
        if (rows == room) write();
    }
    __attribute__((noinline)) void write() {
        for (size_t from = 0; from < waiting; from += N) settle(from, least(N, waiting - from));
        for (size_t at = 0; at < rows; at += N) {
            if (rows - at >= N) {
                IntVec some[panel_vectors];
                __builtin_memcpy(some, label + at, sizeof some);
                log.write_labels(some, first + at);
            } else {
                for (size_t i = at; i < rows; ++i) log.write_label(first + i, label[i]);
            }
            log.after_panel(first + at);
        }
        first += rows;
        settled += waiting;
        rows = waiting = 0;
    }
};

// Compares a vector of rows with target `c`, which gets this tag.
template <size_t pairs>
__attribute__((always_inline)) inline void take_int16_target(const IntVec (&y)[pairs], const Int16Targets &t, size_t c, int tag,
                                                             BestInts &found) {
    IntVec score = broadcast(t.start[c]);
    FW_UNROLL(8)
    for (size_t p = 0; p < pairs; ++p) add_products(score, y[p], t.packed + c * pairs + p);
    found.take(score, broadcast(int16_numbers.of[tag]));
}

template <size_t d>
size_t nearest_int16_short(const float *x, size_t n, const Targets<float> &t, ChangeLog<float> &log, AssignCounts &result) {
    constexpr size_t N = panel_rows<float>, L = lanes<float>, line = 64 / sizeof(float);
    constexpr size_t pairs = (d + 1) / 2;
    const Int16Targets rounded = *t.rounded;
    PanelWorkspace<float> work(x, n, t);
    Int16Labels labels(x, t, rounded, work, log, result);
    for (size_t first = 0; first < n && !labels.hopeless(); first += N) {
        const size_t count = least(N, n - first);
        const bool eights = FW_BYTES == 64 && d == 8 && count == N;
        const float *after = x + (first + N) * d + 4096 / sizeof(float);
        if (!eights) work.use_rows_from(x + first * d, count, t);
        BestOfChunks found[panel_vectors];
        Vec<float> squares[panel_vectors];
        FW_UNROLL(1)
        for (size_t v = 0; v < panel_vectors; ++v) {
            IntVec y[pairs];
#if FW_BYTES == 64
            if (d == 8 && eights) {
                IntVec all[4];
                round_eights(x + (first + v * L) * d, rounded, all);
                FW_UNROLL(8)
                for (size_t p = 0; p < (pairs < 4 ? pairs : 4); ++p) y[p] = all[p];
            } else
#endif
            {
                IntVec all[int16_short / 2];
                round_rows(work.rows + v * L, 0, rounded, all);
                if constexpr (d > L) round_rows(work.rows + v * L, L, rounded, all + L / 2);
                FW_UNROLL(8)
                for (size_t p = 0; p < pairs; ++p) y[p] = all[p];
            }
            if constexpr (d % 2) y[pairs - 1] &= 0xffff;  // the other half belongs to the next row
            for (size_t i = 0; i < L * d; i += line) __builtin_prefetch(after + v * L * d + i, 0, 3);
            Int16Squares sum;
            FW_UNROLL(8)
            for (size_t p = 0; p + 2 <= pairs; p += 2) sum.add(y[p], y[p + 1]);
            if constexpr (pairs % 2) sum.add(y[pairs - 1]);
            squares[v] = sum.sum;
            for (size_t c = 0; c < t.k; c += int16_chunk) {
                BestInts best;
                const size_t some = least(t.k - c, int16_chunk);
                size_t i = 0;
                for (; i + 4 <= some; i += 4) {
                    FW_UNROLL(4)
                    for (size_t u = 0; u < 4; ++u) take_int16_target<pairs>(y, rounded, c + i + u, int(i + u), best);
                }
                for (; i < some; ++i) take_int16_target<pairs>(y, rounded, c + i, int(i), best);
                found[v].merge(int(c), best);
            }
        }
        labels.take(found, squares, count);
    }
    labels.write();
    return labels.written();
}

template <size_t d>
size_t nearest_int16_short_of(const float *x, size_t n, const Targets<float> &t, ChangeLog<float> &log, AssignCounts &result) {
    if constexpr (d > int16_least_columns)
        if (t.d != d) return nearest_int16_short_of<d - 1>(x, n, t, log, result);
    return nearest_int16_short<d>(x, n, t, log, result);
}

// Rounds the columns from j on, as many as a vector has lanes (or, unless `whole`, fewer), of a vector of rows.
template <bool whole>
inline void round_columns(const float *const *rows, size_t j, size_t d, const Int16Targets &t, int *to, Int16Squares &sum) {
    constexpr size_t half = lanes<float> / 2, N = panel_rows<float>;
    IntVec y[half];
    round_rows(rows, j, t, y);
    if constexpr (whole) {
        FW_UNROLL(8)
        for (size_t p = 0; p < half; p += 2) {
            store(to + p * N, y[p]);
            store(to + (p + 1) * N, y[p + 1]);
            sum.add(y[p], y[p + 1]);
        }
    } else {
        const size_t some = t.pairs - j / 2;
        FW_UNROLL(8)
        for (size_t p = 0; p < half; ++p) {
            if (p >= some) break;
            if (d % 2 && p + 1 == some) y[p] &= 0xffff;  // the other half belongs to the next row
            store(to + p * N, y[p]);
            sum.add(y[p]);
        }
    }
}

// Rounds a panel of rows as [pair][row], with the squares of its rows.
inline void round_panel(const float *const *rows, size_t d, const Int16Targets &t, int *panel, Vec<float> (&squares)[panel_vectors]) {
    constexpr size_t L = lanes<float>, N = panel_rows<float>;
    Int16Squares sums[panel_vectors];
    size_t j = 0;
    for (; j + L <= d; j += L) {
        FW_UNROLL(1)
        for (size_t v = 0; v < panel_vectors; ++v)
            round_columns<true>(rows + v * L, j, d, t, panel + j / 2 * N + v * L, sums[v]);
    }
    if (j < d) {
        FW_UNROLL(1)
        for (size_t v = 0; v < panel_vectors; ++v)
            round_columns<false>(rows + v * L, j, d, t, panel + j / 2 * N + v * L, sums[v]);
    }
    for (size_t v = 0; v < panel_vectors; ++v) squares[v] = sums[v].sum;
}

// `lines` cache lines of those from `after` on are fetched with every pair of columns.
template <size_t nc, size_t lines>
__attribute__((noinline)) void score_int16(const int *panel, const Int16Targets &t, size_t slot, int tag, const float *after,
                                           BestInts (&found)[panel_vectors]) {
    constexpr size_t L = lanes<int>, N = panel_rows<float>, line = 16;
    IntVec sum[nc][panel_vectors];
    FW_UNROLL(8)
    for (size_t i = 0; i < nc; ++i) {
        FW_UNROLL(4)
        for (size_t v = 0; v < panel_vectors; ++v) sum[i][v] = broadcast(t.start[slot + i]);
    }
    const int *c = t.packed + slot * t.pairs;
    for (size_t p = 0; p < t.pairs; ++p, c += nc, panel += N) {
        IntVec row[panel_vectors];
        FW_UNROLL(4)
        for (size_t v = 0; v < panel_vectors; ++v) row[v] = load<IntVec>(panel + v * L);
        FW_UNROLL(8)
        for (size_t u = 0; u < lines; ++u) __builtin_prefetch(after + (p * lines + u) * line, 0, 1);
        FW_UNROLL(8)
        for (size_t i = 0; i < nc; ++i) {
            const IntVec one = broadcast(c[i]);
            FW_UNROLL(4)
            for (size_t v = 0; v < panel_vectors; ++v) add_products(sum[i][v], row[v], one);
        }
    }
    FW_UNROLL(4)
    for (size_t v = 0; v < panel_vectors; ++v) {
        BestInts best = found[v];
        FW_UNROLL(8)
        for (size_t i = 0; i < nc; ++i) best.take(sum[i][v], broadcast(int16_numbers.of[size_t(tag) + i]));
        found[v] = best;
    }
}

template <size_t lines, size_t nc>
inline void score_int16_width(size_t width, const int *panel, const Int16Targets &t, size_t slot, int tag, const float *after,
                              BestInts (&found)[panel_vectors]) {
    if (width == nc) return score_int16<nc, lines>(panel, t, slot, tag, after, found);
    if constexpr (nc > 1) score_int16_width<lines, nc - 1>(width, panel, t, slot, tag, after, found);
}

// Writes the labels of rows up to the one whose number it returns: all n, unless it is better to go on in floating point.
inline size_t nearest_int16(const float *x, size_t n, const Targets<float> &t, ChangeLog<float> &log, AssignCounts &result) {
    if (t.d <= int16_short) return nearest_int16_short_of<int16_short>(x, n, t, log, result);
    constexpr size_t N = panel_rows<float>;
    const Int16Targets rounded = *t.rounded;
    char *extra;
    PanelWorkspace<float> work(x, n, t, rounded.pairs * N * sizeof(int), &extra);
    int *panel = (int *)extra;
    constexpr size_t lines = 2 * N / 16;  // that a pair of columns of the next panel takes up
    static_assert(lines == 2 || lines == 6);  // that the paces below divide
    const size_t tiles = size_t(t.panels[0]), pace = (lines + tiles - 1) / tiles;
    Int16Labels labels(x, t, rounded, work, log, result);
    for (size_t first = 0; first < n && !labels.hopeless(); first += N) {
        const size_t count = least(N, n - first);
        work.use_rows_from(x + first * t.d, count, t);
        BestOfChunks found[panel_vectors];
        Vec<float> squares[panel_vectors];
        round_panel(work.rows, t.d, rounded, panel, squares);
        // The next panel is fetched meanwhile, at an even pace.
        const float *after = x + (first + N) * t.d;
        size_t slot = 0, chunk = 0, left = lines;
        BestInts best[panel_vectors];
        for (const unsigned char *width = t.widths; slot < t.k; slot += *width++) {
            if (slot + *width - chunk > int16_chunk) {
                for (size_t v = 0; v < panel_vectors; ++v) found[v].merge(int(chunk), best[v]), best[v] = BestInts();
                chunk = slot;
            }
            const auto score = [&](auto some) {
                score_int16_width<some, panel_targets>(*width, panel, rounded, slot, int(slot - chunk), after, best);
                after += some * rounded.pairs * 16;
                left -= some;
            };
            if (!left) score(std::integral_constant<size_t, 0>());
            else if (pace == 1) score(std::integral_constant<size_t, 1>());
            else if (pace == 2) score(std::integral_constant<size_t, 2>());
            else if (pace == 3) score(std::integral_constant<size_t, 3>());
            else score(std::integral_constant<size_t, lines>());
        }
        for (size_t v = 0; v < panel_vectors; ++v) found[v].merge(int(chunk), best[v]);
        labels.take(found, squares, count);
    }
    labels.write();
    return labels.written();
}
#endif
