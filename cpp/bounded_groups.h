// Rows that bounds leave in doubt, compared with the groups of targets that each of them needs: group by group, so that its
// targets stay in the L1 cache while the rows come from the L2 cache. What a row needs does not depend on its neighbours.

// The minimum of a[g] - b[g].
template <class T> inline T least_difference(const T *a, const T *b, size_t count) {
    using V = Vec<T>;
    constexpr size_t L = lanes<T>;
    T result = T(__builtin_inff());
    size_t g = 0;
    if (count >= L) {
        V lowest = load<V>(a) - load<V>(b);
        for (g = L; g + L <= count; g += L) lowest = smaller(load<V>(a + g) - load<V>(b + g), lowest);
        T parts[L];
        store(parts, lowest);
        for (size_t i = 0; i < L; ++i) result = parts[i] < result ? parts[i] : result;
    }
    for (; g < count; ++g) {
        const T here = a[g] - b[g];
        result = here < result ? here : result;
    }
    return result;
}

// A chunk of such rows, and what is known of each.
template <class T> class GroupedRows {
    using V = Vec<T>;
    using I = typename LaneInt<T>::type;
    static constexpr size_t L = lanes<T>;
    static constexpr size_t cached = 512 << 10;  // bytes of rows

    const Targets<T> &t;
    const Bounds<T> &b;
    const int *group_of;
    const T relative;  // error of a squared distance
    const size_t G, room;
    DotScores<T> scores;
    T *y;  // the rows, shifted, with zeros at the end
    T *square, *slack, *best, *second, *runner;  // of each row; `runner`: the best score in the group of the best, but for that
    int *slot;
    unsigned short *list;  // by group: rows that need it
    int *counts;

    static size_t most(const Targets<T> &t) {
        size_t widest = 0;
        for (size_t g = 0; g < t.groups; ++g) {
            const size_t width = size_t(t.ends[g] - (g ? t.ends[g - 1] : 0));
            widest = width > widest ? width : widest;
        }
        return widest;
    }
    static size_t rows_for(const Targets<T> &t) {
        const size_t rows = cached / (t.stride * sizeof(T)) / 64 * 64;
        return rows < 64 ? 64 : rows > 512 ? 512 : rows;
    }

public:
    // For shorter rows, to list and to fold takes longer than the products that it saves: then whole panels are compared.
    static constexpr size_t least_columns = 96;
    static bool suit(const Targets<T> &t) {
        return t.groups > 1 && t.by_slot && t.d >= least_columns && DotScores<T>::exact_enough(t.d);
    }
    static size_t bytes(const Targets<T> &t) {
        if (!suit(t)) return 0;
        const size_t rows = rows_for(t);
        return DotScores<T>::bytes(t, most(t)) +
               round_up(rows * (t.stride + 5) * sizeof(T) + (rows + t.groups) * sizeof(int) + t.groups * rows * sizeof(short), 64);
    }
    GroupedRows(const Targets<T> &t_, const Bounds<T> &b_, const int *groups, T relative_error, char *memory)
        : t(t_), b(b_), group_of(groups), relative(relative_error), G(t_.groups), room(rows_for(t_)), scores(t_, memory) {
        if (!suit(t)) return;
        y = (T *)(memory + DotScores<T>::bytes(t, most(t)));
        square = y + room * t.stride;
        slack = square + room;
        best = slack + room;
        second = best + room;
        runner = second + room;
        slot = (int *)(runner + room);
        counts = slot + room;
        list = (unsigned short *)(counts + G);
    }
    size_t capacity() const { return room; }
    T score(size_t i) const { return best[i]; }
    T next_score(size_t i) const { return second[i]; }
    T squared_length(size_t i) const { return square[i]; }
    T error(size_t i) const { return slack[i]; }
    int best_slot(size_t i) const { return slot[i]; }

    // Row i of the chunk. Meanwhile a row that comes later is fetched, line by line.
    void take(size_t i, const T *row, const T *later) {
        const size_t d = t.d, stride = t.stride;
        const T *pivot = t.pivot, scale = t.scale;
        T *to = y + i * stride, sum = 0;
        V s = {};
        size_t j = 0;
        for (; j + L <= d; j += L) {
            const V v = load<V>(row + j) * scale - load<V>(pivot + j);
            store(to + j, v);
            s += v * v;
            if (L * sizeof(T) == 64 || j % (64 / sizeof(T)) == 0) __builtin_prefetch(later + j, 0, 1);
        }
        for (; j < stride; ++j) {
            to[j] = j < d ? row[j] * scale - pivot[j] : T(0);
            sum += to[j] * to[j];
        }
        for (size_t l = 0; l < L; ++l) sum += s[l];
        square[i] = sum;
        const T reach = square_root(sum) + T(t.longest);
        slack[i] = relative * reach * reach;
        best[i] = second[i] = runner[i] = -T(__builtin_inff());
        slot[i] = 0;
    }
    // An upper bound on the distance of row i to the target in a slot.
    T upper_bound(size_t i, int target) const {
        const T *row = y + i * t.stride, *c = t.by_slot + size_t(target) * t.stride;
        V s[2] = {};
        for (size_t j = 0; j < t.stride; j += 2 * L) {
            FW_UNROLL(2)
            for (size_t u = 0; u < 2; ++u) {
                if (j + u * L >= t.stride) break;
                const V a = load<V>(row + j + u * L) - load<V>(c + j + u * L);
                s[u] += a * a;
            }
        }
        T parts[L], sum = 0;
        store(parts, s[0] + s[1]);
        for (size_t l = 0; l < L; ++l) sum += parts[l];
        return rounded_up_distance(sum, t);
    }

    // Finds the two best scores of `count` rows, and new bounds for the groups that were compared. Returns the number of
    // products of a row with a target.
    size_t compare(const int *members, size_t count, const int *labels) {
        for (size_t g = 0; g < G; ++g) counts[g] = 0;
        for (size_t i = 0; i < count; ++i) choose(i, size_t(members[i]), labels);
        size_t products = 0;
        for (size_t g = 0, from = 0; g < G; from = size_t(t.ends[g++])) {
            const size_t end = size_t(t.ends[g]), rows = size_t(counts[g]);
            products += rows * (end - from);
            for (size_t first = 0; first < rows; first += L)
                compare_vector(list + g * room + first, least(L, rows - first), members, g, from, end);
        }
        return products;
    }
    // The distance of row i to all targets but `label` is bounded, group by group: those of other groups are known, except
    // that of the one with the best. The label is not that of the best score if that was too close to another.
    void finish(size_t i, size_t row, int label) {
        T *lower = b.group_lower + row * G;
        const size_t leading = size_t(group_of[t.ids[slot[i]]]), own = size_t(group_of[label]);
        const bool as_found = t.ids[slot[i]] == label;
        lower[leading] = distance(i, as_found ? runner[i] : best[i]) + b.group_moved[leading] - b.slack;
        if (own != leading) lower[own] = b.group_moved[own] - b.slack;  // 0: to be computed the next time
    }

private:
    T distance(size_t i, T score) const { return lower_root<T>(square[i] - 2 * score - slack[i]); }

    // Where the l-th of a few rows is put, so that few rows take few tiles.
    static constexpr size_t lane(size_t l) { return l % few_tile_rows * DotScores<T>::row_tiles + l / few_tile_rows; }

    void add(size_t g, size_t i) { list[g * room + size_t(counts[g]++)] = (unsigned short)i; }

    // Lists row i for the groups that may have a target as near as its own, and for its own group.
    void choose(size_t i, size_t row, const int *labels) {
        const T upper = b.upper[row] + b.moved[labels[row]] + b.slack, *lower = b.group_lower + row * G;
        const size_t own = size_t(group_of[labels[row]]);
        bool listed = false;
        size_t g = 0;
        for (; g + L <= G; g += L) {
            auto near = false_lanes(load<V>(lower + g) - load<V>(b.group_moved + g) > upper);
            if (own - g < L) near |= 1ull << (own - g), listed = true;
            for (; near; near &= near - 1) add(g + size_t(__builtin_ctzll(near)), i);
        }
        for (; g < G; ++g)
            if (!(lower[g] - b.group_moved[g] > upper)) {
                add(g, i);
                listed |= g == own;
            }
        if (!listed) add(own, i);
    }

    void compare_vector(const unsigned short *which, size_t count, const int *members, size_t g, size_t from, size_t end) {
        constexpr size_t R = few_tile_rows;
        const T *rows[L];
        for (size_t l = 0; l < L; ++l) rows[lane(l)] = y + which[least(l, count - 1)] * t.stride;
        BestTwo<T> leaders;
        leaders.clear();
        scores.template compare<true>(rows, nullptr, from, end, nullptr, 0, leaders, (count + R - 1) / R);
        T scored[L], scored_next[L], top[L], next[L];
        I slots[L];
        store(scored, leaders.best[0]);
        store(scored_next, leaders.second[0]);
        store(slots, leaders.slot(0));
        int place[L];
        for (size_t l = 0; l < L; ++l) top[l] = scored[lane(l)], next[l] = scored_next[lane(l)], place[l] = int(slots[lane(l)]);
        const T shift = b.group_moved[g] - b.slack;
        // In vectors, since which group is the best is hard to predict.
        T before[L], others[L], mine[L], squares[L], errors[L];
        for (size_t l = 0; l < L; ++l) {
            const size_t i = which[least(l, count - 1)];
            before[l] = best[i], others[l] = second[i], mine[l] = runner[i], squares[l] = square[i], errors[l] = slack[i];
        }
        T low[L];
        for (size_t l = 0; l < L; ++l) low[l] = lower_root<T>(squares[l] - 2 * top[l] - errors[l]) + shift;
        int won[L];
        for (size_t l = 0; l < L; ++l) won[l] = top[l] > before[l];
        for (size_t l = 0; l < L; ++l) {
            const T rest = won[l] ? next[l] : others[l], loser = won[l] ? before[l] : top[l];
            others[l] = rest > loser ? rest : loser;
            mine[l] = won[l] ? next[l] : mine[l];
            before[l] = won[l] ? top[l] : before[l];
        }
        for (size_t l = 0; l < count; ++l) {
            const size_t i = which[l];
            b.group_lower[size_t(members[i]) * G + g] = low[l];
            best[i] = before[l], second[i] = others[l], runner[i] = mine[l];
            slot[i] = won[l] ? place[l] : slot[i];
        }
    }
};
