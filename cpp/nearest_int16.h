// The nearest target of rows that are rounded to integers of 16 bits: an instruction multiplies and adds twice as many of them
// as of float32 numbers, sums are exact, and half as many values are transposed. Where the lead of the best target does
// not exceed what rounding can do (int16_storage.h), the row is compared once more, in floating point; so the labels are the same.

#if defined(__x86_64__) && FW_BYTES >= 32
FW_TWO_TO_ONE(larger, "vpmaxsd", int)
FW_TWO_TO_ONE(smaller, "vpminsd", int)

// Rows are fetched so far ahead of the next panel, and into the second-level cache: those of the next panel itself would come too
// late, and the first-level cache, which holds this panel, has no room for them.
constexpr size_t fetch_bytes = 12 << 10;
// Rows of few columns leave room there. Measured with AVX-512: half as far ahead takes up to 8 % less.
constexpr size_t fetch_short_bytes = FW_BYTES == 64 ? 6 << 10 : fetch_bytes;
constexpr int fetch_short_into = FW_BYTES == 64 ? 3 : 1;  // the first-level cache, or the second

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
    // The lead may need 32 bits without a sign: half of it does not.
    inline Vec<float> lead() const { return to_float((IntVec)(((UnsignedVec)best - (UnsignedVec)second) >> 1)) * 2; }
    // Which rows are certain.
    inline IntVec sure(const Int16Targets &t, Vec<float> length) const {
        const Vec<float> asked = multiplied_plus(broadcast(t.per_length), length, broadcast(t.flat));
        return (IntVec)(lead() > asked) & (IntVec)(length <= t.longest);
    }
    // The same from squared lengths: square roots take as long as several targets, and are rarely needed.
    inline IntVec sure_by_square(const Int16Targets &t, Vec<float> square) const {
        const Vec<float> asked = multiplied_plus(broadcast(t.per_square), square, broadcast(t.quick_flat));
        const IntVec quick = (IntVec)(lead() > asked) & (IntVec)(square <= t.largest_square);
        return __builtin_expect(all_true(quick), true) ? quick : sure(t, square_roots(square));
    }
};

// Writes the labels of one panel of rows after the other. Doubtful rows wait, with the labels that they had before (-1 if they
// are fresh), until they fill a panel of their own, and are compared once more.
class Int16Labels {
    static constexpr size_t L = lanes<int>, N = panel_rows<float>;
    static constexpr size_t measured_rows = 16 * N;  // rows that are measured must have their labels: at least so many at a time
    const float *x;
    const Targets<float> &t;
    const Int16Targets &rounded;
    PanelWorkspace<float> &work;  // its list of rows is changed
    ChangeLog<float> &log;
    AssignCounts &result;
    const TieMargin<float> margin;
    size_t rows = 0, waiting = 0, settled = 0;  // taken; doubtful; those that were doubtful and are no more
    size_t doubtful[2 * N];

    // Compares the first `count` doubtful rows once more.
    __attribute__((noinline)) void settle(size_t count) {
        for (size_t i = 0; i < count; ++i) work.rows[i] = x + doubtful[i] * t.d;
        work.use_rows(count, t);
        BestTwo<float> leaders;
        leaders.clear();
        score_groups<float>(work, t, [](size_t) { return true; },
                            [&](size_t, size_t slot, auto &sum) { leaders.update(slot, sum); });
        for (size_t i = 0; i < count; ++i) {
            const float best = leaders.best[i / L][i % L], second = leaders.second[i / L][i % L];
            const bool certain = margin.decides(best, second, square_root(work.squares[i]));
            const int label = certain ? leaders.slot(i / L)[i % L] : resolve_tie(work.rows[i], t, work.y, work.scores, result);
            log.write_label(doubtful[i], label);
        }
        settled += count;
        waiting -= count;
        for (size_t i = 0; i < waiting; ++i) doubtful[i] = doubtful[count + i];
    }
    void after_panel() { log.after_panel(rows, waiting ? doubtful[0] : rows); }

public:
    Int16Labels(const float *x_, const Targets<float> &t_, const Int16Targets &rounded_, PanelWorkspace<float> &work_,
                ChangeLog<float> &log_, AssignCounts &result_)
        : x(x_), t(t_), rounded(rounded_), work(work_), log(log_), result(result_), margin(t_) {}
    Int16Labels(const Int16Labels &) = delete;

    // Whether so many rows were doubtful that comparing all in floating point takes less time.
    bool hopeless() const { return rows >= 1024 && settled + waiting > rows / 4; }

    // Takes the rows of the next panel, with their lengths, or `squared` lengths. Rows that are sure get their labels.
    template <bool squared = false>
    __attribute__((always_inline)) inline void note(const BestOfChunks (&found)[panel_vectors], const Vec<float> (&length)[panel_vectors], size_t count) {
        unsigned long long unsure = 0;
        IntVec label[panel_vectors];
        FW_UNROLL(4)
        for (size_t v = 0; v < panel_vectors; ++v) {
            const IntVec sure = squared ? found[v].sure_by_square(rounded, length[v]) : found[v].sure(rounded, length[v]);
            unsure |= false_lanes(sure) << v * L;
            label[v] = found[v].slot();
            if (count == N) label[v] = sure ? label[v] : log.fresh ? broadcast(-1) : load<IntVec>(log.labels + rows + v * L);
        }
        if (count == N) {
            log.write_labels(label, rows);
        } else {
            unsure &= (1ull << count) - 1;
            for (size_t i = 0; i < count; ++i)
                if (!(unsure >> i & 1)) log.write_label(rows + i, label[i / L][i % L]);
                else if (log.fresh) log.write_label(rows + i, -1);
        }
        for (; unsure; unsure &= unsure - 1) {
            const size_t row = rows + size_t(__builtin_ctzll(unsure));
            doubtful[waiting++] = row;
            if (log.cold) log.fetch(row);
        }
        rows += count;
    }
    // To be called after that. `meanwhile` must be checked before rows are settled.
    template <class Meanwhile> inline void end_panel(Meanwhile &meanwhile) {
        const bool crowded = waiting >= N;
        if (crowded || (waiting && log.measures(rows, measured_rows))) {
            meanwhile.check();
            settle(crowded ? N : waiting);
        }
        after_panel();
    }
    template <bool squared = false>
    inline void take(const BestOfChunks (&found)[panel_vectors], const Vec<float> (&length)[panel_vectors], size_t count) {
        note<squared>(found, length, count);
        NothingMeanwhile nothing;
        end_panel(nothing);
    }
    // Settles what waits; returns the number of rows with labels.
    size_t finish() {
        if (waiting) settle(waiting);
        after_panel();
        log.end_fresh(rows);
        return rows;
    }
};

// Compares `vectors` vectors of rows with target `c`, which gets this tag.
template <size_t vectors, size_t pairs>
__attribute__((always_inline)) inline void take_int16_target(const IntVec (&y)[vectors][pairs], const Int16Targets &t, size_t c,
                                                             int tag, BestInts (&found)[vectors]) {
    IntVec score[vectors];
    each<vectors>([&](auto v) __attribute__((always_inline)) { score[v] = broadcast(t.start[c]); });
    each<pairs>([&](auto p) __attribute__((always_inline)) {
        if constexpr (vectors == 1) {
            add_products(score[0], y[0][p], t.packed + c * pairs + p);
        } else {
            IntVec one = broadcast(t.packed[c * pairs + p]);
            settle(one);  // one load for all vectors
            each<vectors>([&](auto v) __attribute__((always_inline)) { add_products(score[v], y[v][p], one); });
        }
    });
    const IntVec number = broadcast(int16_numbers.of[tag]);
    each<vectors>([&](auto v) __attribute__((always_inline)) { found[v].take(score[v], number); });
}

// Compares some vectors of rows with all targets; after every few of them, `meanwhile` does some of its work.
template <size_t vectors, size_t pairs, class Meanwhile>
__attribute__((always_inline)) inline void take_int16_targets(const IntVec (&y)[vectors][pairs], const Int16Targets &t, size_t k,
                                                              BestOfChunks *found, Meanwhile &meanwhile) {
    constexpr size_t together = vectors == 1 ? 4 : 2;
    for (size_t c = 0; c < k; c += int16_chunk) {
        BestInts best[vectors];
        const size_t some = least(k - c, int16_chunk);
        size_t i = 0;
        for (; i + together <= some; i += together) {
            FW_UNROLL(4)
            for (size_t u = 0; u < together; ++u) take_int16_target(y, t, c + i + u, int(i + u), best);
            meanwhile.some();
        }
        for (; i < some; ++i) take_int16_target(y, t, c + i, int(i), best);
        each<vectors>([&](auto v) __attribute__((always_inline)) { found[v].merge(int(c), best[v]); });
    }
}

template <size_t d, bool joining>
size_t nearest_int16_short(const float *x, size_t n, const Targets<float> &t, ChangeLog<float> &log, AssignCounts &result) {
    constexpr size_t N = panel_rows<float>, L = lanes<float>, line = 64 / sizeof(float);
    constexpr size_t pairs = (d + 1) / 2;
    constexpr size_t vectors = pairs <= 4 ? panel_vectors : 1;  // which fit into the registers
    const Int16Targets rounded = *t.rounded;
    PanelWorkspace<float> work(x, n, t);
    Int16Labels labels(x, t, rounded, work, log, result);
    auto meanwhile = [&] {
        if constexpr (joining) return JoinMeanwhile<d>(x, t, log);
        else return NothingMeanwhile();
    }();
    for (size_t first = 0; first < n && !labels.hopeless(); first += N) {
        const size_t count = least(N, n - first);
        meanwhile.until(first);
        const bool eights = FW_BYTES == 64 && d == 8 && count == N;
        const float *after = x + (first + N) * d + fetch_short_bytes / sizeof(float);
        if (!eights) work.use_rows_from(x + first * d, count, t);
        BestOfChunks found[panel_vectors];
        Vec<float> square[panel_vectors];
        FW_UNROLL(1)
        for (size_t from = 0; from < panel_vectors; from += vectors) {
            IntVec y[vectors][pairs];
            FW_UNROLL(4)
            for (size_t u = 0; u < vectors; ++u) {
                const size_t v = from + u;
                IntVec all[int16_short / 2];
#if FW_BYTES == 64
                if (d == 8 && eights) round_eights(x + (first + v * L) * d, rounded, all);
                else
#endif
                {
                    round_rows(work.rows + v * L, 0, rounded, all);
                    if constexpr (d > L) round_rows(work.rows + v * L, L, rounded, all + L / 2);
                }
                FW_UNROLL(8)
                for (size_t p = 0; p < pairs; ++p) y[u][p] = all[p];
                if constexpr (d % 2) y[u][pairs - 1] &= 0xffff;  // the other half belongs to the next row
                for (size_t i = 0; i < L * d; i += line) __builtin_prefetch(after + v * L * d + i, 0, fetch_short_into);
                Int16Squares sum;
                FW_UNROLL(8)
                for (size_t p = 0; p + 2 <= pairs; p += 2) sum.add(y[u][p], y[u][p + 1]);
                if constexpr (pairs % 2) sum.add(y[u][pairs - 1]);
                square[v] = sum.sum;
            }
            take_int16_targets(y, rounded, t.k, found + from, meanwhile);
        }
        meanwhile.end_panel();
        labels.note<true>(found, square, count);
        labels.end_panel(meanwhile);
    }
    meanwhile.check();
    return labels.finish();
}

template <size_t d>
size_t nearest_int16_short_of(const float *x, size_t n, const Targets<float> &t, ChangeLog<float> &log, AssignCounts &result) {
    if constexpr (d > int16_least_columns)
        if (t.d != d) return nearest_int16_short_of<d - 1>(x, n, t, log, result);
    if constexpr (FW_BYTES == 64 && d % 8 == 0)
        if (JoinMeanwhile<d>::suits(log)) return nearest_int16_short<d, true>(x, n, t, log, result);
    return nearest_int16_short<d, false>(x, n, t, log, result);
}

// `lines` cache lines of those from `after` on are fetched with every pair of columns.
template <size_t nc, size_t lines>
__attribute__((noinline)) void score_int16(const int *panel, const Int16Targets &t, size_t slot, int tag, const int *after,
                                           BestInts (&found)[panel_vectors]) {
    constexpr size_t L = lanes<int>, line = 16;
    const size_t step = int16_vector(t.pairs);
    IntVec sum[nc][panel_vectors];
    FW_UNROLL(8)
    for (size_t i = 0; i < nc; ++i) {
        FW_UNROLL(4)
        for (size_t v = 0; v < panel_vectors; ++v) sum[i][v] = broadcast(t.start[slot + i]);
    }
    const int *c = t.packed + slot * t.pairs;
    for (size_t p = 0; p < t.pairs; ++p, c += nc, panel += L) {
        IntVec row[panel_vectors];
        FW_UNROLL(4)
        for (size_t v = 0; v < panel_vectors; ++v) row[v] = load<IntVec>(panel + v * step);
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
inline void score_int16_width(size_t width, const int *panel, const Int16Targets &t, size_t slot, int tag, const int *after,
                              BestInts (&found)[panel_vectors]) {
    if (width == nc) return score_int16<nc, lines>(panel, t, slot, tag, after, found);
    if constexpr (nc > 1) score_int16_width<lines, nc - 1>(width, panel, t, slot, tag, after, found);
}

// The panels of rows as integers: from the rows, or as they were kept.
class RoundedPanels {
    static constexpr size_t L = lanes<int>, N = panel_rows<float>;
    const float *x;
    const Targets<float> &t;
    const Int16Targets &rounded;
    const KeptInts kept;
    PanelWorkspace<float> &work;
    int *const room;
    // With few targets, rounding takes longer than comparing, and half of what comes next is fetched while rows are rounded: memory would
    // be idle. Measured with AVX-512: this gains up to 16 targets, and up to 20 unless rows are a multiple of 1 KB apart.
    const bool spread = FW_BYTES == 64 && !kept.ready && (t.k <= 16 || (t.k <= 20 && t.d % 256));
    static constexpr size_t all_lines = 2 * N / 16, block_lines = L * L / 16;  // of a pair of columns of a panel; of what is rounded at a time

public:
    RoundedPanels(const float *x_, const Targets<float> &t_, const Int16Targets &rounded_, KeptInts kept_, PanelWorkspace<float> &work_,
             int *room_)
        : x(x_), t(t_), rounded(rounded_), kept(kept_), work(work_), room(room_) {}

    // The panel of `count` rows from `first` on. A panel that is not full does not fill the last vectors of what is kept.
    const int *take(size_t first, size_t count) {
        const size_t step = int16_vector(rounded.pairs), bytes = (count + L - 1) / L * step * sizeof(int);
        int *own = kept.values ? kept.values + first / L * step : nullptr, *panel = own && count == N ? own : room;
        if (kept.ready) {
            if (panel != own) __builtin_memcpy(panel, own, bytes);
            return panel;
        }
        work.use_rows_from(x + first * t.d, count, t);
        round_panel(work.rows, t.d, rounded, panel, {after(first), spread ? block_lines / 2 : 0});
        if (own && panel != own) __builtin_memcpy(own, panel, bytes);
        return panel;
    }
    // What is to be fetched while this panel is taken and compared.
    const int *after(size_t first) const {
        const int *next = kept.ready ? kept.values + (first + N) / L * int16_vector(rounded.pairs) : (const int *)(x + (first + N) * t.d);
        return next + fetch_bytes / sizeof(int);
    }
    // The part of it that is left for comparing, and how many cache lines that is for each pair of columns.
    const int *left(size_t first) const {
        return after(first) + (spread ? t.d / L * panel_vectors * (block_lines / 2) * 16 : 0);
    }
    size_t lines() const { return kept.ready ? N / 16 : spread ? all_lines / 2 : all_lines; }
};

// Writes the labels of rows up to the one whose number it returns: all n, unless it is better to go on in floating point.
inline size_t nearest_int16(const float *x, size_t n, const Targets<float> &t, KeptInts kept, ChangeLog<float> &log,
                            AssignCounts &result) {
    if (t.rounded->layout == Int16Layout::rows) return nearest_int16_short_of<int16_short>(x, n, t, log, result);
    log.cold = kept.ready;
    constexpr size_t N = panel_rows<float>, L = lanes<int>;
    const Int16Targets rounded = *t.rounded;
    const size_t step = int16_vector(rounded.pairs);
    char *extra;
    PanelWorkspace<float> work(x, n, t, panel_vectors * step * sizeof(int), &extra);
    RoundedPanels rows(x, t, rounded, kept, work, (int *)extra);
    const size_t lines = rows.lines(), tiles = size_t(t.panels[0]), pace = (lines + tiles - 1) / tiles;
    Int16Labels labels(x, t, rounded, work, log, result);
    for (size_t first = 0; first < n; first += N) {
        const bool given_up = labels.hopeless();
        if (given_up && !kept.wanted()) break;
        const size_t count = least(N, n - first);
        const int *panel = rows.take(first, count);
        if (given_up) continue;
        BestOfChunks found[panel_vectors];
        // Rows to come are fetched meanwhile, at an even pace.
        const int *after = rows.left(first);
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
                left -= least(some, left);
            };
            if (!left) score(std::integral_constant<size_t, 0>());
            else if (pace == 1) score(std::integral_constant<size_t, 1>());
            else if (pace == 2) score(std::integral_constant<size_t, 2>());
            else if (pace == 3) score(std::integral_constant<size_t, 3>());
            else score(std::integral_constant<size_t, 2 * N / 16>());
        }
        Vec<float> length[panel_vectors];
        for (size_t v = 0; v < panel_vectors; ++v) {
            found[v].merge(int(chunk), best[v]);
            length[v] = load<Vec<float>>(panel + v * step + rounded.pairs * L);
        }
        labels.take(found, length, count);
    }
    return labels.finish();
}
#endif
