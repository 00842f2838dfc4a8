// EM for rows with missing cells, which are integrated out. With U U' the inverse covariance and z = y - mean, a row's
// whitened values are U'z. The missing part of z that makes them shortest is the conditional mean; what is left is the
// length in the marginal density, and P = U U', restricted to the missing cells m, has the conditional covariance as its
// inverse: log |S_oo| = log |S| + log |P_mm|. So a row with few missing cells costs little more than a complete one. A row with
// few observed cells o is worked out from S_oo instead.
//
// Factorisations are of matrices with ones on the diagonal, so that units do not matter. Rows come sorted by which cells are
// missing, and each factorisation serves all neighbours that are alike.

constexpr double half_log_2pi = 0.91893853320467274178;
constexpr double least_pivot = 0x1p-52;  // what rounding may leave of 1

inline double dot(const double *a, const double *b, size_t n) {
    Doubles sum = {};
    for (size_t i = 0; i < n; i += lanes<double>) sum += load<Doubles>(a + i) * load<Doubles>(b + i);
    return sum_of(sum);
}

// a += factor * b. Arrays are padded to whole vectors.
inline void add_times(double *a, double factor, const double *b, size_t n) {
    for (size_t i = 0; i < n; i += lanes<double>) store(a + i, load<Doubles>(a + i) + load<Doubles>(b + i) * factor);
}

inline void clear(double *a, size_t n) {
    for (size_t i = 0; i < n; i += lanes<double>) store(a + i, Doubles{});
}

// For lengths that are mostly short: adding up the lanes of a vector takes longer than a few products.
inline double short_dot(const double *a, const double *b, size_t n) {
    if (n > 6) return dot(a, b, n);
    double sum = 0;
    for (size_t i = 0; i < n; ++i) sum += a[i] * b[i];
    return sum;
}

// The upper Cholesky factor V, with V'V part of a matrix, line by line; its diagonal is kept as `inverse`, with zeros in its
// place. Lines are taken away from those below as vectors: products added up entry by entry would wait for their stores.
struct Factor {
    double *lines, *inverse, *squares;  // n x stride; n; 1 / pivot, padded with ones
    size_t stride, n;

    static size_t vector_of(size_t i) { return i / lanes<double> * lanes<double>; }

    void of(const double *matrix, size_t columns, const int *which, size_t count) {
        n = count;
        for (size_t i = 0; i < n; ++i) {
            double *line = lines + i * stride;
            const double *from = matrix + size_t(which[i]) * columns;
            clear(line, n);
            for (size_t g = i; g < n; ++g) line[g] = from[which[g]];
        }
        for (size_t i = 0; i < n; ++i) {
            double *line = lines + i * stride;
            const double pivot = line[i] > least_pivot ? line[i] : least_pivot;
            squares[i] = 1 / pivot;
            inverse[i] = square_root(squares[i]);
            const size_t from = vector_of(i);
            for (size_t g = from; g < n; g += lanes<double>) store(line + g, load<Doubles>(line + g) * inverse[i]);
            for (size_t g = from; g <= i; ++g) line[g] = 0;
            for (size_t r = i + 1; r < n; ++r)
                add_times(lines + r * stride + vector_of(r), -line[r], line + vector_of(r), n - vector_of(r));
        }
        for (size_t i = n; i % lanes<double>; ++i) squares[i] = 1;
    }

    // The logarithm of 1 / determinant. No pivot of a matrix with a unit diagonal is above 1.
    double log_inverse() const {
        Doubles sum = {};
        for (size_t i = 0; i < n; i += lanes<double>) sum += log_of(load<Doubles>(squares + i));
        return sum_of(sum);
    }

    // In place, by V' and by V; the vectors are padded with zeros.
    void forward(double *v) const {
        for (size_t i = 0; i < n; ++i) {
            v[i] *= inverse[i];
            const size_t from = vector_of(i);
            add_times(v + from, -v[i], lines + i * stride + from, n - from);
        }
    }
    void backward(double *v) const {
        for (size_t i = n; i-- > 0;) {
            const size_t from = n - i > 6 ? vector_of(i) : i + 1;
            v[i] = (v[i] - short_dot(lines + i * stride + from, v + from, n - from)) * inverse[i];
        }
    }
    // `width` right-hand sides at once, as lines.
    void forward(double *v, size_t width) const {
        for (size_t i = 0; i < n; ++i) {
            double *line = v + i * stride;
            for (size_t f = 0; f < width; f += lanes<double>) store(line + f, load<Doubles>(line + f) * inverse[i]);
            for (size_t r = i + 1; r < n; ++r) add_times(v + r * stride, -lines[i * stride + r], line, width);
        }
    }
};

// A chunk of rows with missing cells.
struct GapChunk {
    static constexpr size_t R = em_chunk_rows, N = panel_rows<double>, D = lanes<double>;
    ChunkWorkspace<double> chunk;
    const Components<double> &c;
    const Gaps &g;
    int *first, *column, *run, *observed, *source, *everything;
    double *moved, *white, *vector, *rest, *lines, *cross, *covariance, *extra, *expected, *spread;
    Factor factor;
    size_t cells = 0;

    size_t of_component(size_t j) const { return j * R * c.d; }
    bool matrices() const { return g.factors != nullptr; }

    GapChunk(Arena &arena, const Components<double> &components, const Gaps &gaps, bool adds, bool completes)
        : chunk(arena, components, adds), c(components), g(gaps) {
        const size_t size = matrices() ? g.columns * g.columns : 0;
        first = arena.take<int>(R + 1);
        run = arena.take<int>(R);
        source = arena.take<int>(R);
        column = arena.take<int>(R * c.d + 1);
        observed = arena.take<int>(c.d);
        everything = arena.take<int>(c.d);
        moved = arena.take<double>(c.k * R * c.d);
        white = arena.take<double>(N * c.d);
        vector = arena.take<double>(g.columns);
        rest = arena.take<double>(g.columns);
        lines = arena.take<double>(size);
        cross = arena.take<double>(size);
        covariance = arena.take<double>(size);
        factor = {lines, arena.take<double>(g.columns), arena.take<double>(g.columns), g.columns, 0};
        expected = arena.take<double>(completes ? R * c.d : 0);
        spread = arena.take<double>(completes ? R * c.d : 0);
        const size_t sums = adds && chunk.matrix() ? c.d * c.d * (c.squares == Squares::tied ? 1 : c.k) : 0;
        extra = arena.take<double>(sums);
        if (!arena.base) return;
        for (size_t i = 0; i < sums; ++i) extra[i] = 0;
        for (size_t f = 0; f < c.d; ++f) everything[f] = int(f);
    }

    size_t gaps_of(size_t i) const { return size_t(first[i + 1] - first[i]); }

    bool same_gaps(size_t a, size_t b) const {
        if (gaps_of(a) != gaps_of(b)) return false;
        const int *left = column + first[a], *right = column + first[b];
        for (size_t i = 0; i < gaps_of(a); ++i)
            if (left[i] != right[i]) return false;
        return true;
    }

    template <class In> void add_row(const In *x, double w, int number) {
        const size_t i = chunk.count;
        if (i == 0) first[0] = 0, cells = 0;
        double *to = chunk.y + i * c.columns;
        for (size_t f = 0; f < c.d; ++f) {
            const double value = double(x[f]);
            const bool missing = value != value;
            to[f] = missing ? 0 : value - c.pivot[f];
            column[cells] = int(f);  // kept if it is missing: no branch that would be guessed wrong
            cells += missing;
        }
        for (size_t f = c.d; f < c.columns; ++f) to[f] = 0;
        chunk.weight[i] = w;
        source[i] = number;
        first[i + 1] = int(cells);
        run[i] = i == 0 ? 0 : run[i - 1] + !same_gaps(i - 1, i);
        ++chunk.count;
    }

    // ------------------------------------------------------------ one pattern of missing cells, one component

    // Whether there are so few missing cells that their block of the precision is factorised.
    bool few(size_t m) const { return 2 * m <= c.d; }

    size_t list_observed(const int *missing, size_t m) {
        size_t o = 0, at = 0;
        for (size_t f = 0; f < c.d; ++f) {
            if (at < m && size_t(missing[at]) == f) ++at;
            else observed[o++] = int(f);
        }
        return o;
    }

    // Factorises, and gives what the log density gains beside that of a complete row.
    double prepare(size_t j, const int *missing, size_t m) {
        double gain = half_log_2pi * double(m);
        if (!matrices() || few(m)) {
            for (size_t a = 0; a < m; ++a) gain -= g.log_lengths[j * g.line + size_t(missing[a])];
            if (!matrices()) return gain;
            factor.of(g.precisions + j * g.step, g.columns, missing, m);
        } else {
            const size_t o = list_observed(missing, m);
            gain -= g.log_determinants[j];
            for (size_t a = 0; a < o; ++a) gain -= g.log_deviations[j * g.line + size_t(observed[a])];
            factor.of(g.correlations + j * g.step, g.columns, observed, o);
        }
        return gain + factor.log_inverse() / 2;
    }

    // The squared length of the row in its marginal density; `to` receives how far each missing cell is expected from the mean.
    double solve(size_t j, size_t i, const int *missing, size_t m, double *to) {
        const size_t width = g.columns;
        if (few(m)) {
            const double *u = g.factors + j * g.step, *unit = g.inverse_lengths + j * g.line;
            clear(vector, width);
            for (size_t f = 0; f < c.d; ++f) vector[f] = white[f * N + i % N];
            clear(rest, m);
            for (size_t a = 0; a < m; ++a) rest[a] = -dot(u + size_t(missing[a]) * width, vector, width);
            factor.forward(rest);
            factor.backward(rest);
            for (size_t a = 0; a < m; ++a) {
                add_times(vector, rest[a], u + size_t(missing[a]) * width, width);
                to[a] = rest[a] * unit[missing[a]];
            }
            return dot(vector, vector, width);
        }
        const double *size = g.deviations + j * g.line, *mean = c.means + j * c.columns, *y = chunk.y + i * c.columns;
        const size_t o = factor.n;
        clear(rest, o);
        for (size_t a = 0; a < o; ++a) rest[a] = (y[observed[a]] - mean[observed[a]]) / size[observed[a]];
        factor.forward(rest);
        const double square = dot(rest, rest, o);
        factor.backward(rest);
        for (size_t a = 0; a < m; ++a) {
            const double *line = g.correlations + j * g.step + size_t(missing[a]) * width;
            double sum = 0;
            for (size_t b = 0; b < o; ++b) sum += line[observed[b]] * rest[b];
            to[a] = sum * size[missing[a]];
        }
        return square;
    }

    // The conditional covariance of the missing cells, in units of `unit`: m lines of `covariance`.
    const double *find_covariance(size_t j, const int *missing, size_t m) {
        const size_t width = g.columns;
        if (few(m)) {
            for (size_t a = 0; a < m; ++a) {
                clear(cross + a * width, m);
                clear(covariance + a * width, m);
                cross[a * width + a] = 1;
            }
            factor.forward(cross, m);
            for (size_t i = 0; i < m; ++i)
                for (size_t a = 0; a <= i; ++a) add_times(covariance + a * width, cross[i * width + a], cross + i * width, m);
            return g.inverse_lengths + j * g.line;
        }
        const double *matrix = g.correlations + j * g.step;
        const size_t o = factor.n;
        for (size_t b = 0; b < o; ++b) {
            clear(cross + b * width, m);
            for (size_t a = 0; a < m; ++a) cross[b * width + a] = matrix[size_t(observed[b]) * width + size_t(missing[a])];
        }
        factor.forward(cross, m);
        for (size_t a = 0; a < m; ++a) {
            double *line = covariance + a * width;
            clear(line, m);
            for (size_t b = 0; b < m; ++b) line[b] = matrix[size_t(missing[a]) * width + size_t(missing[b])];
            for (size_t b = 0; b < o; ++b) add_times(line, -cross[b * width + a], cross + b * width, m);
            line[a] = line[a] > 0 ? line[a] : 0;
        }
        return g.deviations + j * g.line;
    }

    // ------------------------------------------------------------ densities

    // Missing cells of the rows in panels are set to a component's mean, so that they add nothing.
    void fill_panels(size_t j) {
        const double *mean = c.means + j * c.columns;
        for (size_t i = 0; i < chunk.count; ++i) {
            double *to = chunk.transposed + i / N * N * c.d + i % N;
            for (int a = first[i]; a < first[i + 1]; ++a) to[size_t(column[a]) * N] = mean[column[a]];
        }
    }

    void whiten_rows(size_t j, size_t p) {
        const double *u = c.factors + (g.step ? j : 0) * (c.d * (c.d + 1) / 2), *y = chunk.transposed + p * N * c.d;
        size_t before = 0;
        for (size_t b = 0; b < c.blocks; ++b) {
            const size_t width = c.widths[b];
            whiten_width<double, true>(width, u, before, y, c.means + j * c.columns, chunk.z, nullptr, [&](auto &sum) {
                double *to = white + before * N;
                for (auto &each : sum) {
                    FW_UNROLL(4)
                    for (size_t v = 0; v < panel_vectors; ++v) store(to + v * D, each[v]);
                    to += N;
                }
            });
            u += triangle(before, width);
            before += width;
        }
    }

    void square_columns(size_t j, size_t p) {
        const double *y = chunk.transposed + p * N * c.d, *mean = c.means + j * c.columns, *size = g.lengths + j * g.line;
        Doubles sum[panel_vectors] = {};
        for (size_t f = 0; f < c.d; ++f) {
            FW_UNROLL(4)
            for (size_t v = 0; v < panel_vectors; ++v) {
                const Doubles apart = (load<Doubles>(y + f * N + v * D) - mean[f]) * size[f];
                sum[v] += apart * apart;
            }
        }
        for (size_t v = 0; v < panel_vectors; ++v) store(chunk.lengths + j * R + p * N + v * D, sum[v]);
    }

    // Lengths such that log weight - length / 2 is the log of weight times marginal density.
    void compute_lengths() {
        chunk.transpose_rows();
        for (size_t j = 0; j < c.k; ++j) {
            fill_panels(j);
            int known = -1;
            double gain = 0;
            for (size_t i = 0; i < chunk.count; ++i) {
                if (i % N == 0) {
                    if (matrices()) whiten_rows(j, i / N);
                    else square_columns(j, i / N);
                }
                const int *missing = column + first[i];
                const size_t m = gaps_of(i);
                if (run[i] != known) gain = prepare(j, missing, m);
                known = run[i];
                double *length = chunk.lengths + j * R + i, *to = moved + of_component(j) + first[i];
                if (matrices()) *length = solve(j, i, missing, m, to);
                else for (size_t a = 0; a < m; ++a) to[a] = 0;
                *length -= 2 * gain;
            }
            // Lanes beyond the last row have the weight 0, but must be finite all the same.
            for (size_t i = chunk.count; i < round_up(chunk.count, N); ++i) chunk.lengths[j * R + i] = 0;
        }
    }

    // ------------------------------------------------------------ sums

    // Calls act(missing, m, rows from, to) for every run in which a component has a share above `limit`.
    template <class Act> void each_run(const double *shares, double limit, Act act) {
        for (size_t i = 0, end; i < chunk.count; i = end) {
            double share = 0;
            for (end = i; end < chunk.count && run[end] == run[i]; ++end) share += shares[end];
            if (share > limit) act(column + first[i], gaps_of(i), i, end, share);
        }
    }

    double limit_of(const double *shares) const {
        double most = 0;
        for (size_t i = 0; i < chunk.count; ++i) most = most < shares[i] ? shares[i] : most;
        return most * 1e-30;
    }

    void accumulate() {
        for (size_t j = 0; j < c.k; ++j) {
            const double *mean = c.means + j * c.columns, *shares = chunk.logs + j * R;
            for (size_t i = 0; i < chunk.count; ++i) {
                double *to = chunk.y + i * c.columns;
                for (int a = first[i]; a < first[i + 1]; ++a)
                    to[column[a]] = mean[column[a]] + moved[of_component(j) + size_t(a)];
            }
            const double limit = limit_of(shares);
            const RowShares<double> some = chunk.rows_with_share(j);
            double *sum = chunk.sums + j * chunk.sums_step();
            const bool pooled = c.squares == Squares::tied;
            if (chunk.matrix())
                add_weighted_products(chunk.y, c.columns, mean, some, chunk.panels, chunk.packed, sum,
                                      chunk.out + (pooled ? 0 : j * Blocks<double>::total(chunk.panels.count)));
            else
                add_weighted_columns<double, true>(chunk.y, c.d, c.columns, mean, some, sum, chunk.out + j * c.columns);
            if (!chunk.matrix()) {
                const double *unit = g.inverse_lengths + j * g.line;
                for (size_t i = 0; i < chunk.count; ++i)
                    for (int a = first[i]; a < first[i + 1]; ++a) {
                        const double deviation = unit[column[a]];
                        chunk.out[j * c.columns + size_t(column[a])] += shares[i] * deviation * deviation;
                    }
                continue;
            }
            double *to = extra + (pooled ? 0 : j * c.d * c.d);
            each_run(shares, limit, [&](const int *missing, size_t m, size_t, size_t, double share) {
                prepare(j, missing, m);
                const double *unit = find_covariance(j, missing, m);
                for (size_t a = 0; a < m; ++a) {
                    double *line = to + size_t(missing[a]) * c.d;
                    const double scaled = share * unit[missing[a]];
                    for (size_t b = a; b < m; ++b)
                        line[missing[b]] += covariance[a * g.columns + b] * unit[missing[b]] * scaled;
                }
            });
        }
    }

    void accumulate_chunk() {
        if (chunk.count == 0) return;
        compute_lengths();
        chunk.compute_responsibilities<true>();
        accumulate();
        chunk.count = 0;
    }

    void add_sums_to(double *counts, double *shift, double *scatter) const {
        chunk.add_sums_to(counts, shift, scatter);
        if (!chunk.matrix()) return;
        for (size_t j = 0; j < (c.squares == Squares::tied ? 1 : c.k); ++j)
            for (size_t a = 0; a < c.d; ++a)
                for (size_t b = a; b < c.d; ++b) {
                    const double value = extra[(j * c.d + a) * c.d + b];
                    scatter[(j * c.d + a) * c.d + b] += value;
                    if (a != b) scatter[(j * c.d + b) * c.d + a] += value;
                }
    }

    // ------------------------------------------------------------ completed rows

    // Once log responsibilities are known: expected values of missing cells, and their variances over all components.
    void complete(const Completed &out) {
        for (size_t a = 0; a < cells; ++a) expected[a] = spread[a] = 0;
        for (size_t j = 0; j < c.k; ++j) {
            double *shares = chunk.logs + j * R;
            for (size_t i = 0; i < round_up(chunk.count, D); i += D) store(shares + i, exp_of(load<Doubles>(shares + i)));
            if (out.noise)
                for (size_t i = 0; i < chunk.count; ++i) shares[i] = size_t(out.chosen[source[i]]) == j ? 1 : 0;
            const double *mean = c.means + j * c.columns, *gap = moved + of_component(j);
            for (size_t i = 0; i < chunk.count; ++i)
                for (int a = first[i]; a < first[i + 1]; ++a) expected[a] += shares[i] * (mean[column[a]] + gap[a]);
        }
        for (size_t j = 0; j < c.k; ++j) {
            const double *shares = chunk.logs + j * R, *mean = c.means + j * c.columns, *gap = moved + of_component(j);
            for (size_t i = 0; i < chunk.count; ++i)
                for (int a = first[i]; a < first[i + 1]; ++a) {
                    const double apart = mean[column[a]] + gap[a] - expected[a];
                    spread[a] += shares[i] * apart * apart;
                }
            each_run(shares, 1e-30, [&](const int *missing, size_t m, size_t from, size_t to, double) {
                const double *unit = g.inverse_lengths + j * g.line;
                if (matrices()) {
                    prepare(j, missing, m);
                    unit = find_covariance(j, missing, m);
                }
                for (size_t a = 0; a < m; ++a) {
                    const double by = unit[missing[a]], variance = (matrices() ? covariance[a * g.columns + a] : 1) * by * by;
                    for (size_t i = from; i < to; ++i) spread[size_t(first[i]) + a] += shares[i] * variance;
                }
                if (out.noise) draw(missing, m, from, to, unit, shares, out.noise);
            });
        }
        for (size_t i = 0; i < chunk.count; ++i)
            for (int a = first[i]; a < first[i + 1]; ++a) {
                const size_t to = size_t(source[i]) * c.d + size_t(column[a]);
                out.values[to] = expected[a] + c.pivot[column[a]];
                if (out.deviations) out.deviations[to] = square_root(spread[a]);
            }
    }

    // Adds to what is expected a draw of how far the cells are from it.
    void draw(const int *missing, size_t m, size_t from, size_t to, const double *unit, const double *shares,
              const double *noise) {
        if (matrices() && !few(m)) factor.of(covariance, g.columns, everything, m);
        for (size_t i = from; i < to; ++i) {
            if (shares[i] == 0) continue;
            clear(rest, matrices() ? m : 0);
            for (size_t a = 0; a < m; ++a) rest[a] = noise[size_t(source[i]) * c.d + size_t(missing[a])];
            if (matrices() && few(m)) factor.backward(rest);
            for (size_t a = 0; a < m; ++a) {
                double value = rest[a];
                if (matrices() && !few(m)) {
                    value /= factor.inverse[a];
                    for (size_t b = 0; b < a; ++b) value += factor.lines[b * g.columns + a] * rest[b];
                }
                expected[size_t(first[i]) + a] += value * unit[missing[a]];
            }
        }
    }
};

template <class In>
double step_gaps(const In *x, const double *w, const int *which, size_t n, const Components<double> &c, const Gaps &gaps,
                 double *counts, double *shift, double *scatter) {
    Arena arena{nullptr, 0};
    (void)GapChunk(arena, c, gaps, true, false);
    arena = {(char *)scratch(arena.used), 0};
    GapChunk rows(arena, c, gaps, true, false);
    for (size_t i = 0; i < n; ++i) {
        const double weight = w ? w[which[i]] : 1.0;
        if (!(weight > 0)) continue;
        rows.add_row(x + size_t(which[i]) * c.d, weight, which[i]);
        if (rows.chunk.count == em_chunk_rows) rows.accumulate_chunk();
    }
    rows.accumulate_chunk();
    rows.add_sums_to(counts, shift, scatter);
    return sum_of(rows.chunk.likelihood);
}

template <class In>
void logs_gaps(const In *x, const int *which, size_t n, const Components<double> &c, const Gaps &gaps, double *total,
               double *each, Completed completed) {
    Arena arena{nullptr, 0};
    (void)GapChunk(arena, c, gaps, false, completed.values);
    arena = {(char *)scratch(arena.used), 0};
    GapChunk rows(arena, c, gaps, false, completed.values);
    for (size_t from = 0; from < n; from += em_chunk_rows) {
        const size_t here = least(em_chunk_rows, n - from);
        for (size_t i = from; i < from + here; ++i) rows.add_row(x + size_t(which[i]) * c.d, 1.0, which[i]);
        rows.compute_lengths();
        rows.chunk.template compute_responsibilities<false>();
        for (size_t i = 0; i < here; ++i) {
            const size_t row = size_t(rows.source[i]);
            if (total) total[row] = rows.chunk.total[i];
            for (size_t j = 0; each && j < c.k; ++j) each[row * c.k + j] = rows.chunk.logs[j * em_chunk_rows + i];
        }
        if (completed.values) rows.complete(completed);
        rows.chunk.count = 0;
    }
}
