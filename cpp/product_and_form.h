// The scatter matrix times a few vectors, Y = Z'W Z Q, with products in float32, and its form F = Q'Z'W Z Q in float64.
//
// Variances along Q are the diagonal of F: they have all digits. Y only has to show how far Q is from being invariant, for
// which float32 is enough. So T = Z Q is formed in float64, F = T'W T as well, and Y = Z'W T from T rounded to float32 (as in
// scatter_product.h). For T, columns of Z are vectors: rows are widened as they are loaded, without being packed, and any
// number of columns of Q fills the registers. Each sum has eight parts on all instruction sets, and so the same bits.

constexpr size_t form_lanes = 8;
#if FW_BYTES == 64
constexpr size_t form_rows = 5, form_columns = 5;  // 25 of 32 registers are sums
#elif FW_BYTES == 32
constexpr size_t form_rows = 3, form_columns = 2;  // 12 of 16
#elif defined(__aarch64__)
constexpr size_t form_rows = 2, form_columns = 3;  // 24 of 32
#else
constexpr size_t form_rows = 1, form_columns = 2;  // 8 of 16
#endif
constexpr size_t form_stretch = 1024;  // columns of Z at a time, at most,
constexpr size_t form_bytes = 256 << 10;  // and what belongs to them of Q, which stays in L2

constexpr size_t form_parts = form_lanes / lanes<double>;
static_assert(form_lanes % lanes<double> == 0);

// Which lines of the rows that come next are fetched meanwhile: each group of columns of Q takes some of them, since memory is
// not quick enough to bring all of them during one.
struct FormFetch {
    size_t first, step;  // vector of columns; from one to the next
};

// codes[row][c] += x[row] - pivot, or just x[row] if `plain`, times column c of Q, over whole vectors of columns and what is left
// after them (`tails`, filled up with zeros, or null). Q is [vector of columns][c][lane].
template <size_t rows, size_t count, bool plain>
inline void form_tile(const float *x, size_t d, const float *tails, const double *pivot, const double *basis, size_t vectors,
                      const FormFetch &fetch, double *codes, size_t stride) {
    using V = Vec<double>;
    constexpr size_t L = lanes<double>;
    V sum[rows][count][form_parts] = {};
    const auto add = [&](const float *from, size_t step) __attribute__((always_inline)) {
        FW_UNROLL(4)
        for (size_t p = 0; p < form_parts; ++p) {
            V right[count];
            FW_UNROLL(8)
            for (size_t c = 0; c < count; ++c) right[c] = load<V>(basis + c * form_lanes + p * L);
            FW_UNROLL(8)
            for (size_t r = 0; r < rows; ++r) {
                V left = load_as<double>(from + r * step + p * L);
                if constexpr (!plain) left -= load<V>(pivot + p * L);
                FW_UNROLL(8)
                for (size_t c = 0; c < count; ++c) sum[r][c][p] += left * right[c];
            }
        }
        basis += count * form_lanes, pivot += form_lanes;
    };
    for (size_t v = 0, due = fetch.first; v < vectors; ++v, x += form_lanes) {
        if (v == due) {
            FW_UNROLL(8)
            for (size_t r = 0; r < rows; ++r) __builtin_prefetch(x + (rows + r) * d, 0, 2);
            due += fetch.step;
        }
        add(x, d);
    }
    if (tails) add(tails, form_lanes);
    FW_UNROLL(8)
    for (size_t r = 0; r < rows; ++r)
        FW_UNROLL(8)
        for (size_t c = 0; c < count; ++c) {
            double part[form_lanes];
            FW_UNROLL(4)
            for (size_t p = 0; p < form_parts; ++p) store(part + p * L, sum[r][c][p]);
            codes[r * stride + c] +=
                ((part[0] + part[1]) + (part[2] + part[3])) + ((part[4] + part[5]) + (part[6] + part[7]));
        }
}

template <size_t rows, bool plain, size_t count = form_columns>
inline void form_group(size_t wanted, const float *x, size_t d, const float *tails, const double *pivot, const double *basis,
                       size_t vectors, const FormFetch &fetch, double *codes, size_t stride) {
    if (wanted == count) return form_tile<rows, count, plain>(x, d, tails, pivot, basis, vectors, fetch, codes, stride);
    if constexpr (count > 1)
        form_group<rows, plain, count - 1>(wanted, x, d, tails, pivot, basis, vectors, fetch, codes, stride);
}

// A stretch of the columns of Z, and Q along it, in groups of columns.
struct FormStretch {
    size_t first, vectors, tail;  // column; whole vectors; columns after them
    const double *basis;
    size_t padded() const { return vectors + (tail > 0); }
};

// codes += (x - pivot) Q along a stretch, for `rows` rows; without a pivot, if `plain`.
template <size_t rows, bool plain>
inline void project_rows(const float *x, size_t d, const double *pivot, const FormStretch &stretch, size_t b, double *codes,
                         size_t stride) {
    float tails[rows * form_lanes] = {};
    for (size_t r = 0; r < rows; ++r)
        for (size_t e = 0; e < stretch.tail; ++e)
            tails[r * form_lanes + e] = x[r * d + stretch.first + stretch.vectors * form_lanes + e];
    const float *from = x + stretch.first, *last = stretch.tail ? tails : nullptr;
    const size_t groups = (b + form_columns - 1) / form_columns;
    constexpr size_t line = 64 / (form_lanes * sizeof(float));
    for (size_t g = 0, c = 0; g < groups; ++g) {
        const size_t count = (b - c) / (groups - g);
        const double *basis = stretch.basis + c * stretch.padded() * form_lanes;
        const FormFetch fetch{line * g, line * groups};
        form_group<rows, plain>(count, from, d, last, pivot + stretch.first, basis, stretch.vectors, fetch, codes + c, stride);
        c += count;
    }
}

template <bool plain>
void project(const float *x, size_t rows, size_t d, const double *pivot, const FormStretch &stretch, size_t b, double *codes,
             size_t columns) {
    size_t row = 0;
    for (; row + form_rows <= rows; row += form_rows)
        project_rows<form_rows, plain>(x + row * d, d, pivot, stretch, b, codes + row * columns, columns);
    for (; row < rows; ++row) project_rows<1, plain>(x + row * d, d, pivot, stretch, b, codes + row * columns, columns);
}

// Writes Q times the factors along a stretch, group by group, filled up with zeros.
inline double *pack_form_basis(const ProductTerms &terms, const FormStretch &stretch, double *to) {
    const size_t b = terms.b, groups = (b + form_columns - 1) / form_columns;
    for (size_t g = 0, c = 0; g < groups; ++g) {
        const size_t count = (b - c) / (groups - g);
        for (size_t v = 0; v < stretch.padded(); ++v)
            for (size_t k = c; k < c + count; ++k)
                for (size_t e = 0; e < form_lanes; ++e, ++to) {
                    const size_t inside = v * form_lanes + e, j = stretch.first + inside;
                    const bool there = inside < stretch.vectors * form_lanes + stretch.tail;
                    *to = there ? terms.basis[j * b + k] * (terms.factor ? terms.factor[j] : 1.0) : 0;
                }
        c += count;
    }
    return to;
}

// form[i][c] += sum over rows of left[row][i] * right[row][c]; all have `columns` columns, a multiple of four and of the lanes.
inline void add_form(const double *left, const double *right, size_t rows, size_t columns, double *form) {
    using V = Vec<double>;
    for (size_t i = 0; i < columns; i += 4)
        for (size_t c = 0; c < columns; c += lanes<double>) {
            V sum[4];
            FW_UNROLL(4)
            for (size_t e = 0; e < 4; ++e) sum[e] = load<V>(form + (i + e) * columns + c);
            for (size_t row = 0; row < rows; ++row) {
                const V here = load<V>(right + row * columns + c);
                FW_UNROLL(4)
                for (size_t e = 0; e < 4; ++e) sum[e] += broadcast(left[row * columns + i + e]) * here;
            }
            FW_UNROLL(4)
            for (size_t e = 0; e < 4; ++e) store(form + (i + e) * columns + c, sum[e]);
        }
}

struct FormWorkspace {
    float *packed, *narrow, *pivot, *factor, *part;
    double *codes, *weighted, *first, *centre, *basis, *sums, *total, *shift, *form;
    FormWorkspace(Arena &arena, size_t d, size_t columns, size_t strip, size_t stretches) {
        const size_t padded = round_up(d, panel_columns<float>);
        packed = arena.take<float>(padded * strip);
        narrow = arena.take<float>(strip * columns);
        pivot = arena.take<float>(padded);
        factor = arena.take<float>(padded);
        part = arena.take<float>(padded * columns);
        codes = arena.take<double>(strip * columns);
        weighted = arena.take<double>(strip * columns);
        first = arena.take<double>(columns);
        centre = arena.take<double>(padded + form_lanes);
        basis = arena.take<double>((padded + stretches * form_lanes) * columns);
        sums = arena.take<double>(padded * columns);
        total = arena.take<double>(columns);
        shift = arena.take<double>(padded);
        form = arena.take<double>(columns * columns);
    }
};

// Weights are moderate, as for products in float32. `out` is d x b, `form` is b x b.
inline void product_and_form(const float *x, size_t n, const ProductTerms &terms, double *out, double *form) {
    constexpr size_t P = panel_columns<float>;
    const size_t d = terms.d, b = terms.b, strip = d > 4000 ? 30 : 60, columns = round_up(b, form_lanes);
    const size_t fit = form_bytes / (columns * sizeof(double)), most = least(form_stretch, fit < form_lanes ? form_lanes : fit);
    const size_t stretches = (d + most - 1) / most, padded = round_up(d, P);
    const size_t length = round_up((d + stretches - 1) / stretches, form_lanes);
    const double *w = terms.weights, *centre = terms.centre;
    const bool direct = as_they_are<float, float>(terms);
    Arena arena{nullptr, 0};
    FormWorkspace(arena, d, columns, strip, stretches);
    arena = {(char *)scratch(arena.used), 0};
    const FormWorkspace work(arena, d, columns, strip, stretches);
    const auto factor_of = [&](size_t j) { return terms.factor ? terms.factor[j] : 1.0; };
    for (size_t j = 0; j < padded + form_lanes; ++j) work.centre[j] = j < d ? centre[j] : 0;
    for (size_t j = 0; j < padded; ++j) {
        work.factor[j] = direct || j >= d ? 1.0f : float(factor_of(j));
        work.pivot[j] = direct || j >= d ? 0.0f : float(centre[j]);
        work.shift[j] = j < d ? ((centre[j] - double(work.pivot[j])) + centre[d + j]) * double(work.factor[j]) : 0;
    }
    for (size_t c = 0; c < columns; ++c) work.first[c] = work.total[c] = 0;
    for (size_t j = 0; j < d; ++j)
        for (size_t c = 0; c < b; ++c)
            work.first[c] -= (direct ? centre[j] + centre[d + j] : centre[d + j]) * factor_of(j) * terms.basis[j * b + c];
    for (size_t i = 0; i < padded * columns; ++i) work.sums[i] = 0, work.part[i] = 0;
    for (size_t i = 0; i < columns * columns; ++i) work.form[i] = 0;

    const auto stretch_at = [&](size_t first, const double *basis) {
        const size_t here = least(length, d - first);
        return FormStretch{first, here / form_lanes, here % form_lanes, basis};
    };
    double *end = work.basis;
    for (size_t first = 0; first < d; first += length) end = pack_form_basis(terms, stretch_at(first, nullptr), end);

    for (size_t from = 0; from < n; from += strip) {
        const size_t rows = least(strip, n - from), there = unpacked<float>(direct, from, strip, n, d);
        const float *here = x + from * d;
        for (size_t i = 0; i < strip * columns; ++i) work.codes[i] = 0;
        const double *basis = work.basis;
        for (size_t first = 0; first < d; first += length) {
            const FormStretch stretch = stretch_at(first, basis);
            if (direct) project<true>(here, rows, d, work.centre, stretch, b, work.codes, columns);
            else project<false>(here, rows, d, work.centre, stretch, b, work.codes, columns);
            basis += stretch.padded() * form_lanes * b;
        }
        for (size_t row = 0; row < strip; ++row) {
            const double weight = row < rows ? (w ? w[from + row] : 1.0) : 0.0, *__restrict first = work.first;
            double *__restrict code = work.codes + row * columns, *__restrict weighted = work.weighted + row * columns;
            float *__restrict narrow = work.narrow + row * columns;
            if (weight == 0) {  // whatever the row holds
                for (size_t c = 0; c < columns; ++c) code[c] = weighted[c] = narrow[c] = 0;
                continue;
            }
            for (size_t c = 0; c < columns; ++c) {  // from b on, all are zero
                code[c] += first[c];
                weighted[c] = code[c] * weight;
                narrow[c] = float(weighted[c]);
            }
            add_row(narrow, columns, work.total);
        }
        add_form(work.weighted, work.codes, strip, columns, work.form);
        if (there < d)
            pack_strip<float>(here, w ? w + from : nullptr, rows, strip, there, d, work.pivot, work.factor, work.packed);
        add_back<float>(here, work.packed, there, strip, d, work.narrow, columns, b, back_from<float, float>(b), work.part);
        if ((from / strip + 1) % (part_rows / strip) == 0 || from + strip >= n)
            take_in<float>(work.part, work.sums, padded * columns);
    }
    hand_out<float>(work.sums, work.shift, work.total, direct ? terms.factor : nullptr, d, b, columns, out);
    for (size_t i = 0; i < b; ++i)
        for (size_t c = 0; c < b; ++c) form[i * b + c] = work.form[i * columns + c];
}
