// The nearest target with bounds from earlier passes (Hamerly 2010; Ding and others 2015): most rows are never multiplied.
// Whatever is skipped is skipped for certain: upper bounds are rounded up, lower bounds down, and by more than the
// scores can be wrong.

// Distances from scores, rounded outward.
template <class T> struct Rounding {
    double relative, longest;
    explicit Rounding(const Targets<T> &t) : relative(2 * unit<T> * chain(t.d)), longest(t.longest) {}

    // What a squared distance of a row of that squared length can be wrong by.
    double slack(double square) const {
        const double reach = __builtin_sqrt(square) + longest;
        return relative * reach * reach;
    }
    static T up(double v) { return T(__builtin_sqrt(v > 0 ? v : 0) * (1 + 4 * unit<T>)) + least_value(); }
    static T down(double v) { return v > 0 ? T(__builtin_sqrt(v) * (1 - 4 * unit<T>)) : T(0); }
    static T least_value() { return sizeof(T) == 4 ? T(1e-37f) : T(1e-300); }
};

template <class T> inline T step_up(T a, T b) { return (a + b) * (1 + T(2 * unit<T>)); }
template <class T> inline T step_down(T a, T b) {
    const T less = (a - b) * (1 - T(2 * unit<T>)) - a * T(2 * unit<T>);
    return less > 0 ? less : T(0);
}

// What bounds have left over: rows to be compared, sorted by their label so that rows of a panel need the same groups.
struct Survivors {
    int *rows;   // n
    int *order;  // n
    int *counts; // k + 1
};

template <class T>
Assigned nearest_bounded(const T *x, size_t n, const Targets<T> &t, int *labels, const Bounds<T> &b) {
    constexpr size_t N = panel_rows<T>, L = lanes<T>;
    const size_t G = t.groups, d = t.d;
    const size_t leader_size = round_up(sizeof(Leaders<T>), 64);
    const size_t ints = round_up((2 * n + t.k + 1 + t.k) * sizeof(int), 64);
    char *memory;
    Desk<T> desk(t, ints + leader_size * G + round_up(G, 64), &memory);
    Survivors left{(int *)memory, (int *)memory + n, (int *)memory + 2 * n};
    int *group_of = left.counts + t.k + 1;
    Leaders<T> *leaders = (Leaders<T> *)(memory + ints);
    bool *wanted = (bool *)(memory + ints + leader_size * G);
    for (size_t g = 0, s = 0; g < G; ++g)
        for (; s < size_t(t.ends[g]); ++s) group_of[t.ids[s]] = int(g);

    Assigned result{0, 0, 0};
    const Doubt<T> doubt(t);
    const Rounding<T> rounding(t);
    size_t alive = 0;
    if (b.fresh) {
        for (size_t i = 0; i < n; ++i) left.order[i] = int(i);
        alive = n;
    } else {
        for (size_t c = 0; c <= t.k; ++c) left.counts[c] = 0;
        for (size_t i = 0; i < n; ++i) {
            const int own = labels[i];
            T *lower = b.lower + i * G;
            T nearest_other = T(__builtin_inff());
            for (size_t g = 0; g < G; ++g) {
                lower[g] = step_down(lower[g], b.group_drift[g]);
                nearest_other = lower[g] < nearest_other ? lower[g] : nearest_other;
            }
            T upper = step_up(b.upper[i], b.drift[own]);
            if (upper >= nearest_other) {
                // The bound may only have grown stale: one product makes it sharp again.
                const T *row = x + i * d;
                const double exact = direct(row, t.wide_scale, t.exact + size_t(own) * d, d);
                upper = Rounding<T>::up(exact * (1 + (double(d) + 8) * 0x1p-52));
                if (upper >= nearest_other) {
                    left.rows[alive++] = int(i);
                    ++left.counts[own + 1];
                }
            }
            b.upper[i] = upper;
        }
        for (size_t c = 0; c < t.k; ++c) left.counts[c + 1] += left.counts[c];
        for (size_t i = 0; i < alive; ++i) left.order[left.counts[labels[left.rows[i]]]++] = left.rows[i];
    }
    result.computed = alive;
    for (size_t first = 0; first < alive; first += N) {
        const size_t count = least(N, alive - first);
        const int *members = left.order + first;
        for (size_t i = 0; i < count; ++i) desk.rows[i] = x + size_t(members[i]) * d;
        desk.pack(count, t);
        for (size_t g = 0; g < G; ++g) wanted[g] = b.fresh;
        if (!b.fresh)
            for (size_t i = 0; i < count; ++i) {
                const size_t row = size_t(members[i]);
                for (size_t g = 0; g < G; ++g) wanted[g] |= b.lower[row * G + g] <= b.upper[row];
                wanted[group_of[labels[row]]] = true;
            }
        for (size_t g = 0; g < G; ++g) leaders[g].clear();
        score_groups<T>(desk.panel, t, desk.partial, [&](size_t g) { return wanted[g]; },
                        [&](size_t g, size_t slot, auto &sum) { leaders[g].see(slot, sum); });
        for (size_t i = 0; i < count; ++i) {
            const size_t row = size_t(members[i]), v = i / L, lane = i % L;
            const double square = double(desk.squares[i]);
            T best = -T(__builtin_inff()), second = best;
            size_t slot = 0;
            for (size_t g = 0; g < G; ++g) {
                if (!wanted[g]) continue;
                const T here = leaders[g].best[v][lane], next = leaders[g].second[v][lane];
                if (here > best) {
                    second = best > next ? best : next;
                    best = here;
                    slot = size_t(leaders[g].slot[v][lane]);
                } else if (here > second) {
                    second = here;
                }
            }
            int label = t.ids[slot];
            double nearest2 = square - 2 * double(best) + rounding.slack(square);
            if (!(best - second > doubt.along * root(desk.squares[i]) + doubt.flat)) {
                label = settle(x + row * d, t, desk.y, desk.scores);
                nearest2 = direct(x + row * d, t.wide_scale, t.exact + size_t(label) * d, d);
                nearest2 *= 1 + (double(d) + 8) * 0x1p-52;
                ++result.settled;
            }
            b.upper[row] = Rounding<T>::up(nearest2);
            for (size_t g = 0; g < G; ++g) {
                if (!wanted[g]) continue;
                const bool own = t.ids[leaders[g].slot[v][lane]] == label;
                const double other = own ? leaders[g].second[v][lane] : leaders[g].best[v][lane];
                b.lower[row * G + g] = Rounding<T>::down(square - 2 * other - rounding.slack(square));
            }
            result.moved += labels[row] != label;
            labels[row] = label;
        }
    }
    return result;
}
