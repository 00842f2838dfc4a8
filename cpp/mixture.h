// One step of EM over a block of rows, and the densities of rows: chunk by chunk, each first scored against all components
// (density.h), then shared out among them, then summed up (weigh.h).

constexpr size_t mix_rows = 192;  // of a chunk: a multiple of every panel, float32 and float64

// A chunk of rows, what is known of them, and the sums of all chunks so far.
template <class T> struct Bench {
    static constexpr size_t R = mix_rows, N = panel_rows<T>, L = lanes<T>, D = lanes<double>;
    static_assert(R % N == 0 && R % D == 0);
    const Components<T> &c;
    const Panels<T> panels;
    T *y, *turned, *z, *lengths, *packed, *zeros, *share, *nearest;
    double *logs, *total, *weight, *counts, *sums, *out;
    int *chosen;
    size_t count = 0;
    Doubles likelihood = {};

    bool matrix() const { return c.squares == Squares::full || c.squares == Squares::tied; }
    size_t out_size() const {
        if (matrix()) return Blocks<T>::total(panels.count) * (c.squares == Squares::tied ? 1 : c.k);
        return c.squares == Squares::diag ? c.k * c.columns : 0;
    }
    size_t sums_step() const { return matrix() ? round_up(panels.padded(), 8) : c.columns; }

    // `adds`: there will be sums.
    Bench(Arena &arena, const Components<T> &components, bool adds) : c(components), panels(c.d) {
        const size_t block = Panels<T>::full * Panels<T>::full;
        y = arena.take<T>(R * c.columns);
        turned = arena.take<T>(R * c.d);
        z = arena.take<T>(N * c.d);
        lengths = arena.take<T>(R * c.k);
        logs = arena.take<double>(R * c.k);
        nearest = arena.take<T>(R);
        total = arena.take<double>(R);
        weight = arena.take<double>(R);
        if (!adds) return;
        chosen = arena.take<int>(R);
        share = arena.take<T>(R);
        packed = arena.take<T>(matrix() ? run_rows * panels.padded() : 0);
        zeros = arena.take<T>(matrix() ? block : 0);
        counts = arena.take<double>(c.k * D);
        sums = arena.take<double>(c.k * sums_step());
        out = arena.take<double>(out_size());
        if (!arena.base) return;
        for (size_t i = 0; matrix() && i < block; ++i) zeros[i] = 0;
        for (size_t i = 0; i < c.k * D; ++i) counts[i] = 0;
        for (size_t i = 0; i < c.k * sums_step(); ++i) sums[i] = 0;
        for (size_t i = 0; i < out_size(); ++i) out[i] = 0;
    }

    // One more row. What a row of weight 0 holds must not matter.
    template <class In> void bring(const In *x, double w) {
        T *to = y + count * c.columns;
        for (size_t f = 0; f < c.d; ++f) to[f] = w > 0 ? T(T(x[f]) - T(c.pivot[f])) : T(0);
        for (size_t f = c.d; f < c.columns; ++f) to[f] = 0;
        weight[count++] = w;
    }

    // Rows to panels; `y` is filled up with zeros to whole panels.
    void turn() {
        using V = Vec<T>;
        const size_t rows = round_up(count, N);
        for (size_t i = count; i < rows; ++i)
            for (size_t f = 0; f < c.columns; ++f) y[i * c.columns + f] = 0;
        for (size_t i = count; i < R; ++i) weight[i] = 0;
        for (size_t first = 0; first < rows; first += L) {
            T *to = turned + first / N * N * c.d + first % N;
            for (size_t f = 0; f < c.d; f += L) {
                V v[L];
                FW_UNROLL(16)
                for (size_t i = 0; i < L; ++i) v[i] = load<V>(y + (first + i) * c.columns + f);
                transpose_step<T, L / 2>(v);
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

    void score() {
        turn();
        squared_lengths(c, turned, (count + N - 1) / N, z, lengths, R);
    }

    // The least of each row's squared lengths.
    void find_nearest() {
        using V = Vec<T>;
        for (size_t i = 0; i < round_up(count, L); i += L) {
            V best = load<V>(lengths + i);
            for (size_t j = 1; j < c.k; ++j) best = smaller(best, load<V>(lengths + j * R + i));
            store(nearest + i, best);
        }
    }

    // Whether no component is near enough to the row for T to tell its density.
    bool far(size_t row) const { return !(nearest[row] < T(c.far)); }

    // Log densities to `total`. By component, `logs` become the logs of the shares, or with `adds` the shares times weights,
    // which are also counted.
    template <bool adds> void divide() {
        const Doubles most = broadcast(1e300);
        for (size_t i = 0; i < round_up(count, D); i += D) {
            Doubles best = broadcast(-__builtin_inf()), sum = {};
            for (size_t j = 0; j < c.k; ++j) {
                Doubles length = load_as<double>(lengths + j * R + i);
                length = length < most ? length : most;  // not a number, too: rows so far away belong to all alike
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

    // Rows with a share in a component that can change a bit of its sums: not those with less than 1e-30 of the largest.
    Chosen<T> choose(size_t j) const {
        const double *from = logs + j * R;
        Doubles most = {};
        for (size_t i = 0; i < round_up(count, D); i += D) most = larger(most, load<Doubles>(from + i));
        double limit = 0;
        for (size_t l = 0; l < D; ++l) limit = larger(limit, most[l] * 1e-30);
        size_t found = 0;
        for (size_t i = 0; i < count; ++i) {
            chosen[found] = int(i);
            share[found] = T(from[i]);
            found += from[i] > limit;
        }
        if (matrix())
            for (size_t i = 0; i < found; ++i) share[i] = root(share[i]);
        return {found, chosen, share};
    }

    void add() {
        for (size_t j = 0; j < c.k; ++j) {
            const Chosen<T> some = choose(j);
            const T *mean = c.means + j * c.columns;
            double *sum = sums + j * sums_step();
            if (matrix())
                weigh_full(y, c.columns, mean, some, panels, packed, zeros, sum,
                           out + (c.squares == Squares::tied ? 0 : j * Blocks<T>::total(panels.count)));
            else if (c.squares == Squares::diag)
                weigh_columns<T, true>(y, c.d, c.columns, mean, some, sum, out + j * c.columns);
            else
                weigh_columns<T, false>(y, c.d, c.columns, mean, some, sum, out);
        }
    }

    // The chunk is scored: divide it, sum it up, and be ready for the next.
    void complete() {
        divide<true>();
        add();
        count = 0;
    }

    size_t column_of(size_t f) const { return !matrix() || f < panels.used ? f : f + panels.first - panels.used; }

    // Adds what was summed up, about the means as they were given.
    void finish(double *all_counts, double *shift, double *scatter) const {
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
                    const double *block = out + (pooled ? 0 : j * Blocks<T>::total(panels.count)) + (q * (q + 1) / 2 + p) * full * full;
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

// All rows in T. Rows too far for T go to `late`, which leaves none.
template <class T, class In, class Late>
double step_over(Bench<T> &bench, const In *x, const double *w, size_t n, Late &late) {
    const size_t d = bench.c.d;
    for (size_t from = 0; from < n; from += mix_rows) {
        const size_t here = least(mix_rows, n - from);
        for (size_t i = 0; i < here; ++i) bench.bring(x + (from + i) * d, w ? w[from + i] : 1.0);
        bench.score();
        late.take_far(bench, x + from * d);
        bench.complete();
    }
    return sum_of(bench.likelihood);
}

struct Nobody {
    template <class B, class In> void take_far(B &, const In *) {}
};

struct Late {
    Bench<double> &bench;
    template <class B, class In> void take_far(B &other, const In *x) {
        other.find_nearest();
        for (size_t i = 0; i < other.count; ++i)
            if (other.weight[i] > 0 && other.far(i)) {
                bench.bring(x + i * other.c.d, other.weight[i]);
                other.weight[i] = 0;
                if (bench.count == mix_rows) finish();
            }
    }
    void finish() {
        bench.score();
        bench.complete();
    }
};

template <class In>
double mixture_step(const In *x, const double *w, size_t n, const Mixture &m, double *counts, double *shift, double *scatter) {
    Arena arena{nullptr, 0};
    (void)Bench<double>(arena, *m.wide, true);
    if (m.narrow) (void)Bench<float>(arena, *m.narrow, true);
    arena = {(char *)scratch(arena.used), 0};
    Bench<double> wide(arena, *m.wide, true);
    double likelihood = 0;
    if (m.narrow) {
        Bench<float> narrow(arena, *m.narrow, true);
        Late late{wide};
        likelihood = step_over(narrow, x, w, n, late);
        late.finish();
        likelihood += sum_of(wide.likelihood);
        narrow.finish(counts, shift, scatter);
    } else {
        Nobody nobody;
        likelihood = step_over(wide, x, w, n, nobody);
    }
    wide.finish(counts, shift, scatter);
    return likelihood;
}

// Always in float64: densities of single rows are looked at more closely than sums of many.
template <class In> void mixture_logs(const In *x, size_t n, const Mixture &m, double *total, double *each) {
    const size_t d = m.wide->d, k = m.wide->k;
    Arena arena{nullptr, 0};
    (void)Bench<double>(arena, *m.wide, false);
    arena = {(char *)scratch(arena.used), 0};
    Bench<double> bench(arena, *m.wide, false);
    for (size_t from = 0; from < n; from += mix_rows) {
        const size_t here = least(mix_rows, n - from);
        for (size_t i = 0; i < here; ++i) bench.bring(x + (from + i) * d, 1.0);
        bench.score();
        bench.divide<false>();
        for (size_t i = 0; i < here; ++i) {
            total[from + i] = bench.total[i];
            double *to = each + (from + i) * k;
            for (size_t j = 0; each && j < k; ++j) to[j] = bench.logs[j * mix_rows + i];
        }
        bench.count = 0;
    }
}
