// K-means on sparse rows: products run over the stored values, with the targets in vector lanes.

// sum += value + rest, without losing the rounding error.
inline void add(TwoPartSum &sum, double value, double rest) {
    const double s = sum.high + value, t = s - sum.high;
    const double error = (sum.high - (s - t)) + (value - t);
    sum.exact &= error == 0 && rest == 0;
    const double e = error + (sum.low + rest);
    sum.high = s + e;
    sum.low = e - (sum.high - s);
}

inline void add_product(TwoPartSum &sum, double a, double b) {
    const double p = a * b;
    add(sum, p, __builtin_fma(a, b, -p));
}

// Transposes the targets and computes their squared lengths.
template <class T>
void prepare_targets(const T *points, size_t k, size_t d, double scale, size_t stride, float *transposed, TwoPartSum *squares) {
    constexpr size_t step = 8;
    for (size_t first = 0; first < d; first += step) {
        const size_t count = least(step, d - first);
        for (size_t c = 0; c < k; ++c)
            for (size_t j = 0; j < count; ++j)
                transposed[(first + j) * stride + c] = float(double(points[c * d + first + j]) * scale);
        for (size_t c = k; c < stride; ++c)
            for (size_t j = 0; j < count; ++j) transposed[(first + j) * stride + c] = 0;
    }
    for (size_t c = 0; c < k; ++c) {
        const T *point = points + c * d;
        double high[step] = {}, low[step] = {}, lost[step] = {};
        for (size_t first = 0; first < d; first += step) {
            double value[step] = {};
            for (size_t i = 0; i < least(step, d - first); ++i) value[i] = double(point[first + i]) * scale;
            for (size_t i = 0; i < step; ++i) {  // `add`, vectorised
                const double p = value[i] * value[i], q = __builtin_fma(value[i], value[i], -p);
                const double s = high[i] + p, t = s - high[i];
                const double error = (high[i] - (s - t)) + (p - t);
                lost[i] += __builtin_fabs(error) + __builtin_fabs(q);
                const double e = error + (low[i] + q);
                high[i] = s + e;
                low[i] = e - (high[i] - s);
            }
        }
        TwoPartSum sum{0, 0, true};
        for (size_t i = 0; i < step; ++i) {
            sum.exact &= lost[i] == 0;
            add(sum, high[i], low[i]);
        }
        squares[c] = sum;
    }
}

template <class T, class I> struct SparseRow {
    const T *values;
    const I *columns;
    size_t count;
    SparseRow(const SparseRows<T, I> &x, size_t i)
        : values(x.values + x.starts[i]), columns(x.columns + x.starts[i]), count(size_t(x.starts[i + 1] - x.starts[i])) {}
};

template <class T, class I> double square_of(const SparseRow<T, I> &row, double scale) {
    double sum = 0;
    for (size_t p = 0; p < row.count; ++p) {
        const double v = double(row.values[p]) * scale;
        sum += v * v;
    }
    return sum;
}

// The length of a row. It is finite even if the square overflows, as for a row far beyond all targets.
template <class T, class I> double length_of(const SparseRow<T, I> &row, double scale, double square) {
    if (square < __builtin_inf()) return __builtin_sqrt(square);
    double largest = 0;
    for (size_t p = 0; p < row.count; ++p) largest = larger(largest, __builtin_fabs(double(row.values[p]) * scale));
    return largest * __builtin_sqrt(double(row.count));
}

// Computes the scores y'c - |c|^2 / 2 for nv vectors of targets.
template <class T, class I, size_t nv>
inline void score_vectors(const SparseRow<T, I> &row, const SparseTargets<T> &t, size_t first, double *scores) {
    using V = Vec<double>;
    constexpr size_t L = lanes<double>, ahead = 6, line = 16;
    const float *transposed = t.transposed + first;
    V sum[nv] = {};
    for (size_t p = 0; p < row.count; ++p) {
        if (p + ahead < row.count) {
            const float *later = transposed + size_t(row.columns[p + ahead]) * t.stride;
            FW_UNROLL(8)
            for (size_t i = 0; i * line < nv * L; ++i) __builtin_prefetch(later + i * line);
        }
        const float *column = transposed + size_t(row.columns[p]) * t.stride;
        const V value = broadcast(double(row.values[p]) * t.scale);
        FW_UNROLL(8)
        for (size_t i = 0; i < nv; ++i) sum[i] += value * load_as<double>(column + i * L);
    }
    FW_UNROLL(8)
    for (size_t i = 0; i < nv; ++i) store(scores + first + i * L, sum[i] - load<V>(t.half + first + i * L));
}

template <class T, class I, size_t nv>
inline void score_some(size_t vectors, const SparseRow<T, I> &row, const SparseTargets<T> &t, size_t first, double *scores) {
    if (vectors == nv) return score_vectors<T, I, nv>(row, t, first, scores);
    if constexpr (nv > 1) score_some<T, I, nv - 1>(vectors, row, t, first, scores);
}

template <class T, class I> inline void score_all(const SparseRow<T, I> &row, const SparseTargets<T> &t, double *scores) {
    constexpr size_t L = lanes<double>, most = 8;
    for (size_t first = 0; first < t.stride; first += most * L)
        score_some<T, I, most>(least(most, (t.stride - first) / L), row, t, first, scores);
}

// The two best scores, and the target of the best.
struct BestTwoScores {
    double best, second;
    size_t whose;
};

inline BestTwoScores best_two(const double *scores, size_t stride) {
    using V = Vec<double>;
    constexpr size_t L = lanes<double>;
    V top = load<V>(scores), next = V{} - __builtin_inf();
    for (size_t c = L; c < stride; c += L) {
        const V s = load<V>(scores + c);
        next = larger(next, smaller(top, s));
        top = larger(top, s);
    }
    double tops[L], nexts[L];
    store(tops, top);
    store(nexts, next);
    BestTwoScores out{tops[0], nexts[0], 0};
    for (size_t i = 1; i < L; ++i) {
        const double low = tops[i] < out.best ? tops[i] : out.best;
        out.best = tops[i] > out.best ? tops[i] : out.best;
        out.second = low > out.second ? low : out.second;
        out.second = nexts[i] > out.second ? nexts[i] : out.second;
    }
    while (out.whose + 1 < stride && scores[out.whose] != out.best) ++out.whose;
    if (scores[out.whose] != out.best) out.whose = 0;  // NaN: the products overflowed float64
    return out;
}

// An upper bound on the error of the difference of two scores: the rounding of the targets to float32 (none if they
// are float32), the chain of additions over the stored values, and values that are subnormal in `transposed`. Squared
// lengths are correctly rounded.
template <class T> inline double score_error_bound(size_t count, double length, double longest) {
    const double rounding = (sizeof(T) == 8 ? 0x1p-24 : 0) + 0x1p-53 * double(count + 8);
    return rounding * (2 * length * longest + longest * longest) * 1.01 + 0x1p-140 * length * __builtin_sqrt(double(count));
}

// Expands a row into an array of d zeros, which is zero again when this object is destroyed. Only a few rows need it.
template <class T, class I> struct DenseRow {
    double *y;
    const SparseRow<T, I> &row;
    DenseRow(double *zeros, const SparseRow<T, I> &some, double scale) : y(zeros), row(some) {
        for (size_t p = 0; p < row.count; ++p) y[row.columns[p]] += double(row.values[p]) * scale;
    }
    ~DenseRow() {
        for (size_t p = 0; p < row.count; ++p) y[row.columns[p]] = 0;
    }
};

// The exact nearest target of one row, the lowest-numbered one among equals. For targets that float64 cannot
// distinguish, scores are computed in double-double arithmetic; targets that are still tied are compared by
// differences over all columns.
template <class T, class I>
int resolve_tie(const SparseRow<T, I> &row, const SparseTargets<T> &t, const double *scores, double best, double doubt,
                double length, TwoPartSum *sums, double *zeros) {
    const TwoPartSum nothing{-__builtin_inf(), 0, true};
    size_t candidates = 0, winner = t.k;
    TwoPartSum top = nothing;
    const auto greater = [](const TwoPartSum &a, const TwoPartSum &b) {
        return a.high > b.high || (a.high == b.high && a.low > b.low);
    };
    for (size_t c = 0; c < t.k; ++c) {
        sums[c] = nothing;
        if (best - scores[c] > doubt || size_t(t.first[c]) != c) continue;
        TwoPartSum sum{-t.squares[c].high / 2, -t.squares[c].low / 2, t.squares[c].exact};
        const T *point = t.points + c * t.d;
        for (size_t p = 0; p < row.count; ++p)
            add_product(sum, double(row.values[p]) * t.scale, double(point[row.columns[p]]) * t.scale);
        sums[c] = sum;
        ++candidates;
        if (winner == t.k || greater(sum, top)) {
            top = sum;
            winner = c;
        }
    }
    if (candidates <= 1) return int(winner);
    const double fine = 0x1p-102 * double(row.count + t.d) * (2 * length * t.longest + t.longest * t.longest);
    bool tied = false;
    for (size_t c = 0; c < t.k; ++c) {
        const double behind = (top.high - sums[c].high) + (top.low - sums[c].low);
        const bool sure = behind > fine || (behind != 0 && sums[c].exact && top.exact);
        if (sure) sums[c].high = -__builtin_inf();
        else if (c != winner && !(sums[c].exact && top.exact)) tied = true;  // if exact, they are equal: the lower wins
    }
    if (!tied) return int(winner);
    const DenseRow<T, I> dense(zeros, row, t.scale);
    winner = t.k;
    DoubleDouble least_found{0, 0};
    for (size_t c = 0; c < t.k; ++c) {
        if (sums[c].high == -__builtin_inf()) continue;
        const DoubleDouble found = squared_distance_pair(t.points + c * t.d, t.scale, dense.y, t.d);
        if (winner == t.k || found.high < least_found.high ||
            (found.high == least_found.high && found.low < least_found.low)) {
            winner = c;
            least_found = found;
        }
    }
    return int(winner);
}

// The squared distance of a row to target c: |c|^2 plus the sum over stored values of y (y - 2 c). If these nearly
// cancel, it is computed from differences over all columns.
template <class T, class I>
double sparse_squared_distance(const SparseRow<T, I> &row, const SparseTargets<T> &t, size_t c, double *zeros) {
    TwoPartSum sum = t.squares[c];
    const T *point = t.points + c * t.d;
    for (size_t p = 0; p < row.count; ++p) {
        const double y = double(row.values[p]) * t.scale;
        add_product(sum, y, y - 2 * (double(point[row.columns[p]]) * t.scale));
    }
    if (sum.high > 1e-3 * t.squares[c].high) return sum.high;
    const DenseRow<T, I> dense(zeros, row, t.scale);
    return squared_distance(point, t.scale, dense.y, t.d);
}

// Working memory for one call.
template <class T> struct SparseWorkspace {
    double *scores, *zeros;
    TwoPartSum *sums;
    explicit SparseWorkspace(const SparseTargets<T> &t) {
        scores = (double *)scratch((t.stride + round_up(t.d, 8)) * sizeof(double) + t.k * sizeof(TwoPartSum));
        zeros = scores + t.stride;
        sums = (TwoPartSum *)(zeros + round_up(t.d, 8));
        for (size_t j = 0; j < t.d; ++j) zeros[j] = 0;
    }
};

template <class T, class I>
AssignCounts sparse_nearest(const SparseRows<T, I> &x, const SparseTargets<T> &t, int *labels, T *near, T *next) {
    const SparseWorkspace<T> work(t);
    AssignCounts result{0, x.n, 0, 0};
    for (size_t i = 0; i < x.n; ++i) {
        const SparseRow<T, I> row(x, i);
        const double square = square_of(row, t.scale);
        score_all(row, t, work.scores);
        const BestTwoScores found = best_two(work.scores, t.stride);
        int label = int(found.whose);
        const double length = length_of(row, t.scale, square), doubt = score_error_bound<T>(row.count, length, t.longest);
        if (!(found.best - found.second > doubt)) {
            label = resolve_tie(row, t, work.scores, found.best, doubt, length, work.sums, work.zeros);
            ++result.near_ties;
        }
        result.moved += labels[i] != label;
        labels[i] = label;
        if (near) near[i] = T(sparse_squared_distance(row, t, size_t(label), work.zeros));
        if (next) {  // the first other target with the second-best score, which may equal the best
            size_t other = 0;
            while (other + 1 < t.k && (int(other) == label || work.scores[other] < found.second)) ++other;
            next[i] = T(t.k > 1 ? sparse_squared_distance(row, t, other, work.zeros) : __builtin_inf());
        }
    }
    result.exact_ties = result.near_ties;  // never too low; among sparse rows both are rare
    return result;
}

// As `move_rows` (exact_sums.h), with values split in the same way, but only stored columns are touched.
template <class T, class I>
void sparse_move_rows(const SparseRows<T, I> &x, const double *w, double scale, size_t d, double weight_scale,
                      const int *before, const int *after, const int *slots, size_t m, const Grid &grid, double *high,
                      double *low, double *weight) {
    size_t longest = 8;
    for (size_t i = 0; i < x.n; ++i) longest = larger(longest, size_t(x.starts[i + 1] - x.starts[i]));
    const size_t room = round_up(longest, 8);
    double *part_high = (double *)scratch(3 * room * sizeof(double)), *part_low = part_high + room;
    double *pivot = part_low + room;
    for (size_t p = 0; p < room; ++p) pivot[p] = 0;
    for (size_t i = 0; i < x.n; ++i) {
        const int from = before ? before[i] : -1, to = after[i];
        if (from == to) continue;
        const double factor = w ? w[i] * weight_scale : 1;
        if (factor == 0) continue;
        const SparseRow<T, I> row(x, i);
        split_row(row.values, row.count, scale, pivot, factor, grid, part_high, part_low);
        const double whole = (factor + grid.coarse) - grid.coarse;
        const double rest = ((factor - whole) + grid.fine) - grid.fine;
        const size_t to_slot = size_t(slots[to]);
        for (size_t p = 0; p < row.count; ++p) {
            high[to_slot * d + size_t(row.columns[p])] += part_high[p];
            low[to_slot * d + size_t(row.columns[p])] += part_low[p];
        }
        weight[to_slot] += whole;
        weight[m + to_slot] += rest;
        if (from < 0) continue;
        const size_t from_slot = size_t(slots[from]);
        for (size_t p = 0; p < row.count; ++p) {
            high[from_slot * d + size_t(row.columns[p])] -= part_high[p];
            low[from_slot * d + size_t(row.columns[p])] -= part_low[p];
        }
        weight[from_slot] -= whole;
        weight[m + from_slot] -= rest;
    }
}

template <class T, class I>
void sparse_residuals(const SparseRows<T, I> &x, const double *w, const SparseTargets<T> &t, const int *labels,
                      double *total, double *each) {
    const SparseWorkspace<T> work(t);
    for (size_t i = 0; i < x.n; ++i) {
        const size_t c = size_t(labels[i]);
        const double found = sparse_squared_distance(SparseRow<T, I>(x, i), t, c, work.zeros);
        if (each) each[i] = found;
        total[c] += w ? w[i] * found : found;
    }
}

// As `update_closest` (seeding.h).
template <class T, class I>
double sparse_update_closest(const SparseRows<T, I> &x, const double *w, const SparseTargets<T> &t, size_t taken, T *closest,
                             double *potential) {
    const SparseWorkspace<T> work(t);
    double total = 0;
    for (size_t c = taken; c < t.k; ++c) potential[c - taken] = 0;
    for (size_t i = 0; i < x.n; ++i) {
        const SparseRow<T, I> row(x, i);
        const double square = square_of(row, t.scale), weight = w ? w[i] : 1;
        const double limit = 64 * score_error_bound<T>(row.count, __builtin_sqrt(square), t.longest);
        double near = double(closest[i]);
        score_all(row, t, work.scores);
        for (size_t c = 0; c < t.k; ++c) {
            double found = square - 2 * work.scores[c];
            if (near > 0 && found < limit) found = sparse_squared_distance(row, t, c, work.zeros);
            found = smaller(larger(found, 0.0), near);
            if (c < taken) near = found;
            else potential[c - taken] += found * weight;
        }
        closest[i] = T(near);
        total += double(closest[i]) * weight;
    }
    return total;
}

template <class T, class I> void sparse_distances(const SparseRows<T, I> &x, const SparseTargets<T> &t, T *out) {
    const SparseWorkspace<T> work(t);
    for (size_t i = 0; i < x.n; ++i) {
        const SparseRow<T, I> row(x, i);
        const double square = square_of(row, t.scale);
        for (size_t c = 0; c < t.k; ++c) {
            const T *point = t.points + c * t.d;
            double dot[4] = {};
            size_t p = 0;
            for (; p + 4 <= row.count; p += 4)
                for (size_t l = 0; l < 4; ++l)
                    dot[l] += double(row.values[p + l]) * t.scale * (double(point[row.columns[p + l]]) * t.scale);
            for (; p < row.count; ++p) dot[0] += double(row.values[p]) * t.scale * (double(point[row.columns[p]]) * t.scale);
            double found = square + t.squares[c].high - 2 * ((dot[0] + dot[1]) + (dot[2] + dot[3]));
            // Too many digits were lost to cancellation.
            if (!(found > 0.01 * (square + t.squares[c].high))) found = sparse_squared_distance(row, t, c, work.zeros);
            out[i * t.k + c] = T(__builtin_sqrt(found) / t.scale);
        }
    }
}

template <class T, class I>
constexpr SparseKernels<T, I> sparse_kernels = {sparse_nearest<T, I>, sparse_move_rows<T, I>, sparse_residuals<T, I>,
                                                sparse_update_closest<T, I>, sparse_distances<T, I>};
template <class T>
constexpr SparseTable<T> sparse_table = {sparse_kernels<T, int32_t>, sparse_kernels<T, int64_t>, prepare_targets<T>, unit_rows<T>,
                                            update_centres<T>};
