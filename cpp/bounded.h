// Nearest targets with the help of distance bounds from earlier passes (Hamerly 2010; Ding et al. 2015), so that most
// rows need no products at all. A row or a group of targets is skipped only when that cannot change the result: upper
// bounds are rounded up and lower bounds down, by more than the error of the scores.
//
// Bounds are stored relative to the first pass: an upper bound has the total movement of its target subtracted, a
// lower bound has the total movement of the targets added. A pass therefore reads all bounds but writes only the ones
// it recomputes.

// The square root of a sum of squared differences between a row and a target, in chains of two vectors, plus what covers
// the rounding of the sum and of the row and the target themselves.
template <class T> inline T rounded_up_distance(T sum, const Targets<T> &t) {
    const T about = square_root(sum);
    return about * T(1 + unit_roundoff<T> * (double(t.d) / (2 * lanes<T>) + 16)) + T(4 * unit_roundoff<T>) * (about + T(2 * t.longest));
}

// An upper bound on the distance between a row and a target, computed from differences in T.
template <bool observed = false, class T> inline T distance_upper_bound(const T *x, const Targets<T> &t, size_t target) {
    using V = Vec<T>;
    constexpr size_t L = lanes<T>;
    const T *c = t.shifted + target * t.d;
    V s0 = {}, s1 = {};
    size_t j = 0;
    for (; j + 2 * L <= t.d; j += 2 * L) {
        V a = (load<V>(x + j) * t.scale - load<V>(t.pivot + j)) - load<V>(c + j);
        V b = (load<V>(x + j + L) * t.scale - load<V>(t.pivot + j + L)) - load<V>(c + j + L);
        if constexpr (observed) a = zero_if_nan(a), b = zero_if_nan(b);
        s0 += a * a;
        s1 += b * b;
    }
    T parts[L], sum = 0;
    store(parts, s0 + s1);
    for (size_t i = 0; i < L; ++i) sum += parts[i];
    for (; j < t.d; ++j) {
        const T a = (x[j] * t.scale - t.pivot[j]) - c[j];
        if constexpr (observed)
            if (a != a) continue;
        sum += a * a;
    }
    return rounded_up_distance(sum, t);
}

// Writes to `left`, in order, the rows whose label the bounds do not confirm. Once the centres hardly move, most of
// the time is spent here. If `observed`, the label -1 stands for a row with nothing observed, which keeps it.
template <bool observed = false, class T>
size_t find_doubtful(size_t n, const int *labels, const Bounds<T> &b, int *left) {
    size_t count = 0;
    constexpr size_t step = 64;
    for (size_t first = 0; first < n; first += step) {
        const size_t size = least(step, n - first);
        int doubtful[step];
        const T *upper = b.upper + first, *lower = b.lower + first;
        const int *label = labels + first;
        for (size_t i = 0; i < size; ++i) {
            if constexpr (observed) {
                const int own = label[i] < 0 ? 0 : label[i];
                doubtful[i] = label[i] >= 0 && !(upper[i] + b.moved[own] < lower[i] - b.most_moved);
            } else {
                doubtful[i] = !(upper[i] + b.moved[label[i]] < lower[i] - b.most_moved);
            }
        }
        for (size_t i = 0; i < size; ++i) {
            left[count] = int(first + i);
            count += size_t(doubtful[i]);
        }
    }
    return count;
}

template <class T> inline T upper_root(T square) { return square_root(square > 0 ? square : T(0)) * T(1 + 4 * unit_roundoff<T>); }
template <class T> inline T lower_root(T square) { return square_root(square > 0 ? square : T(0)) * T(1 - 4 * unit_roundoff<T>); }

#include "bounded_groups.h"

// Over observed cells a distance is that of a seminorm, at most as large as the norm; so a target's movement bounds the
// change of such distances as well, and the same bounds serve rows with missing cells.
template <class T, bool observed = false> class BoundedPass {
    static constexpr size_t N = panel_rows<T>, L = lanes<T>;
    using V = Vec<T>;
    using I = typename LaneInt<T>::type;

    const T *x;
    const size_t n;
    const Targets<T> &t;
    int *labels;
    const Bounds<T> &b;
    const size_t G;
    const bool few;
    char *memory = nullptr;
    PanelWorkspace<T, observed> work;
    FewTargets<T> few_way;
    const TieMargin<T, observed> margin;
    // Relative error of a squared distance: twice that of the score with its tag, plus that of the row's squared length (a sum
    // over d).
    const T relative;
    const T farthest;
    int *rows, *order, *counts, *group_of, *slot_of;
    I *wanted;
    BestTwo<T> *leaders;
    AssignCounts result{0, 0, 0, 0};
    ChangeLog<T> log;
    GroupedRows<T> grouped;
    const size_t ahead;  // so many rows later, a row is fetched into the cache
    size_t products = 0;  // number of products of a row with a target

    static size_t ints(size_t n, const Targets<T> &t) { return round_up((2 * n + 64 + 3 * t.k + 1) * sizeof(int), 64); }
    static int *groups_at(char *memory, size_t n, const Targets<T> &t) { return (int *)memory + 2 * n + 64 + t.k + 1; }
    static size_t by_group(const Targets<T> &t) {
        return round_up(sizeof(BestTwo<T>) * t.groups, 64) + round_up(t.groups * sizeof(I), 64);
    }
    static size_t extra(size_t n, const Targets<T> &t) {
        return ints(n, t) + by_group(t) + FewTargets<T>::bytes(t) + GroupedRows<T>::bytes(t);
    }

public:
    BoundedPass(const T *x_, size_t n_, const Targets<T> &t_, int *labels_, const Bounds<T> &b_, Changes changes,
                const FixedSums *sums)
        : x(x_), n(n_), t(t_), labels(labels_), b(b_), G(t_.groups),
          few(!observed && G == 1 && FewTargets<T>::suit(t_)), work(x_, n_, t_, extra(n_, t_), &memory),
          few_way(t_, memory + ints(n_, t_) + by_group(t_)), margin(t_),
          relative(T((unit_roundoff<T> * (2 * score_chain<observed>(t_.d) + double(t_.d) + 16) + 2 * tag_error<T>) * 1.01)),
          farthest(T(2 * __builtin_sqrt(double(t_.d)))), log(changes, sums, nullptr, x_, n_, t_, labels_),
          grouped(t_, b_, groups_at(memory, n_, t_), relative,
                  memory + ints(n_, t_) + by_group(t_) + FewTargets<T>::bytes(t_)),
          ahead(least(2 + 8192 / (t_.d * sizeof(T)), 16)) {
        rows = (int *)memory;
        order = rows + n + 64;
        counts = order + n;
        group_of = groups_at(memory, n, t);
        slot_of = group_of + t.k;
        leaders = (BestTwo<T> *)(memory + ints(n, t));
        wanted = (I *)(memory + ints(n, t) + round_up(sizeof(BestTwo<T>) * G, 64));
        for (size_t g = 0, s = 0; g < G; ++g)
            for (; s < size_t(t.ends[g]); ++s) {
                group_of[t.ids[s]] = int(g);
                slot_of[t.ids[s]] = int(s);
            }
    }

    AssignCounts run() {
        const int *members = order;
        size_t alive = n;
        if (b.fresh) {
            if constexpr (observed) {
                alive = without_empty();
            } else {
                for (size_t i = 0; i < n; ++i) order[i] = int(i);
            }
        } else {
            alive = find_doubtful<observed>(n, labels, b, rows);
            // With few or short targets a full comparison is cheaper than tightening the bounds first.
            const bool tighten = t.k * t.d >= 1000 && t.k > few_most;
            members = rows;
            if (tighten && G == 1) {
                tighten_and_compare(alive);
                alive = 0;
            } else if (G > 1 && !observed && GroupedRows<T>::suit(t)) {
                tighten_and_compare_grouped(alive);
                alive = 0;
            } else if (G > 1) {
                members = sorted(tighten ? alive = tighten_bounds(alive) : alive);
            }
        }
        for (size_t first = 0; first < alive; first += N) compare(members + first, least(N, alive - first), alive - first);
        result.moved = log.total();
        result.computed = (products + t.k - 1) / t.k;
        return result;
    }

private:
    // Lists the rows with an observed cell; the others get the label -1.
    size_t without_empty() {
        size_t alive = 0;
        for (size_t i = 0; i < n; ++i) {
            order[alive] = int(i);
            if (!nothing_observed(x + i * t.d, t.d)) {
                ++alive;
                continue;
            }
            log.write_label(i, -1);
            b.upper[i] = b.lower[i] = 0;
            for (size_t g = 0; G > 1 && g < G; ++g) b.group_lower[i * G + g] = 0;
        }
        return alive;
    }

    // Improves the lower bound of a row by those of the groups; returns whether they still leave its label in doubt.
    bool doubtful_by_groups(size_t row) {
        const T nearest_group = least_difference(b.group_lower + row * G, b.group_moved, G);
        if (nearest_group > b.lower[row] - b.most_moved) b.lower[row] = nearest_group + b.most_moved - b.slack;
        return !(b.upper[row] + b.moved[labels[row]] + b.slack < b.lower[row] - b.most_moved);
    }

    // Replaces the upper bound of a row; returns whether that still leaves its label in doubt.
    bool doubtful_at(size_t row, T upper) {
        b.upper[row] = upper < farthest ? upper - b.moved[labels[row]] + b.slack : T(__builtin_inff());
        return !(upper < farthest && upper + b.slack < b.lower[row] - b.most_moved);
    }

    // Tightens the bounds of one row; returns whether they still leave its label in doubt.
    bool still_doubtful(size_t row) {
        if (G > 1 && !doubtful_by_groups(row)) return false;
        return doubtful_at(row, distance_upper_bound<observed>(x + row * t.d, t, size_t(labels[row])));
    }

    // Moves those of the first `count` entries of `rows` that are still in doubt to the front, and returns their
    // number.
    size_t tighten_bounds(size_t count) {
        size_t alive = 0;
        for (size_t i = 0; i < count; ++i) {
            const int row = rows[i];
            rows[alive] = row;
            alive += still_doubtful(size_t(row));
        }
        return alive;
    }

    // Tightens and compares in one loop, so that rows are compared while they are still in the cache.
    void tighten_and_compare(size_t count) {
        int panel[N];
        size_t waiting = 0;
        for (size_t i = 0; i < count; ++i) {
            panel[waiting] = rows[i];
            waiting += still_doubtful(size_t(rows[i]));  // branch-free, because the outcome is hard to predict
            if (waiting < N) continue;
            compare(panel, N, N);
            waiting = 0;
        }
        if (waiting) compare(panel, waiting, waiting);
    }

    // The same in chunks, for targets in groups.
    void tighten_and_compare_grouped(size_t count) {
        constexpr size_t chunk = 1024;
        size_t waiting = 0;
        for (size_t first = 0; first < count; first += chunk) {
            const size_t end = least(first + chunk, count);
            size_t alive = first;
            for (size_t i = first; i < end; ++i) {
                rows[alive] = rows[i];
                alive += doubtful_by_groups(size_t(rows[i]));
            }
            for (size_t i = first; i < alive; ++i) {
                const size_t row = size_t(rows[i]);
                grouped.take(waiting, x + row * t.d, x + size_t(rows[least(i + ahead, alive - 1)]) * t.d);
                order[waiting] = int(row);
                waiting += doubtful_at(row, grouped.upper_bound(waiting, slot_of[labels[row]]));
                if (waiting < grouped.capacity()) continue;
                compare_grouped(order, waiting);
                waiting = 0;
            }
        }
        if (waiting) compare_grouped(order, waiting);
    }

    // Sorts by label, so that the rows of a panel are close to the same groups.
    const int *sorted(size_t alive) {
        for (size_t c = 0; c <= t.k; ++c) counts[c] = 0;
        for (size_t i = 0; i < alive; ++i) ++counts[size_t(slot_of[labels[rows[i]]]) + 1];
        for (size_t c = 0; c < t.k; ++c) counts[c + 1] += counts[c];
        for (size_t i = 0; i < alive; ++i) order[counts[slot_of[labels[rows[i]]]]++] = rows[i];
        return order;
    }

    // A chunk of rows, each with the groups that it needs.
    void compare_grouped(const int *members, size_t count) {
        products += grouped.compare(members, count, labels);
        const T shift = b.most_moved - b.slack;
        for (size_t i = 0; i < count; ++i) {
            const size_t row = size_t(members[i]);
            const T best = grouped.score(i), square = grouped.squared_length(i);
            int label = t.ids[grouped.best_slot(i)];
            T upper;
            if (margin.decides(best, grouped.next_score(i), T(square_root(square)))) {
                upper = upper_root<T>(square - 2 * best + grouped.error(i));
            } else {
                label = resolve_tie(x + row * t.d, t, work.y, work.scores, result);
                upper = distance_upper_bound(x + row * t.d, t, size_t(label));
            }
            log.write_label(row, label);
            b.upper[row] = upper < farthest ? upper - b.moved[label] + b.slack : T(__builtin_inff());
            grouped.finish(i, row, label);
            b.lower[row] = shift + least_difference(b.group_lower + row * G, b.group_moved, G);
            if (i % 64 == 63) log.move();
        }
        log.move();
    }

    void choose_groups(const int *members, size_t count) {
        for (size_t g = 0; g < G; ++g) wanted[g] = b.fresh || G == 1;
        if (b.fresh || G == 1) return;
        for (size_t i = 0; i < count; ++i) {
            const size_t row = size_t(members[i]);
            const T upper = b.upper[row] + b.moved[labels[row]] + b.slack, *lower = b.group_lower + row * G;
            for (size_t g = 0; g < G; ++g) wanted[g] |= !(lower[g] - b.group_moved[g] > upper);
            wanted[group_of[labels[row]]] = 1;
        }
    }

    // `known` is the number of members that are to be compared, now or later.
    void compare(const int *members, size_t count, size_t known) {
        for (size_t i = 0; i < count; ++i) work.rows[i] = x + size_t(members[i]) * t.d;
        work.use_rows(count, t);
        choose_groups(members, count);
        for (size_t g = 0; g < G; ++g)
            if (wanted[g]) {
                leaders[g].clear();
                products += count * size_t(t.ends[g] - (g ? t.ends[g - 1] : 0));
            }
        if (few) {
            if constexpr (!observed) {
                const T *after[L];
                for (size_t i = 0; i < L; ++i) after[i] = x + size_t(members[least(count + i, known - 1)]) * t.d;
                few_way.compare(work, after, leaders[0]);
            }
        } else {
            score_groups<T>(work, t, [&](size_t g) { return wanted[g] != 0; },
                            [&](size_t g, size_t slot, auto &sum) { leaders[g].update(slot, sum); });
        }
        BestTwo<T> all;
        all.clear();
        for (size_t g = 0; g < G; ++g) {
            if (!wanted[g]) continue;
            for (size_t v = 0; v < panel_vectors; ++v) {
                const V best = all.best[v], here = leaders[g].best[v];
                const auto won = here > best;
                all.second[v] = won ? larger(best, leaders[g].second[v]) : larger(all.second[v], here);
                all.best[v] = won ? here : best;
                all.tile[v] = won ? leaders[g].tile[v] : all.tile[v];
            }
        }
        T best[N], second[N], length[N], slack[N], upper[N], lower[N];
        I slot[N];
        __builtin_memcpy(best, all.best, sizeof best);
        __builtin_memcpy(second, all.second, sizeof second);
        for (size_t v = 0; v < panel_vectors; ++v) store(slot + v * L, all.slot(v));
        const T *squares = work.squares, longest = T(t.longest);
        int unclear = 0;
        for (size_t i = 0; i < N; ++i) length[i] = square_root(squares[i]);
        for (size_t i = 0; i < N; ++i) slack[i] = relative * (length[i] + longest) * (length[i] + longest);
        for (size_t i = 0; i < N; ++i) upper[i] = upper_root<T>(squares[i] - 2 * best[i] + slack[i]);
        for (size_t i = 0; i < N; ++i) unclear |= !margin.decides(best[i], second[i], length[i]);
        for (size_t i = 0; unclear && i < count; ++i) {
            if (margin.decides(best[i], second[i], length[i])) continue;
            const T *row = x + size_t(members[i]) * t.d;
            int label;
            if constexpr (observed) label = resolve_observed_tie(row, t, result);
            else label = resolve_tie(row, t, work.y, work.scores, result);
            slot[i] = slot_of[label];
            upper[i] = distance_upper_bound<observed>(row, t, size_t(label));
        }
        for (size_t i = 0; i < count; ++i) {
            const size_t row = size_t(members[i]);
            const int label = t.ids[slot[i]];
            log.write_label(row, label);
            b.upper[row] = upper[i] < farthest ? upper[i] - b.moved[label] + b.slack : T(__builtin_inff());
        }
        for (size_t g = 0; g < G; ++g) {
            if (!wanted[g]) continue;
            T first[N], next[N];
            I mine[N];
            __builtin_memcpy(first, leaders[g].best, sizeof first);
            __builtin_memcpy(next, leaders[g].second, sizeof next);
            for (size_t v = 0; v < panel_vectors; ++v) store(mine + v * L, leaders[g].slot(v));
            for (size_t i = 0; i < N; ++i) {
                const T score = mine[i] == slot[i] ? next[i] : first[i];
                lower[i] = lower_root<T>(squares[i] - 2 * score - slack[i]);
            }
            if (G > 1) {
                const T shift = b.group_moved[g] - b.slack;
                for (size_t i = 0; i < count; ++i) b.group_lower[size_t(members[i]) * G + g] = lower[i] + shift;
            }
        }
        const T shift = b.most_moved - b.slack;
        for (size_t i = 0; i < count; ++i) {
            const size_t row = size_t(members[i]);
            b.lower[row] = shift + (G > 1 ? least_difference(b.group_lower + row * G, b.group_moved, G) : lower[i]);
        }
        log.move();
    }
};

template <class T, bool observed = false>
AssignCounts nearest_bounded(const T *x, size_t n, const Targets<T> &t, int *labels, const Bounds<T> &b, Changes changes,
                             const FixedSums *sums) {
    return BoundedPass<T, observed>(x, n, t, labels, b, changes, sums).run();
}
