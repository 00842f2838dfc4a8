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
        for (size_t i = 0; i < count; ++i) desk.rows[i] = x + (first + i) * t.d;
        desk.pack(count, t);
        leaders.clear();
        score_groups<T>(desk.panel, t, desk.partial, [](size_t) { return true; },
                        [&](size_t, size_t slot, auto &sum) { leaders.see(slot, sum); });
        for (size_t v = 0; v * L < count; ++v) {
            T best[L], second[L];
            typename LaneInt<T>::type slot[L];
            store(best, leaders.best[v]);
            store(second, leaders.second[v]);
            store(slot, leaders.slot[v]);
            const T *squares = desk.squares + v * L;
            for (size_t i = 0; i < least(L, count - v * L); ++i) {
                const size_t row = first + v * L + i;
                int label = t.ids[slot[i]];
                if (!(best[i] - second[i] > doubt.along * root(squares[i]) + doubt.flat)) {
                    label = settle(x + row * t.d, t, desk.y, desk.scores);
                    ++result.settled;
                }
                result.moved += labels[row] != label;
                labels[row] = label;
                if (near) near[row] = larger<T>(squares[i] - 2 * best[i], 0);
                if (next) next[row] = larger<T>(squares[i] - 2 * second[i], 0);
            }
        }
    }
    return result;
}
