// The nearest target of every row, and the second nearest's distance where somebody wants it.

// Memory for one call of a kernel over panels.
template <class T> struct Desk {
    T *panel, *partial, *squares, *y, *scores;
    const T *rows[panel_rows<T>];

    explicit Desk(const Targets<T> &t, size_t more = 0, char **extra = nullptr) {
        constexpr size_t N = panel_rows<T>;
        const size_t panel_size = round_up(t.d * N, 16), partial_size = t.d > stretch ? t.k * N : 0;
        const size_t values = panel_size + partial_size + 2 * N + round_up(t.d, 16) + round_up(t.k, 16);
        char *memory = (char *)scratch(round_up(values * sizeof(T), 64) + more);
        panel = (T *)memory;
        partial = panel + panel_size;
        squares = partial + partial_size;
        y = squares + 2 * N;
        scores = y + round_up(t.d, 16);
        if (extra) *extra = memory + round_up(values * sizeof(T), 64);
    }
    // Takes `count` rows from `x` on to the panel.
    void pack_from(const T *x, size_t count, const Targets<T> &t) {
        if (count == panel_rows<T> && t.d < lanes<T> && pack_short<T>(t.d, x, t.pivot, t.scale, panel, squares)) return;
        for (size_t i = 0; i < count; ++i) rows[i] = x + i * t.d;
        pack(count, t);
    }
    // Takes `count` rows, whose addresses are in `rows`, to the panel; missing ones repeat the last.
    void pack(size_t count, const Targets<T> &t) {
        for (size_t i = count; i < panel_rows<T>; ++i) rows[i] = rows[count - 1];
        pack_panel_rows<T>(rows, t.d, t.pivot, t.scale, panel, squares);
    }
};

// How much a score of a row of that length must lead to be the best for certain.
template <class T> struct Doubt {
    T along, flat;
    explicit Doubt(const Targets<T> &t)
        : along(T(unit<T> * chain(t.d) * t.longest * 2 * 1.01)),
          flat(T(unit<T> * chain(t.d) * t.longest * t.longest * 1.01)) {}
};

inline float root(float x) { return __builtin_sqrtf(x); }
inline double root(double x) { return __builtin_sqrt(x); }

// Writes labels; `near` and `next` (either may be null) get squared distances to the nearest and second nearest target,
// in units of the scaled data.
template <class T>
Assigned nearest(const T *x, size_t n, const Targets<T> &t, int *labels, T *near, T *next) {
    constexpr size_t N = panel_rows<T>, L = lanes<T>;
    Desk<T> desk(t);
    const Doubt<T> doubt(t);
    Assigned result{0, n, 0};
    Leaders<T> leaders;
    for (size_t first = 0; first < n; first += N) {
        const size_t count = least(N, n - first);
        desk.pack_from(x + first * t.d, count, t);
        leaders.clear();
        score_groups<T>(desk.panel, t, desk.partial, [](size_t) { return true; },
                        [&](size_t, size_t slot, auto &sum) { leaders.see(slot, sum); });
        for (size_t v = 0; v * L < count; ++v) {
            const size_t at = first + v * L, members = least(L, count - v * L);
            T lead[L], needed[L], squares[L];
            typename LaneInt<T>::type slot[L];
            store(squares, load<Vec<T>>(desk.squares + v * L));
            store(lead, leaders.best[v] - leaders.second[v]);
            store(slot, leaders.slot[v]);
            int unsure = 0, moved = 0, label[L];
            FW_UNROLL(1)
            for (size_t i = 0; i < L; ++i) needed[i] = doubt.along * root(squares[i]) + doubt.flat;
            FW_UNROLL(1)
            for (size_t i = 0; i < L; ++i) unsure += !(lead[i] > needed[i]);
            FW_UNROLL(1)
            for (size_t i = 0; i < L; ++i) label[i] = int(slot[i]);
            if (!t.in_order)
                for (size_t i = 0; i < L; ++i) label[i] = t.ids[label[i]];
            if (unsure)
                for (size_t i = 0; i < members; ++i)
                    if (!(lead[i] > needed[i])) {
                        label[i] = settle(x + (at + i) * t.d, t, desk.y, desk.scores);
                        ++result.settled;
                    }
            if (members == L) {
                FW_UNROLL(1)
                for (size_t i = 0; i < L; ++i) moved += labels[at + i] != label[i];
                __builtin_memcpy(labels + at, label, sizeof label);
            } else {
                for (size_t i = 0; i < members; ++i) {
                    moved += labels[at + i] != label[i];
                    labels[at + i] = label[i];
                }
            }
            result.moved += size_t(moved);
            for (size_t i = 0; near && i < members; ++i)
                near[at + i] = larger<T>(squares[i] - 2 * leaders.best[v][i], 0);
            for (size_t i = 0; next && i < members; ++i)
                next[at + i] = larger<T>(squares[i] - 2 * leaders.second[v][i], 0);
        }
    }
    return result;
}
