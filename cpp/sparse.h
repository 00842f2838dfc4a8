// K-means on sparse rows: products run over the stored values and, in lanes, along the targets.

// sum += value, error included.
inline void add(Wide &sum, double value, double rest) {
    const double s = sum.high + value, t = s - sum.high;
    const double error = (sum.high - (s - t)) + (value - t);
    sum.exact &= error == 0 && rest == 0;
    const double e = error + (sum.low + rest);
    sum.high = s + e;
    sum.low = e - (sum.high - s);
}

inline void add_product(Wide &sum, double a, double b) {
    const double p = a * b;
    add(sum, p, __builtin_fma(a, b, -p));
}

// The targets column by column, and their squared lengths.
template <class T>
void prepare(const T *points, size_t k, size_t d, double scale, size_t stride, float *turned, Wide *squares) {
    constexpr size_t step = 8;
    for (size_t first = 0; first < d; first += step) {
        const size_t count = least(step, d - first);
        for (size_t c = 0; c < k; ++c)
            for (size_t j = 0; j < count; ++j)
                turned[(first + j) * stride + c] = float(double(points[c * d + first + j]) * scale);
        for (size_t c = k; c < stride; ++c)
            for (size_t j = 0; j < count; ++j) turned[(first + j) * stride + c] = 0;
    }
    for (size_t c = 0; c < k; ++c) {
        const T *point = points + c * d;
        double high[step] = {}, low[step] = {}, lost[step] = {};
        for (size_t first = 0; first < d; first += step) {
            double value[step] = {};
            for (size_t i = 0; i < least(step, d - first); ++i) value[i] = double(point[first + i]) * scale;
            for (size_t i = 0; i < step; ++i) {  // `add` in lanes
                const double p = value[i] * value[i], q = __builtin_fma(value[i], value[i], -p);
                const double s = high[i] + p, t = s - high[i];
                const double error = (high[i] - (s - t)) + (p - t);
                lost[i] += __builtin_fabs(error) + __builtin_fabs(q);
                const double e = error + (low[i] + q);
                high[i] = s + e;
                low[i] = e - (high[i] - s);
            }
        }
        Wide sum{0, 0, true};
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

// The length of a row; never infinite, unlike the square of a row that lies far beyond all targets.
template <class T, class I> double length_of(const SparseRow<T, I> &row, double scale, double square) {
    if (square < __builtin_inf()) return __builtin_sqrt(square);
    double largest = 0;
    for (size_t p = 0; p < row.count; ++p) largest = larger(largest, __builtin_fabs(double(row.values[p]) * scale));
    return largest * __builtin_sqrt(double(row.count));
}

// Scores y'c - |c|^2 / 2 with nv vectors of targets.
template <class T, class I, size_t nv>
inline void score_vectors(const SparseRow<T, I> &row, const SparseTargets<T> &t, size_t first, double *scores) {
    using V = Vec<double>;
    constexpr size_t L = lanes<double>, ahead = 6, line = 16;
    const float *turned = t.turned + first;
    V sum[nv] = {};
    for (size_t p = 0; p < row.count; ++p) {
        if (p + ahead < row.count) {
            const float *later = turned + size_t(row.columns[p + ahead]) * t.stride;
            FW_UNROLL(8)
            for (size_t i = 0; i * line < nv * L; ++i) __builtin_prefetch(later + i * line);
        }
        const float *column = turned + size_t(row.columns[p]) * t.stride;
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

// The largest of the scores, whose it is, and the second.
struct Lead {
    double best, second;
    size_t whose;
};

inline Lead lead(const double *scores, size_t stride) {
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
    Lead out{tops[0], nexts[0], 0};
    for (size_t i = 1; i < L; ++i) {
        const double low = tops[i] < out.best ? tops[i] : out.best;
        out.best = tops[i] > out.best ? tops[i] : out.best;
        out.second = low > out.second ? low : out.second;
        out.second = nexts[i] > out.second ? nexts[i] : out.second;
    }
    while (out.whose + 1 < stride && scores[out.whose] != out.best) ++out.whose;
    if (scores[out.whose] != out.best) out.whose = 0;  // not numbers: the products left float64
    return out;
}

// A bound on |computed - true| of the difference of two scores: the rounding of targets to float32 (none if they were), the
// chain of additions along the stored values, and values that `turned` holds as subnormal. Squared lengths are correctly
// rounded.
template <class T> inline double score_doubt(size_t count, double length, double longest) {
    const double rounding = (sizeof(T) == 8 ? 0x1p-24 : 0) + 0x1p-53 * double(count + 8);
    return rounding * (2 * length * longest + longest * longest) * 1.01 + 0x1p-140 * length * __builtin_sqrt(double(count));
}

// A row filled in, for the few that must be: d values of which all others are zero, before and after.
template <class T, class I> struct Filled {
    double *y;
    const SparseRow<T, I> &row;
    Filled(double *zeros, const SparseRow<T, I> &some, double scale) : y(zeros), row(some) {
        for (size_t p = 0; p < row.count; ++p) y[row.columns[p]] += double(row.values[p]) * scale;
    }
    ~Filled() {
        for (size_t p = 0; p < row.count; ++p) y[row.columns[p]] = 0;
    }
};

// The nearest target of one row, for certain; the lowest number among equals. Of targets that float64 cannot tell apart the
// scores are taken in pairs, which decides all but ties: these are compared by differences over all columns.
template <class T, class I>
int settle(const SparseRow<T, I> &row, const SparseTargets<T> &t, const double *scores, double best, double doubt,
           double length, Wide *sums, double *zeros) {
    const Wide nothing{-__builtin_inf(), 0, true};
    size_t candidates = 0, winner = t.k;
    Wide top = nothing;
    const auto above = [](const Wide &a, const Wide &b) { return a.high > b.high || (a.high == b.high && a.low > b.low); };
    for (size_t c = 0; c < t.k; ++c) {
        sums[c] = nothing;
        if (best - scores[c] > doubt || size_t(t.first[c]) != c) continue;
        Wide sum{-t.squares[c].high / 2, -t.squares[c].low / 2, t.squares[c].exact};
        const T *point = t.points + c * t.d;
        for (size_t p = 0; p < row.count; ++p)
            add_product(sum, double(row.values[p]) * t.scale, double(point[row.columns[p]]) * t.scale);
        sums[c] = sum;
        ++candidates;
        if (winner == t.k || above(sum, top)) {
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
        else if (c != winner && !(sums[c].exact && top.exact)) tied = true;  // else certainly equal: the first has won
    }
    if (!tied) return int(winner);
    const Filled<T, I> filled(zeros, row, t.scale);
    winner = t.k;
    Pair least_found{0, 0};
    for (size_t c = 0; c < t.k; ++c) {
        if (sums[c].high == -__builtin_inf()) continue;
        const Pair found = direct_pair(t.points + c * t.d, t.scale, filled.y, t.d);
        if (winner == t.k || found.high < least_found.high ||
            (found.high == least_found.high && found.low < least_found.low)) {
            winner = c;
            least_found = found;
        }
    }
    return int(winner);
}

// The squared distance of a row to target c: |c|^2 + sum over stored values of y (y - 2 c). Where these nearly cancel,
// differences are taken over all columns.
template <class T, class I>
double apart(const SparseRow<T, I> &row, const SparseTargets<T> &t, size_t c, double *zeros) {
    Wide sum = t.squares[c];
    const T *point = t.points + c * t.d;
    for (size_t p = 0; p < row.count; ++p) {
        const double y = double(row.values[p]) * t.scale;
        add_product(sum, y, y - 2 * (double(point[row.columns[p]]) * t.scale));
    }
    if (sum.high > 1e-3 * t.squares[c].high) return sum.high;
    const Filled<T, I> filled(zeros, row, t.scale);
    return direct(point, t.scale, filled.y, t.d);
}

// Memory for one call.
template <class T> struct SparseDesk {
    double *scores, *zeros;
    Wide *sums;
    explicit SparseDesk(const SparseTargets<T> &t) {
        scores = (double *)scratch((t.stride + round_up(t.d, 8)) * sizeof(double) + t.k * sizeof(Wide));
        zeros = scores + t.stride;
        sums = (Wide *)(zeros + round_up(t.d, 8));
        for (size_t j = 0; j < t.d; ++j) zeros[j] = 0;
    }
};

template <class T, class I>
Assigned sparse_nearest(const SparseRows<T, I> &x, const SparseTargets<T> &t, int *labels, T *near, T *next) {
    const SparseDesk<T> desk(t);
    Assigned result{0, x.n, 0};
    for (size_t i = 0; i < x.n; ++i) {
        const SparseRow<T, I> row(x, i);
        const double square = square_of(row, t.scale);
        score_all(row, t, desk.scores);
        const Lead found = lead(desk.scores, t.stride);
        int label = int(found.whose);
        const double length = length_of(row, t.scale, square), doubt = score_doubt<T>(row.count, length, t.longest);
        if (!(found.best - found.second > doubt)) {
            label = settle(row, t, desk.scores, found.best, doubt, length, desk.sums, desk.zeros);
            ++result.settled;
        }
        result.moved += labels[i] != label;
        labels[i] = label;
        if (near) near[i] = T(apart(row, t, size_t(label), desk.zeros));
        if (next) {  // the first of the rest with that score, which may be the best one's equal
            size_t other = 0;
            while (other + 1 < t.k && (int(other) == label || desk.scores[other] < found.second)) ++other;
            next[i] = T(t.k > 1 ? apart(row, t, other, desk.zeros) : __builtin_inf());
        }
    }
    return result;
}

// For rows whose label changed: as `transfer`, with the same cut of values, but only stored columns are touched.
template <class T, class I>
void sparse_transfer(const SparseRows<T, I> &x, const double *w, double scale, size_t d, double weight_scale,
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
        cut(row.values, row.count, scale, pivot, factor, grid, part_high, part_low);
        const double whole = (factor + grid.coarse) - grid.coarse;
        const double rest = ((factor - whole) + grid.fine) - grid.fine;
        const size_t come = size_t(slots[to]);
        for (size_t p = 0; p < row.count; ++p) {
            high[come * d + size_t(row.columns[p])] += part_high[p];
            low[come * d + size_t(row.columns[p])] += part_low[p];
        }
        weight[come] += whole;
        weight[m + come] += rest;
        if (from < 0) continue;
        const size_t go = size_t(slots[from]);
        for (size_t p = 0; p < row.count; ++p) {
            high[go * d + size_t(row.columns[p])] -= part_high[p];
            low[go * d + size_t(row.columns[p])] -= part_low[p];
        }
        weight[go] -= whole;
        weight[m + go] -= rest;
    }
}

template <class T, class I>
void sparse_residuals(const SparseRows<T, I> &x, const double *w, const SparseTargets<T> &t, const int *labels,
                      double *total, double *each) {
    const SparseDesk<T> desk(t);
    for (size_t i = 0; i < x.n; ++i) {
        const size_t c = size_t(labels[i]);
        const double found = apart(SparseRow<T, I>(x, i), t, c, desk.zeros);
        if (each) each[i] = found;
        total[c] += w ? w[i] * found : found;
    }
}

// As `closer`.
template <class T, class I>
double sparse_closer(const SparseRows<T, I> &x, const double *w, const SparseTargets<T> &t, size_t taken, T *closest,
                     double *potential) {
    const SparseDesk<T> desk(t);
    double total = 0;
    for (size_t c = taken; c < t.k; ++c) potential[c - taken] = 0;
    for (size_t i = 0; i < x.n; ++i) {
        const SparseRow<T, I> row(x, i);
        const double square = square_of(row, t.scale), weight = w ? w[i] : 1;
        const double limit = 64 * score_doubt<T>(row.count, __builtin_sqrt(square), t.longest);
        double near = double(closest[i]);
        score_all(row, t, desk.scores);
        for (size_t c = 0; c < t.k; ++c) {
            double found = square - 2 * desk.scores[c];
            if (near > 0 && found < limit) found = apart(row, t, c, desk.zeros);
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
    const SparseDesk<T> desk(t);
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
            // Too few digits are left of what nearly cancels.
            if (!(found > 0.01 * (square + t.squares[c].high))) found = apart(row, t, c, desk.zeros);
            out[i * t.k + c] = T(__builtin_sqrt(found) / t.scale);
        }
    }
}

template <class T, class I>
constexpr SparseKernels<T, I> sparse_kernels = {sparse_nearest<T, I>, sparse_transfer<T, I>, sparse_residuals<T, I>,
                                                sparse_closer<T, I>, sparse_distances<T, I>};
template <class T>
constexpr SparseTable<T> sparse_table = {sparse_kernels<T, int32_t>, sparse_kernels<T, int64_t>, prepare<T>, unit_rows<T>,
                                            finish<T>};
