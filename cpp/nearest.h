// The nearest target of every row, and the second nearest's distance where somebody wants it.

// Memory for one call of a kernel over panels of rows of one block.
template <class T> struct Desk {
    static constexpr size_t N = panel_rows<T>;
    T *panel, *partial, *squares, *y, *scores, *stage;
    const T *rows[N];
    const T *pairs = nullptr;  // rows of length 2 that lie one after the other
    const T *end;  // of the block: vectors must not be loaded from behind it
    size_t reach;  // how far they are loaded from the start of a row

    Desk(const T *x, size_t n, const Targets<T> &t, size_t more = 0, char **extra = nullptr)
        : end(x + n * t.d), reach(round_up(t.d, lanes<T>)) {
        const size_t panel_size = round_up(least(t.d, stretch) * N, 16), partial_size = t.d > stretch ? t.k * N : 0;
        const size_t values =
            panel_size + partial_size + 2 * N + round_up(t.d, 16) + round_up(t.k, 16) + N * round_up(reach, 16);
        char *memory = (char *)scratch(round_up(values * sizeof(T), 64) + more);
        panel = (T *)memory;
        partial = panel + panel_size;
        squares = partial + partial_size;
        y = squares + 2 * N;
        scores = y + round_up(t.d, 16);
        stage = scores + round_up(t.k, 16);
        if (extra) *extra = memory + round_up(values * sizeof(T), 64);
    }
    // The rows to work on are `count` from `x` on.
    void take_from(const T *x, size_t count, const Targets<T> &t) {
        pairs = t.d == 2 && count == N ? x : nullptr;
        if (pairs) return;
        for (size_t i = 0; i < count; ++i) rows[i] = x + i * t.d;
        if (count < N || size_t(end - rows[N - 1]) < reach) take(count, t);
    }
    // The rows to work on are the first `count` in `rows`; missing ones repeat the last.
    void take(size_t count, const Targets<T> &t) {
        for (size_t i = 0; i < count; ++i)
            if (size_t(end - rows[i]) < reach) {
                T *copy = stage + i * reach;
                for (size_t j = 0; j < reach; ++j) copy[j] = j < t.d ? rows[i][j] : T(0);
                rows[i] = copy;
            }
        for (size_t i = count; i < N; ++i) rows[i] = rows[count - 1];
    }
    // Brings a stretch of their features to the panel.
    void bring(size_t from, const Targets<T> &t) {
        if (pairs) return pack_pairs(pairs, t.pivot, t.scale, panel, squares);
        pack_panel_rows<T>(rows, from, least(stretch, t.d - from), t.pivot, t.scale, panel, squares);
    }
};

// How much a score of a row of that length must lead to be the best for certain.
template <class T> struct Doubt {
    T along, flat;
    explicit Doubt(const Targets<T> &t)
        : along(T(unit<T> * chain(t.d) * t.longest * 2 * 1.01)),
          flat(T(unit<T> * chain(t.d) * t.longest * t.longest * 1.01) + tiny<T>) {}
};

// Whether all lanes of a comparison are true.
template <class M> inline bool all_true(M mask) {
    unsigned long long words[sizeof(M) / 8], all = ~0ull;
    __builtin_memcpy(words, &mask, sizeof mask);
    for (size_t i = 0; i < sizeof(M) / 8; ++i) all &= words[i];
    return all == ~0ull;
}

// Counts the rows whose label changes, and writes them down for whoever asked.
struct Log {
    Changes to;
    size_t count = 0;
    void note(size_t row, int before) {
        if (to.row) {
            to.row[count] = int(row);
            to.before[count] = before;
        }
        ++count;
    }
    // The labels of whole vectors of rows from `first` on. Without branches for each row: which change is hard to foresee.
    template <class I, size_t vectors> void take(const I (&label)[vectors], int *labels, size_t first) {
        constexpr size_t L = sizeof(I) / sizeof(int);
        int *at = labels + first;
        I same = load<I>(at) == label[0];
        FW_UNROLL(4)
        for (size_t v = 1; v < vectors; ++v) same &= load<I>(at + v * L) == label[v];
        if (all_true(same)) return;
        int old[vectors * L];
        FW_UNROLL(4)
        for (size_t v = 0; v < vectors; ++v) {
            store(old + v * L, load<I>(at + v * L));
            store(at + v * L, label[v]);
        }
        for (size_t i = 0; i < vectors * L; ++i) {
            if (to.row) {
                to.row[count] = int(first + i);
                to.before[count] = old[i];
            }
            count += size_t(old[i] != at[i]);
        }
    }
};

inline float root(float x) { return __builtin_sqrtf(x); }
inline double root(double x) { return __builtin_sqrt(x); }

#include "short.h"

// A whole panel of rows none of which is near a tie, as nearly all are: everything stays in vectors. False if there is one.
template <class T>
inline bool take_labels(const Leaders<T> &leaders, const T *squares, const Doubt<T> &doubt, int *labels, size_t first, Log &log) {
    constexpr size_t N = panel_rows<T>, L = lanes<T>;
    T lengths[N];
    for (size_t i = 0; i < N; ++i) lengths[i] = root(squares[i]);
    auto sure = leaders.best[0] - leaders.second[0] > doubt.along * load<Vec<T>>(lengths) + doubt.flat;
    FW_UNROLL(4)
    for (size_t v = 1; v < panel_vectors; ++v)
        sure &= leaders.best[v] - leaders.second[v] > doubt.along * load<Vec<T>>(lengths + v * L) + doubt.flat;
    if (!all_true(sure)) return false;
    // A panel need not fill whole vectors of int: with AVX-512 it has 24 float64 rows, and a vector of int has 16 lanes.
    constexpr size_t together = N % lanes<int> == 0 ? lanes<int> : L;
    typename VecOf<int, together * sizeof(int)>::type label[N / together];
    static_assert(sizeof label == N * sizeof(int));
    if constexpr (sizeof(T) == sizeof(int)) {
        __builtin_memcpy(label, leaders.slot, sizeof label);
    } else {
        int narrow[N];
        typename LaneInt<T>::type slot[N];
        __builtin_memcpy(slot, leaders.slot, sizeof slot);
        for (size_t i = 0; i < N; ++i) narrow[i] = int(slot[i]);
        __builtin_memcpy(label, narrow, sizeof label);
    }
    log.take(label, labels, first);
    return true;
}

// Writes labels; `near` and `next` (either may be null) get squared distances to the nearest and second nearest target,
// in units of the scaled data.
template <class T>
Assigned nearest(const T *x, size_t n, const Targets<T> &t, int *labels, T *near, T *next, Changes changes) {
    constexpr size_t N = panel_rows<T>, L = lanes<T>;
    Log log{changes};
    const bool plain = t.in_order && !near && !next;
    if constexpr (sizeof(T) == sizeof(int))
        if (plain && t.d <= short_row && t.k <= short_targets) return nearest_short_of(x, n, t, labels, log);
    Desk<T> desk(x, n, t);
    const Doubt<T> doubt(t);
    Assigned result{0, n, 0};
    for (size_t first = 0; first < n; first += N) {
        const size_t count = least(N, n - first);
        desk.take_from(x + first * t.d, count, t);
        Leaders<T> leaders;
        leaders.clear();
        score_groups<T>(desk, t, [](size_t) { return true; },
                        [&](size_t, size_t slot, auto &sum) { leaders.see(slot, sum); });
        if (plain && count == N && take_labels(leaders, desk.squares, doubt, labels, first, log)) continue;
        for (size_t i = 0; i < count; ++i) {
            const size_t row = first + i;
            const T best = leaders.best[i / L][i % L], second = leaders.second[i / L][i % L];
            int label = t.ids[leaders.slot[i / L][i % L]];
            if (!(best - second > doubt.along * root(desk.squares[i]) + doubt.flat)) {
                label = settle(x + row * t.d, t, desk.y, desk.scores);
                ++result.settled;
            }
            if (labels[row] != label) log.note(row, labels[row]);
            labels[row] = label;
            if (near) near[row] = larger<T>(desk.squares[i] - 2 * best, 0);
            if (next) next[row] = larger<T>(desk.squares[i] - 2 * second, 0);
        }
    }
    result.moved = log.count;
    return result;
}
