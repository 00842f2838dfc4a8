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

template <class T> struct SparseProductWorkspace {
    T *basis, *first, *codes, *factor, *values;
    double *sums, *wide_codes, *total, *shift, *pivot;
    int64_t *seen;
    SparseProductWorkspace(Arena &arena, size_t d, size_t columns, size_t longest) {
        basis = arena.take<T>(d * columns);
        first = arena.take<T>(columns);
        codes = arena.take<T>(columns);
        factor = arena.take<T>(d);
        values = arena.take<T>(longest);
        sums = arena.take<double>(d * columns);
        wide_codes = arena.take<double>(columns);
        total = arena.take<double>(columns);
        shift = arena.take<double>(d);
        pivot = arena.take<double>(d);
        seen = arena.take<int64_t>(d);
    }
};

template <class T, class In, class I>
void sparse_product(const SparseRows<In, I> &x, const ProductTerms &terms, double *out) {
    const size_t d = terms.d, b = terms.b, columns = round_up(b, lanes<float>);
    const double *w = terms.weights;
    size_t longest = 0, counted = 0, leader = 0;
    for (size_t i = 0; i < x.n; ++i) {
        const size_t count = size_t(x.starts[i + 1] - x.starts[i]);
        longest = count > longest ? count : longest;
        if (w && w[i] == 0) continue;
        if (counted++ == 0) leader = i;
    }
    Arena arena{nullptr, 0};
    SparseProductWorkspace<T>(arena, d, columns, longest);
    arena = {(char *)scratch(arena.used), 0};
    const SparseProductWorkspace<T> work(arena, d, columns, longest);

    for (size_t j = 0; j < d; ++j) work.pivot[j] = 0, work.seen[j] = 0;
    for (size_t i = 0; i < x.n; ++i) {
        if (w && w[i] == 0) continue;
        for (I at = x.starts[i]; at < x.starts[i + 1]; ++at) ++work.seen[x.columns[at]];
    }
    if (counted)
        for (I at = x.starts[leader]; at < x.starts[leader + 1]; ++at)
            if (work.seen[x.columns[at]] == int64_t(counted)) work.pivot[x.columns[at]] = double(x.values[at]);
    for (size_t c = 0; c < columns; ++c) work.total[c] = 0;
    for (size_t j = 0; j < d; ++j) {
        work.factor[j] = T(terms.factor ? terms.factor[j] : 1);
        work.shift[j] = ((terms.centre[j] - work.pivot[j]) + terms.centre[d + j]) * double(work.factor[j]);
        for (size_t c = 0; c < columns; ++c) {
            const double value = c < b ? terms.basis[j * b + c] : 0;
            work.basis[j * columns + c] = T(value);
            work.sums[j * columns + c] = 0;
            work.total[c] += work.shift[j] * value;
        }
    }
    for (size_t c = 0; c < columns; ++c) work.first[c] = T(-work.total[c]), work.total[c] = 0;

    constexpr size_t L = lanes<T>, D = lanes<double>;
    for (size_t i = 0; i < x.n; ++i) {
        if (w && w[i] == 0) continue;
        const double weight = w ? w[i] : 1;
        const I *at = x.columns + x.starts[i];
        const size_t count = size_t(x.starts[i + 1] - x.starts[i]);
        for (size_t v = 0; v < count; ++v) {
            const size_t j = size_t(at[v]);
            for (size_t c = 0; c < columns; c += 64 / sizeof(T)) __builtin_prefetch(work.basis + j * columns + c);
            work.values[v] = T((double(x.values[x.starts[i] + v]) - work.pivot[j])) * work.factor[j];
        }
        for (size_t c = 0; c < columns; ++c) work.codes[c] = work.first[c];
        size_t c = 0;
        for (; c + 4 * L <= columns; c += 4 * L)
            project_row<T, 4>(work.values, at, count, work.basis + c, columns, work.codes + c);
        for (; c < columns; c += L) project_row<T, 1>(work.values, at, count, work.basis + c, columns, work.codes + c);
        for (c = 0; c < columns; ++c) {
            work.wide_codes[c] = double(work.codes[c]) * weight;
            work.total[c] += work.wide_codes[c];
        }
        for (c = 0; c + 8 * D <= columns; c += 8 * D)
            back_row<8>(work.values, at, count, work.wide_codes + c, columns, work.sums + c);
        for (; c + 4 * D <= columns; c += 4 * D)
            back_row<4>(work.values, at, count, work.wide_codes + c, columns, work.sums + c);
        for (; c < columns; c += D) back_row<1>(work.values, at, count, work.wide_codes + c, columns, work.sums + c);
    }
    for (size_t j = 0; j < d; ++j)
        for (size_t c = 0; c < b; ++c)
            out[j * b + c] = work.sums[j * columns + c] - work.shift[j] * work.total[c];
}
