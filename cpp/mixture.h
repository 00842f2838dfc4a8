// One EM step over a block of rows, and the log densities of rows. Rows are processed in chunks: squared distances to
// all components (density.h), then responsibilities, then weighted sums (responsibility_sums.h).

constexpr size_t em_chunk_rows = 192;  // a multiple of the panel size for float32 and float64 with every instruction set

// The current chunk of rows with everything computed for it, and the sums over all chunks so far.
template <class T> struct ChunkWorkspace {
    static constexpr size_t R = em_chunk_rows, N = panel_rows<T>, L = lanes<T>, D = lanes<double>;
    static_assert(R % N == 0 && R % D == 0);
    const Components<T> &c;
    const Panels<T> panels;
    T *y, *transposed, *z, *lengths, *packed, *share, *nearest;
    double *logs, *total, *weight, *counts, *sums, *out;
    int *row_numbers;
    size_t count = 0;
    Doubles likelihood = {};

    bool matrix() const { return c.squares == Squares::full || c.squares == Squares::tied; }
    size_t out_size() const {
        if (matrix()) return Blocks<T>::total(panels.count) * (c.squares == Squares::tied ? 1 : c.k);
        return c.squares == Squares::diag ? c.k * c.columns : 0;
    }
    size_t sums_step() const { return matrix() ? round_up(panels.padded(), 8) : c.columns; }

    // `adds`: whether sums will be accumulated.
    ChunkWorkspace(Arena &arena, const Components<T> &components, bool adds) : c(components), panels(c.d) {
        const size_t block = Panels<T>::full * Panels<T>::full;
        y = arena.take<T>(R * c.columns);
        transposed = arena.take<T>(R * c.d);
        z = arena.take<T>(N * c.d);
        lengths = arena.take<T>(R * c.k);
        logs = arena.take<double>(R * c.k);
        nearest = arena.take<T>(R);
        total = arena.take<double>(R);
        weight = arena.take<double>(R);
        if (!adds) return;
        row_numbers = arena.take<int>(R);
        share = arena.take<T>(R);
        packed = arena.take<T>(matrix() ? rows_per_sum * panels.padded() : 0);
        counts = arena.take<double>(c.k * D);
        sums = arena.take<double>(c.k * sums_step());
        out = arena.take<double>(out_size());
        if (!arena.base) return;
        for (size_t i = 0; i < c.k * D; ++i) counts[i] = 0;
        for (size_t i = 0; i < c.k * sums_step(); ++i) sums[i] = 0;
        for (size_t i = 0; i < out_size(); ++i) out[i] = 0;
    }

    // Appends a row to the chunk. The values of a row with weight 0 must not matter.
    template <class In> void add_row(const In *x, double w) {
        T *to = y + count * c.columns;
        for (size_t f = 0; f < c.d; ++f) to[f] = w > 0 ? T(T(x[f]) - T(c.pivot[f])) : T(0);
        for (size_t f = c.d; f < c.columns; ++f) to[f] = 0;
        weight[count++] = w;
    }

    // Transposes the rows into panels; `y` is padded with zero rows to whole panels.
    void transpose_rows() {
        using V = Vec<T>;
        const size_t rows = round_up(count, N);
        for (size_t i = count; i < rows; ++i)
            for (size_t f = 0; f < c.columns; ++f) y[i * c.columns + f] = 0;
        for (size_t i = count; i < R; ++i) weight[i] = 0;
        for (size_t first = 0; first < rows; first += L) {
            T *to = transposed + first / N * N * c.d + first % N;
            for (size_t f = 0; f < c.d; f += L) {
                V v[L];
                FW_UNROLL(16)
                for (size_t i = 0; i < L; ++i) v[i] = load<V>(y + (first + i) * c.columns + f);
                transpose<T>(v);
                const size_t width = least(L, c.d - f);
                if (width == L) {
                    FW_UNROLL(16)
                    for (size_t i = 0; i < L; ++i) store(to + (f + i) * N, v[i]);
                } else {
                    FW_UNROLL(16)
                    for (size_t i = 0; i < L; ++i)
                        if (i < width) store(to + (f + i) * N, v[i]);
                }
            }
        }
    }

    void compute_squares() {
        transpose_rows();
        mahalanobis_squares(c, transposed, (count + N - 1) / N, z, lengths, R);
    }

    // The smallest squared distance of each row.
    void find_nearest() {
        using V = Vec<T>;
        for (size_t i = 0; i < round_up(count, L); i += L) {
            V best = load<V>(lengths + i);
            for (size_t j = 1; j < c.k; ++j) best = smaller(best, load<V>(lengths + j * R + i));
            store(nearest + i, best);
        }
    }

    // Whether the row is too far from every component for its density to be computed in T.
    bool far(size_t row) const { return !(nearest[row] < T(c.far)); }

    // Writes log densities to `total`. `logs` receives the log responsibilities or, if `adds`, the responsibilities
    // times the weights, which are also added to `counts`.
    template <bool adds> void compute_responsibilities() {
        const Doubles most = broadcast(1e300);
        for (size_t i = 0; i < round_up(count, D); i += D) {
            Doubles best = broadcast(-__builtin_inf()), sum = {};
            for (size_t j = 0; j < c.k; ++j) {
                Doubles length = load_as<double>(lengths + j * R + i);
                // This also replaces NaN: rows that far away belong equally to all components.
                length = length < most ? length : most;
                const Doubles log = c.log_weights[j] - length * 0.5;
                store(logs + j * R + i, log);
                best = larger(best, log);
            }
            for (size_t j = 0; j < c.k; ++j) {
                const Doubles below = load<Doubles>(logs + j * R + i) - best, part = exp_of(below);
                store(logs + j * R + i, adds ? part : below);
                sum += part;
            }
            const Doubles rest = log_of(sum), all = best + rest;
            store(total + i, all);
            if constexpr (adds) {
                const Doubles w = load<Doubles>(weight + i), factor = w / sum;
                likelihood += w * all;
                for (size_t j = 0; j < c.k; ++j) {
                    const Doubles part = load<Doubles>(logs + j * R + i) * factor;
                    store(logs + j * R + i, part);
                    store(counts + j * D, load<Doubles>(counts + j * D) + part);
                }
            } else {
                for (size_t j = 0; j < c.k; ++j) store(logs + j * R + i, load<Doubles>(logs + j * R + i) - rest);
            }
        }
    }

    // The rows whose responsibility is large enough to affect the sums of component j: at least 1e-30 of the largest.
    RowShares<T> rows_with_share(size_t j) const {
        const double *from = logs + j * R;
        Doubles most = {};
        for (size_t i = 0; i < round_up(count, D); i += D) most = larger(most, load<Doubles>(from + i));
        double limit = 0;
        for (size_t l = 0; l < D; ++l) limit = larger(limit, most[l] * 1e-30);
        size_t found = 0;
        for (size_t i = 0; i < count; ++i) {
            row_numbers[found] = int(i);
            share[found] = T(from[i]);
            found += from[i] > limit;
        }
        if (matrix())
            for (size_t i = 0; i < found; ++i) share[i] = square_root(share[i]);
        return {found, row_numbers, share};
    }

    void accumulate() {
        for (size_t j = 0; j < c.k; ++j) {
            const RowShares<T> some = rows_with_share(j);
            const T *mean = c.means + j * c.columns;
            double *sum = sums + j * sums_step();
            if (matrix())
                add_weighted_products(y, c.columns, mean, some, panels, packed, sum,
                                      out + (c.squares == Squares::tied ? 0 : j * Blocks<T>::total(panels.count)));
            else if (c.squares == Squares::diag)
                add_weighted_columns<T, true>(y, c.d, c.columns, mean, some, sum, out + j * c.columns);
            else
                add_weighted_columns<T, false>(y, c.d, c.columns, mean, some, sum, out);
        }
    }

    // Completes a chunk whose squared distances are known, and starts the next.
    void accumulate_chunk() {
        compute_responsibilities<true>();
        accumulate();
        count = 0;
    }

    size_t column_of(size_t f) const { return !matrix() || f < panels.used ? f : f + panels.first - panels.used; }

    // Adds the accumulated sums, taken about the unrounded means, to the results.
    void add_sums_to(double *all_counts, double *shift, double *scatter) const {
        constexpr size_t full = Panels<T>::full;
        for (size_t j = 0; j < c.k; ++j) {
            double n = 0;
            for (size_t l = 0; l < D; ++l) n += counts[j * D + l];
            all_counts[j] += n;
            const double *sum = sums + j * sums_step(), *moved = c.rounded + j * c.d;
            for (size_t f = 0; f < c.d; ++f) shift[j * c.d + f] += sum[column_of(f)] + n * moved[f];
            if (c.squares == Squares::diag)
                for (size_t f = 0; f < c.d; ++f)
                    scatter[j * c.d + f] += out[j * c.columns + f] + moved[f] * (2 * sum[f] + n * moved[f]);
            if (!matrix()) continue;
            const bool pooled = c.squares == Squares::tied;
            double *to = scatter + (pooled ? 0 : j * c.d * c.d);
            for (size_t q = 0; q < panels.count; ++q)
                for (size_t p = 0; p <= q; ++p) {
                    const double *block = out + (pooled ? 0 : j * Blocks<T>::total(panels.count));
                    block += (q * (q + 1) / 2 + p) * full * full;
                    for (size_t a = 0; a < panels.columns(p); ++a)
                        for (size_t b = p == q ? a : 0; b < panels.columns(q); ++b) {
                            const size_t f = panels.column(p) + a, g = panels.column(q) + b;
                            double value = pooled && j ? 0 : block[a * full + b];
                            value += moved[f] * sum[column_of(g)] + moved[g] * (sum[column_of(f)] + n * moved[f]);
                            to[f * c.d + g] += value;
                            if (f != g) to[g * c.d + f] += value;
                        }
                }
        }
    }
};

inline double sum_of(Doubles v) {
    double sum = 0;
    for (size_t l = 0; l < lanes<double>; ++l) sum += v[l];
    return sum;
}

// Processes all rows in T. Rows too far away for T are passed to `far_rows`, which sets their weight here to 0.
template <class T, class In, class Far>
double step_over(ChunkWorkspace<T> &chunk, const In *x, const double *w, size_t n, Far &far_rows) {
    const size_t d = chunk.c.d;
    for (size_t from = 0; from < n; from += em_chunk_rows) {
        const size_t here = least(em_chunk_rows, n - from);
        for (size_t i = 0; i < here; ++i) chunk.add_row(x + (from + i) * d, w ? w[from + i] : 1.0);
        chunk.compute_squares();
        far_rows.take(chunk, x + from * d);
        chunk.accumulate_chunk();
    }
    return sum_of(chunk.likelihood);
}

struct NoFarRows {
    template <class B, class In> void take(B &, const In *) {}
};

struct FarRows {
    ChunkWorkspace<double> &chunk;
    template <class B, class In> void take(B &other, const In *x) {
        other.find_nearest();
        for (size_t i = 0; i < other.count; ++i)
            if (other.weight[i] > 0 && other.far(i)) {
                chunk.add_row(x + i * other.c.d, other.weight[i]);
                other.weight[i] = 0;
                if (chunk.count == em_chunk_rows) flush();
            }
    }
    void flush() {
        chunk.compute_squares();
        chunk.accumulate_chunk();
    }
};

template <class In>
double mixture_step(const In *x, const double *w, size_t n, const Mixture &m, double *counts, double *shift, double *scatter) {
    Arena arena{nullptr, 0};
    (void)ChunkWorkspace<double>(arena, *m.wide, true);
    if (m.narrow) (void)ChunkWorkspace<float>(arena, *m.narrow, true);
    arena = {(char *)scratch(arena.used), 0};
    ChunkWorkspace<double> wide(arena, *m.wide, true);
    double likelihood = 0;
    if (m.narrow) {
        ChunkWorkspace<float> narrow(arena, *m.narrow, true);
        FarRows far_rows{wide};
        likelihood = step_over(narrow, x, w, n, far_rows);
        far_rows.flush();
        likelihood += sum_of(wide.likelihood);
        narrow.add_sums_to(counts, shift, scatter);
    } else {
        NoFarRows none;
        likelihood = step_over(wide, x, w, n, none);
    }
    wide.add_sums_to(counts, shift, scatter);
    return likelihood;
}

// Always in float64: the density of a single row needs more accuracy than a sum over many.
template <class In> void mixture_logs(const In *x, size_t n, const Mixture &m, double *total, double *each) {
    const size_t d = m.wide->d, k = m.wide->k;
    Arena arena{nullptr, 0};
    (void)ChunkWorkspace<double>(arena, *m.wide, false);
    arena = {(char *)scratch(arena.used), 0};
    ChunkWorkspace<double> chunk(arena, *m.wide, false);
    for (size_t from = 0; from < n; from += em_chunk_rows) {
        const size_t here = least(em_chunk_rows, n - from);
        for (size_t i = 0; i < here; ++i) chunk.add_row(x + (from + i) * d, 1.0);
        chunk.compute_squares();
        chunk.compute_responsibilities<false>();
        for (size_t i = 0; i < here; ++i) {
            total[from + i] = chunk.total[i];
            double *to = each + (from + i) * k;
            for (size_t j = 0; each && j < k; ++j) to[j] = chunk.logs[j * em_chunk_rows + i];
        }
        chunk.count = 0;
    }
}
