// The same product for sparse rows (CSR). The centre is subtracted from the products, not from the rows, which would fill
// in the zeros: T = X Q - 1 c'Q, Y = X'W T - c (1'W T).
//
// Only in columns that every row stores can an offset be large compared with the spread: where zeros occur among large values,
// the standard deviation is of the order of those values. Such columns are shifted by a pivot.

constexpr size_t sparse_ahead = 12;  // stored values fetched before they are needed

// codes[0..nv * lanes) += sum over the stored values of a row; values are (x - pivot) * factor.
template <class T, size_t nv, class I>
inline void project_row(const T *values, const I *columns, size_t count, const T *basis, size_t stride, T *codes) {
    using V = Vec<T>;
    constexpr size_t L = lanes<T>;
    V sum[nv];
    FW_UNROLL(8)
    for (size_t v = 0; v < nv; ++v) sum[v] = load<V>(codes + v * L);
    for (size_t i = 0; i < count; ++i) {
        const T *row = basis + size_t(columns[i]) * stride;
        const V value = broadcast(values[i]);
        FW_UNROLL(8)
        for (size_t v = 0; v < nv; ++v) sum[v] += value * load<V>(row + v * L);
    }
    FW_UNROLL(8)
    for (size_t v = 0; v < nv; ++v) store(codes + v * L, sum[v]);
}

// sums[column] += value * codes, in float64.
template <size_t nv, class T, class I>
inline void back_row(const T *values, const I *columns, size_t count, const double *codes, size_t stride, double *sums) {
    using V = Vec<double>;
    constexpr size_t L = lanes<double>;
    V code[nv];
    FW_UNROLL(8)
    for (size_t v = 0; v < nv; ++v) code[v] = load<V>(codes + v * L);
    for (size_t i = 0; i < count; ++i) {
        double *row = sums + size_t(columns[i]) * stride;
        if (i + sparse_ahead < count) {
            const double *next = sums + size_t(columns[i + sparse_ahead]) * stride;
            FW_UNROLL(8)
            for (size_t v = 0; v < nv * L; v += 8) __builtin_prefetch(next + v, 1);
        }
        const V value = broadcast(double(values[i]));
        FW_UNROLL(8)
        for (size_t v = 0; v < nv; ++v) store(row + v * L, load<V>(row + v * L) + value * code[v]);
    }
}

// What it takes to read sparse rows as z = (x - pivot) * factor, and what the pivot leaves over.
template <class T, class In, class I> struct SparseReader {
    const SparseRows<In, I> &x;
    const double *w;
    size_t longest = 0;
    T *factor, *values;
    double *shift, *pivot;
    int64_t *seen;

    SparseReader(const SparseRows<In, I> &rows, const double *weights) : x(rows), w(weights) {
        for (size_t i = 0; i < x.n; ++i) {
            const size_t count = size_t(x.starts[i + 1] - x.starts[i]);
            longest = count > longest ? count : longest;
        }
    }
    void take(Arena &arena, size_t d) {
        factor = arena.take<T>(d);
        values = arena.take<T>(longest);
        shift = arena.take<double>(d);
        pivot = arena.take<double>(d);
        seen = arena.take<int64_t>(d);
    }
    bool counts(size_t i) const { return !w || w[i] != 0; }

    void prepare(const ProductTerms &terms) {
        const size_t d = terms.d;
        for (size_t j = 0; j < d; ++j) pivot[j] = 0, seen[j] = 0;
        size_t counted = 0, leader = 0;
        for (size_t i = 0; i < x.n; ++i) {
            if (!counts(i)) continue;
            if (counted++ == 0) leader = i;
            for (I at = x.starts[i]; at < x.starts[i + 1]; ++at) ++seen[x.columns[at]];
        }
        if (counted)
            for (I at = x.starts[leader]; at < x.starts[leader + 1]; ++at)
                if (seen[x.columns[at]] == int64_t(counted)) pivot[x.columns[at]] = double(x.values[at]);
        for (size_t j = 0; j < d; ++j) {
            factor[j] = T(terms.factor ? terms.factor[j] : 1);
            shift[j] = ((terms.centre[j] - pivot[j]) + terms.centre[d + j]) * double(factor[j]);
        }
    }
    // The stored values of a row, in `values`; fetches what the basis holds for them.
    size_t read(size_t i, const T *basis, size_t stride) const {
        const I *at = x.columns + x.starts[i];
        const size_t count = size_t(x.starts[i + 1] - x.starts[i]);
        for (size_t v = 0; v < count; ++v) {
            const size_t j = size_t(at[v]);
            for (size_t c = 0; c < stride; c += 64 / sizeof(T)) __builtin_prefetch(basis + j * stride + c);
            values[v] = T(double(x.values[x.starts[i] + v]) - pivot[j]) * factor[j];
        }
        return count;
    }
};

// A d x b matrix in T whose rows are whole vectors; the matrix itself if it is so already.
template <class T> const T *padded_basis(const double *basis, size_t d, size_t b, size_t columns, T *room) {
    if constexpr (sizeof(T) == sizeof(double))
        if (columns == b) return basis;
    for (size_t j = 0; j < d; ++j)
        for (size_t c = 0; c < columns; ++c) room[j * columns + c] = c < b ? T(basis[j * b + c]) : T(0);
    return room;
}

// first = -(shift' basis): where the sums over a row begin.
template <class T>
void begin_codes(const double *shift, const double *basis, size_t d, size_t b, size_t columns, double *total, T *first) {
    for (size_t c = 0; c < columns; ++c) total[c] = 0;
    for (size_t j = 0; j < d; ++j)
        if (shift[j] != 0)
            for (size_t c = 0; c < b; ++c) total[c] += shift[j] * basis[j * b + c];
    for (size_t c = 0; c < columns; ++c) first[c] = T(-total[c]), total[c] = 0;
}

template <class T, class I>
inline void project_all(const T *values, const I *at, size_t count, const T *basis, size_t columns, const T *first, T *codes) {
    constexpr size_t L = lanes<T>;
    for (size_t c = 0; c < columns; ++c) codes[c] = first[c];
    size_t c = 0;
    for (; c + 4 * L <= columns; c += 4 * L) project_row<T, 4>(values, at, count, basis + c, columns, codes + c);
    for (; c + 2 * L <= columns; c += 2 * L) project_row<T, 2>(values, at, count, basis + c, columns, codes + c);
    for (; c < columns; c += L) project_row<T, 1>(values, at, count, basis + c, columns, codes + c);
}

template <class T, class I>
inline void back_all(const T *values, const I *at, size_t count, const double *codes, size_t columns, double *sums) {
    constexpr size_t D = lanes<double>;
    size_t c = 0;
    for (; c + 4 * D <= columns; c += 4 * D) back_row<4>(values, at, count, codes + c, columns, sums + c);
    for (; c + 2 * D <= columns; c += 2 * D) back_row<2>(values, at, count, codes + c, columns, sums + c);
    for (; c < columns; c += D) back_row<1>(values, at, count, codes + c, columns, sums + c);
}

// out = sums - shift total', without the padding.
inline void finish_sums(const double *sums, const double *shift, const double *total, size_t d, size_t b, size_t columns,
                        double *out) {
    for (size_t j = 0; j < d; ++j)
        for (size_t c = 0; c < b; ++c) out[j * b + c] = sums[j * columns + c] - shift[j] * total[c];
}

template <class T, class In, class I>
void sparse_product(const SparseRows<In, I> &x, const ProductTerms &terms, double *out) {
    const size_t d = terms.d, b = terms.b, columns = round_up(b, lanes<T>);
    const bool own_basis = columns != b || sizeof(T) != sizeof(double), own_sums = columns != b;
    SparseReader<T, In, I> rows(x, terms.weights);
    T *basis = nullptr, *first = nullptr, *codes = nullptr;
    double *sums = nullptr, *wide_codes = nullptr, *total = nullptr;
    for (Arena arena{nullptr, 0};;) {  // once for the size, once for the memory
        rows.take(arena, d);
        basis = arena.take<T>(own_basis ? d * columns : 0);
        sums = arena.take<double>(own_sums ? d * columns : 0);
        first = arena.take<T>(columns);
        codes = arena.take<T>(columns);
        wide_codes = arena.take<double>(columns);
        total = arena.take<double>(columns);
        if (arena.base) break;
        arena = {(char *)scratch(arena.used), 0};
    }
    rows.prepare(terms);
    const T *q = padded_basis<T>(terms.basis, d, b, columns, basis);
    begin_codes<T>(rows.shift, terms.basis, d, b, columns, total, first);
    if (!own_sums) sums = out;
    for (size_t i = 0; i < d * columns; ++i) sums[i] = 0;
    for (size_t i = 0; i < x.n; ++i) {
        if (!rows.counts(i)) continue;
        const double weight = terms.weights ? terms.weights[i] : 1;
        const I *at = x.columns + x.starts[i];
        const size_t count = rows.read(i, q, columns);
        project_all<T>(rows.values, at, count, q, columns, first, codes);
        for (size_t c = 0; c < columns; ++c) {
            wide_codes[c] = double(codes[c]) * weight;
            total[c] += wide_codes[c];
        }
        back_all(rows.values, at, count, wide_codes, columns, sums);
    }
    finish_sums(sums, rows.shift, total, d, b, columns, out);
}

// The first half alone, in float64: Z Q times the roots of the weights (n x b).
template <class In, class I> void sparse_project(const SparseRows<In, I> &x, const ProductTerms &terms, double *out) {
    const size_t d = terms.d, b = terms.b, columns = round_up(b, lanes<double>);
    SparseReader<double, In, I> rows(x, terms.weights);
    double *basis = nullptr, *first = nullptr, *codes = nullptr, *total = nullptr;
    for (Arena arena{nullptr, 0};;) {
        rows.take(arena, d);
        basis = arena.take<double>(columns != b ? d * columns : 0);
        first = arena.take<double>(columns);
        codes = arena.take<double>(columns);
        total = arena.take<double>(columns);
        if (arena.base) break;
        arena = {(char *)scratch(arena.used), 0};
    }
    rows.prepare(terms);
    const double *q = padded_basis<double>(terms.basis, d, b, columns, basis);
    begin_codes<double>(rows.shift, terms.basis, d, b, columns, total, first);
    for (size_t i = 0; i < x.n; ++i) {
        const double root = !terms.weights ? 1 : __builtin_sqrt(terms.weights[i]);
        if (rows.counts(i)) {
            const size_t count = rows.read(i, q, columns);
            project_all<double>(rows.values, x.columns + x.starts[i], count, q, columns, first, codes);
        }
        for (size_t c = 0; c < b; ++c) out[i * b + c] = rows.counts(i) ? codes[c] * root : 0;
    }
}

// The second half alone, in float64: Z' times the roots of the weights times `basis`, which is n x b here (out is d x b).
template <class In, class I> void sparse_back(const SparseRows<In, I> &x, const ProductTerms &terms, double *out) {
    const size_t d = terms.d, b = terms.b, columns = round_up(b, lanes<double>);
    SparseReader<double, In, I> rows(x, terms.weights);
    double *sums = nullptr, *codes = nullptr, *total = nullptr;
    for (Arena arena{nullptr, 0};;) {
        rows.take(arena, d);
        sums = arena.take<double>(columns != b ? d * columns : 0);
        codes = arena.take<double>(columns);
        total = arena.take<double>(columns);
        if (arena.base) break;
        arena = {(char *)scratch(arena.used), 0};
    }
    rows.prepare(terms);
    if (columns == b) sums = out;
    for (size_t i = 0; i < d * columns; ++i) sums[i] = 0;
    for (size_t c = 0; c < columns; ++c) total[c] = codes[c] = 0;
    for (size_t i = 0; i < x.n; ++i) {
        if (!rows.counts(i)) continue;
        const double root = !terms.weights ? 1 : __builtin_sqrt(terms.weights[i]);
        for (size_t c = 0; c < b; ++c) {
            codes[c] = terms.basis[i * b + c] * root;
            total[c] += codes[c];
        }
        const size_t count = rows.read(i, codes, 0);
        back_all(rows.values, x.columns + x.starts[i], count, codes, columns, sums);
    }
    finish_sums(sums, rows.shift, total, d, b, columns, out);
}
