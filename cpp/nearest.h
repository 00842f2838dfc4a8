// The nearest target of every row and, on request, the squared distances to the nearest and second-nearest targets.

// Working memory for one call of a kernel that processes a block of rows panel by panel. If `observed`, rows may have
// missing cells (observed.h).
template <class T, bool observed = false> struct PanelWorkspace {
    static constexpr size_t N = panel_rows<T>;
    T *panel, *partial, *squares, *y, *scores, *stage;
    const T *rows[N];
    const T *pairs = nullptr;  // the first of a panel of rows of 2 columns that are adjacent in memory, or null
    const T *after = nullptr;  // what follows the selected rows in memory
    const T *following = nullptr;  // the row after the selected ones, if these are adjacent
    const T *end;  // of the block: nothing may be loaded from here on
    size_t reach;  // number of values loaded from the start of a row, in whole vectors
    MissingSums<T> missing;

    PanelWorkspace(const T *x, size_t n, const Targets<T> &t, size_t more = 0, char **extra = nullptr)
        : end(x + n * t.d), reach(round_up(t.d, lanes<T>)) {
        const size_t panel_size = round_up(least(t.d, feature_block) * N, 16), partial_size = t.d > feature_block ? t.k * N : 0;
        const size_t values =
            panel_size + partial_size + 2 * N + round_up(t.d, 16) + round_up(t.k, 16) + N * round_up(reach, 16);
        const size_t own = round_up(values * sizeof(T), 64), sums = observed ? MissingSums<T>::bytes(t) : 0;
        char *memory = (char *)scratch(own + sums + more);
        panel = (T *)memory;
        partial = panel + panel_size;
        squares = partial + partial_size;
        y = squares + 2 * N;
        scores = y + round_up(t.d, 16);
        stage = scores + round_up(t.k, 16);
        if constexpr (observed) missing.place(memory + own, t);
        if (extra) *extra = memory + own + sums;
    }
    // Selects the `count` rows that start at `x`.
    void use_rows_from(const T *x, size_t count, const Targets<T> &t) {
        pairs = t.d == 2 && count == N && !observed ? x : nullptr;
        after = x + N * t.d + 4096 / sizeof(T);
        if (pairs) return;
        if (following != x) {
            const T *row = x;
            for (size_t i = 0; i < N; ++i, row += t.d) rows[i] = row;
        } else {  // the rows after those that were selected before: all addresses in vectors
            for (size_t i = 0; i < N; ++i) rows[i] += N * t.d;
        }
        following = x + N * t.d;
        if (count < N || size_t(end - rows[N - 1]) < reach) use_rows(count, t);
    }
    // Selects the first `count` entries of `rows`; the panel is filled up with copies of the last one.
    void use_rows(size_t count, const Targets<T> &t) {
        following = nullptr;
        for (size_t i = 0; i < count; ++i)
            if (size_t(end - rows[i]) < reach) {
                T *copy = stage + i * reach;
                for (size_t j = 0; j < reach; ++j) copy[j] = j < t.d ? rows[i][j] : T(0);
                rows[i] = copy;
            }
        for (size_t i = count; i < N; ++i) rows[i] = rows[count - 1];
    }
    // Packs `depth` features from `from` on into the panel.
    void pack(size_t from, size_t depth, const Targets<T> &t) {
        if (pairs) return pack_pairs(pairs, t.pivot, t.scale, panel, squares);
        pack_panel_rows<T, observed>(rows, from, depth, t.pivot, t.scale, panel, squares);
        if constexpr (observed)
            if (!from) missing.find(rows, t);
    }
    // What will be needed after the features before `from`: the rest of these rows, or the next rows.
    Ahead<T> ahead(size_t from, const Targets<T> &t) const {
        if (from < t.d) return {nullptr, rows, from, 0};
        if (t.d <= feature_block) return {after, rows, 0, 0};
        return {nullptr, rows, 0, N * t.d};
    }
    // Gives back to the scores of the targets from `slot` on what missing cells took from them.
    template <class Scores> inline void correct(size_t slot, Scores &scores) const {
        if constexpr (observed) missing.add_to_scores(slot, scores);
    }
};

template <bool observed> inline double score_chain(size_t d) {
    return observed ? longest_chain(d) + missing_chain(d) : longest_chain(d);
}

// The lead that makes the best score of a row certain, as a function of the row's length.
// With missing cells, the terms of a score add up to at most |y| |c| + |c|^2 rather than |y| |c| + |c|^2 / 2, in a longer chain.
template <class T, bool observed = false> struct TieMargin {
    T per_length, constant, per_square, flat;
    static constexpr T of_best = T(2 * tag_error<T> * 1.01);
    explicit TieMargin(const Targets<T> &t)
        : per_length(T(unit_roundoff<T> * score_chain<observed>(t.d) * t.longest * 2 * 1.01)),
          constant(T(unit_roundoff<T> * score_chain<observed>(t.d) * t.longest * t.longest * (observed ? 2 : 1) * 1.01) +
                   underflow_margin<T>) {
        const T typical = t.longest > 0 ? T(t.longest) : T(1);
        per_square = per_length / (2 * typical) * T(1.001);
        flat = (per_length * typical / 2 + constant) * T(1.001);
    }

    // A quicker test that asks for no less: no length exceeds (square / a + a) / 2, whatever a is.
    template <class V> inline auto surely_decides(V best, V second, V square) const {
        return best - second > per_square * square + flat + of_best * (best < 0 ? -best : best);
    }
    // Whether the best of two scores is certain, for a row of this length. The term of the best covers the tags of both scores:
    // the second is no larger than the best and the gap together.
    template <class V> inline auto decides(V best, V second, V length) const {
        return best - second > per_length * length + constant + of_best * (best < 0 ? -best : best);
    }
};

// Writes labels, counts the rows whose label changes and, if requested, records them or moves them between the sums of clusters,
// and adds up the squared distances of all rows from their targets.
template <class T> struct ChangeLog {
    static constexpr size_t room = 2 * 64, most = 4 * 64;  // rows that change from panel to panel; rows that wait to be moved
    static constexpr size_t labels_ahead = 1024;
    static constexpr size_t waiting_bytes = 256 << 10;  // from the first of these rows on: all are still in the cache
    static constexpr size_t joining_bytes = 16 << 10;    // the same for the first-level cache
    Changes to;
    const FixedSums *sums;
    const Residuals *residuals;
    const T *x;
    size_t n;
    const Targets<T> &t;
    int *labels;
    size_t count = 0, moved = 0, held = 0;  // recorded and not yet moved; all that were moved; moves that the integers hold
    size_t measured = 0;                    // rows whose distances have been added
    bool unknown = false;                   // whether a previous label was no target
    bool cold = false;                      // whether rows that are compared are not in the cache for it
    bool fresh = false;                     // whether no row has a label: what is in `labels` is not read,
    size_t joined = 0;                      // and rows before this one have been added to their sums, but for those still without label
    int rows[most + room], before[most + room];

    ChangeLog(Changes changes, const FixedSums *fixed, const Residuals *residuals_, const T *x_, size_t n_, const Targets<T> &t_,
              int *labels_)
        : to(changes), sums(fixed), residuals(residuals_), x(x_), n(n_), t(t_), labels(labels_) {
        if (sums) to = {rows, before};
    }
    ChangeLog(const ChangeLog &) = delete;  // it points into itself
    ~ChangeLog() {  // the integers are shared with later passes, even if this one has failed
        if (held) empty_fixed(*sums, t.k, t.d);
    }

    // Writes the labels of whole vectors of rows, starting at row `first`.
    template <class I, size_t vectors> inline void write_labels(const I (&label)[vectors], size_t first) {
        constexpr size_t L = sizeof(I) / sizeof(int);
        static_assert(vectors * L <= room);
        int *at = labels + first;
        if (fresh) {
            FW_UNROLL(4)
            for (size_t v = 0; v < vectors; ++v) store(at + v * L, label[v]);
            return;
        }
        unsigned long long changed = 0;
        FW_UNROLL(4)
        for (size_t v = 0; v < vectors; ++v) changed |= different(load<I>(at + v * L), label[v]) << v * L;
        if (!changed) return;
        int old[vectors * L];
        FW_UNROLL(4)
        for (size_t v = 0; v < vectors; ++v) {
            store(old + v * L, load<I>(at + v * L));
            store(at + v * L, label[v]);
        }
        if (!to.row) {
            count += size_t(__builtin_popcountll(changed));
            return;
        }
        size_t place = count;
        constexpr unsigned long long every = ~0ull >> (64 - vectors * L);
        if (changed == every) {  // as in a first pass
            for (size_t i = 0; i < vectors * L; ++i) to.row[place + i] = int(first + i);
            __builtin_memcpy(to.before + place, old, sizeof old);
            place += vectors * L;
            changed = 0;
        }
        for (; changed; changed &= changed - 1) {
            const size_t i = size_t(__builtin_ctzll(changed));
            to.row[place] = int(first + i);
            to.before[place++] = old[i];
            if (cold) fetch(first + i);
        }
        count = place;
    }
    // Fetches the begin of a row that will be moved, or compared once more.
    inline void fetch(size_t row) const {
        const char *from = (const char *)(x + row * t.d);
        for (size_t i = 0; i < t.d * sizeof(T) && i < 1024; i += 64) __builtin_prefetch(from + i, 0, 2);
    }
    inline void write_label(size_t row, int label) {
        if (fresh && row >= joined) {
            labels[row] = label;
            return;
        }
        const int was = labels[row];
        if (was == label) return;
        labels[row] = label;
        if (to.row) {
            to.row[count] = int(row);
            to.before[count] = was;
        }
        ++count;
    }
    // Whether distances are to be measured as soon as all rows before `row` have their labels, at least so many of them.
    inline bool measures(size_t row, size_t at_least = 0) const {
        return residuals && row - measured >= at_least && (row - measured) * t.d * sizeof(T) > waiting_bytes;
    }
    // To be called after every panel, with its first row or the one after it: moves what was recorded and measures distances while
    // rows are still in the cache, and fetches labels that will be compared some panels later. Rows before `labelled` have labels.
    inline void after_panel(size_t row) { after_panel(row, row); }
    inline void after_panel(size_t row, size_t labelled) {
        FW_UNROLL(4)
        for (size_t i = 0; i < panel_rows<T>; i += 16) __builtin_prefetch(labels + row + labels_ahead + i, 1, 1);
        if (fresh && joins(row)) join(row);
        if (sums && count && (count >= most || (row - size_t(rows[0])) * t.d * sizeof(T) > waiting_bytes)) move();
        if (measures(labelled)) measure(labelled);
    }
    // Adds the distances of the rows before `end`, which have their labels.
    __attribute__((noinline)) void measure(size_t end) {
        const ClusterResiduals<T> to_sums{t, residuals->sums};
        if (t.padded) to_sums.template add<false, true>(x, nullptr, labels, measured, end);
        else to_sums.template add<false, false>(x, nullptr, labels, measured, end);
        measured = end;
    }
    // Whether it is time to add the rows before this one.
    inline bool joins(size_t row) const {
        static_assert(most + panel_rows<T> <= joining_most);
        return row - joined >= most || (row - joined) * t.d * sizeof(T) > (sums->copies > 1 ? joining_bytes : waiting_bytes);
    }
    // Adds the rows before `end` that have labels and are not added yet.
    __attribute__((noinline)) void join(size_t end) {
        if constexpr (sizeof(T) == sizeof(float) && FW_BYTES >= 32) {  // others are never fresh
            if (joined == end) return;
            make_room(end - joined);
            held += end - joined;  // those without a label, too: they are in the integers
            moved += join_rows(x, t, *sums, joined, end, labels);
        }
        joined = end;
    }
    // All rows before `end` have labels; the others get none, for now, and are not treated as fresh any more.
    void end_fresh(size_t end) {
        if (!fresh) return;
        join(end);
        fresh = false;
        forget_labels(end);
    }
    void forget_labels(size_t from) {
        for (size_t i = from; i < n; ++i) labels[i] = -1;
    }
    void make_room(size_t rows_to_come) {
        if (held + rows_to_come <= fixed_moves) return;
        empty_fixed(*sums, t.k, t.d);
        held = 0;
    }
    __attribute__((noinline)) void move() {
        if (!sums || !count) return;
        make_room(count);
        unknown |= !move_fixed(x, t, *sums, rows, before, count, labels);
        moved += count;
        held += count;
        count = 0;
    }
    // Ends the pass; returns the number of rows that changed, or all ones if a previous label was no target.
    size_t total() {
        move();
        if (held) empty_fixed(*sums, t.k, t.d);  // and so the sums of rows without a label, all of which have one by now
        held = 0;
        if (residuals) {
            measure(n);
            ClusterResiduals<T>{t, residuals->sums}.finish(residuals->total, residuals->counts);
        }
        return unknown ? ~size_t(0) : moved + count;
    }
};

inline float square_root(float x) { return __builtin_sqrtf(x); }
inline double square_root(double x) { return __builtin_sqrt(x); }

#include "nearest_low_dim.h"

// Writes the labels of a whole panel if none of its rows is close to a tie, as in nearly every panel; everything then
// stays in vectors. Otherwise returns false and writes nothing.
template <class T, bool observed>
inline bool write_sure_labels(const BestTwo<T> &leaders, const T *squares, const TieMargin<T, observed> &margin, size_t first,
                              ChangeLog<T> &log) {
    constexpr size_t N = panel_rows<T>, L = lanes<T>;
    auto sure = margin.surely_decides(leaders.best[0], leaders.second[0], load<Vec<T>>(squares));
    FW_UNROLL(4)
    for (size_t v = 1; v < panel_vectors; ++v)
        sure &= margin.surely_decides(leaders.best[v], leaders.second[v], load<Vec<T>>(squares + v * L));
    if (!all_true(sure)) return false;
    Ints<T> slots[panel_vectors];
    FW_UNROLL(4)
    for (size_t v = 0; v < panel_vectors; ++v) slots[v] = leaders.slot(v);
    // A panel need not be a whole number of int vectors: with AVX-512 it has 24 float64 rows, but an int vector has
    // 16 lanes.
    constexpr size_t together = N % lanes<int> == 0 ? lanes<int> : L;
    typename VecOf<int, together * sizeof(int)>::type label[N / together];
    static_assert(sizeof label == N * sizeof(int));
    if constexpr (sizeof(T) == sizeof(int)) {
        FW_UNROLL(4)
        for (size_t v = 0; v < panel_vectors; ++v) label[v] = slots[v];
    } else {
        int narrow[N];
        typename LaneInt<T>::type slot[N];
        __builtin_memcpy(slot, slots, sizeof slot);
        for (size_t i = 0; i < N; ++i) narrow[i] = int(slot[i]);
        __builtin_memcpy(label, narrow, sizeof label);
    }
    log.write_labels(label, first);
    return true;
}

#include "nearest_short.h"
#include "nearest_few.h"
#include "int16_rows.h"
#include "join_meanwhile.h"
#include "nearest_int16.h"
#include "nearest_few_int16.h"

// Writes labels. `near` and `next`, either of which may be null, receive the squared distances to the nearest and
// second-nearest targets, in units of the scaled data. If `observed`, distances are over the observed cells of a row, and
// a row without any gets the label -1 and the distance 0. `kept` is used only if the targets are rounded. `residuals`, if not
// null, receive what the function of that name finds for these labels. If `fresh`, no row has a label, whatever is in `labels`.
template <class T, bool observed = false>
AssignCounts nearest(const T *x, size_t n, const Targets<T> &t, int *labels, T *near, T *next, Changes changes,
                     const FixedSums *sums, Int16Rows kept, const Residuals *residuals, bool fresh) {
    constexpr size_t N = panel_rows<T>, L = lanes<T>;
    ChangeLog<T> log(changes, sums, residuals, x, n, t, labels);
    const bool plain = t.in_order && !near && !next;
    AssignCounts result{0, n, 0, 0};
    size_t begin = 0;  // rows before have their labels
    (void)kept;  // without 16-bit integers
#if defined(__x86_64__) && FW_BYTES >= 32
    static_assert(int16_least_columns > low_dim_columns);  // whose kernel knows nothing of fresh rows
    log.fresh = fresh && plain && t.rounded && sums && !residuals;
#endif
    if (fresh && !log.fresh) log.forget_labels(0);
    if constexpr (sizeof(T) == sizeof(int) && !observed) {
        if (plain && t.d <= low_dim_columns && t.k <= low_dim_targets) return nearest_low_dim_of(x, n, t, log);
#if defined(__x86_64__) && FW_BYTES >= 32
        if (plain && t.rounded && t.rounded->layout != Int16Layout::columns) begin = nearest_int16(x, n, t, KeptInts(kept), log, result);
#endif
#if defined(__x86_64__) && FW_BYTES == 64
        if (plain && t.rounded && t.rounded->layout == Int16Layout::columns) begin = nearest_few_int16(x, n, t, log, result);
#endif
#if FW_BYTES >= 32
        if (!begin && plain && t.d > low_dim_columns && t.d <= short_columns && t.k <= short_targets) return nearest_short_of<short_columns>(x, n, t, log);
#endif
    }
    const bool few = !observed && FewTargets<T>::suit(t);
    char *extra;
    PanelWorkspace<T, observed> work(x, n, t, FewTargets<T>::bytes(t), &extra);
    FewTargets<T> few_way(t, extra);
    const TieMargin<T, observed> margin(t);
    for (size_t first = begin; first < n; first += N) {
        const size_t count = least(N, n - first);
        work.use_rows_from(x + first * t.d, count, t);
        BestTwo<T> leaders;
        leaders.clear();
        if (few) {
            if constexpr (!observed) {
                const T *after[L];
                for (size_t i = 0; i < L; ++i) after[i] = x + (first + N + i) * t.d;
                few_way.compare(work, after, leaders);
            }
        } else {
            score_groups<T>(work, t, [](size_t) { return true; },
                            [&](size_t, size_t slot, auto &sum) { leaders.update(slot, sum); });
        }
        const bool some_empty = observed && work.missing.empty;
        if (plain && count == N && !some_empty && write_sure_labels(leaders, work.squares, margin, first, log)) {
            log.after_panel(first);
            continue;
        }
        for (size_t i = 0; i < count; ++i) {
            const size_t row = first + i;
            const T best = leaders.best[i / L][i % L], second = leaders.second[i / L][i % L];
            int label = t.ids[leaders.slot(i / L)[i % L]];
            if (some_empty && work.missing.counts[i] == t.d) {
                log.write_label(row, -1);
                if (near) near[row] = 0;
                if (next) next[row] = 0;
                continue;
            }
            if (!margin.decides(best, second, T(square_root(work.squares[i])))) {
                if constexpr (observed) label = resolve_observed_tie(x + row * t.d, t, result);
                else label = resolve_tie(x + row * t.d, t, work.y, work.scores, result);
            }
            log.write_label(row, label);
            if (near) near[row] = larger<T>(work.squares[i] - 2 * best, 0);
            if (next) next[row] = larger<T>(work.squares[i] - 2 * second, 0);
        }
        log.after_panel(first);
    }
    result.moved = log.total();
    return result;
}
