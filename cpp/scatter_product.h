// The scatter matrix times a few vectors, without the matrix: Y = Z'W Z Q for rows Z = (X - centre) * factor.
//
// A strip of rows is packed into panels [panel of columns][row][column of the panel], less a pivot, so that data at any offset
// keep their digits. Then T = Z Q (rows are broadcast, columns of Q are vectors), and Y += Z'W T (T is broadcast, columns of Z
// are vectors). Sums over the rows of a strip are formed in T and added in float64. Every sum runs over the same terms in the
// same order whatever the size of the register tile, so AVX2 and AVX-512 give the same bits.

#include "arena.h"
#include "narrow_project.h"

#if FW_BYTES == 64
constexpr size_t product_tile = 12;  // broadcast values per step; with two vectors, 24 of 32 registers are accumulators
#elif FW_BYTES == 32
constexpr size_t product_tile = 6;  // 12 of 16
#elif defined(__aarch64__)
constexpr size_t product_tile = 12;  // 24 of 32
#else
constexpr size_t product_tile = 4;  // 8 of 16: without FMA each product needs a register, too
#endif
// Rows per step where Q has one vector of columns, so that there are sums for more of them: the load of that vector is shared.
constexpr size_t thin_tile = FW_BYTES == 64 ? 20 : product_tile;
// Rows packed at a time, a multiple of all tiles: with the rows that come next, they stay in L2 up to some 2000 columns, and
// of more than 4000 at least half of the fewer rows do. In double, sums of many columns come from memory further away than the
// rows, and longer strips add to them less often. Blocks of so many columns have 384 rows or fewer: mostly whole strips.
template <class T> constexpr size_t strip_rows(size_t d) {
    return sizeof(T) < sizeof(double) ? (d > 4000 ? 24 : 60) : (d > 4000 ? 48 : 36);
}
constexpr size_t part_rows = 240;              // whose sums are formed in T, strip by strip, before they are added in float64
constexpr double near_zero = 16;               // squared distance of the centre from zero, in units of the largest column
constexpr size_t basis_bytes = 16 << 10;       // part of Q that stays in L1 while all rows of a strip pass by

template <class T> constexpr size_t panel_columns = 2 * lanes<T>;

// Makes the compiler forget where a pointer comes from.
template <class T> inline void hide(const T *&pointer) { __asm__("" : "+r"(pointer)); }

// out[row][column] += sum over the features of a stretch; `next` is memory that will be read soon, a few lines per panel.
template <class T, size_t nv, size_t tile = product_tile>
__attribute__((always_inline)) inline void project_tile(const T *packed, size_t row_step, size_t panel_step, const T *basis,
                                                        size_t stride, size_t features, T *out, const char *&next,
                                                        size_t ahead) {
    using V = Vec<T>;
    constexpr size_t L = lanes<T>, P = panel_columns<T>;
    constexpr size_t at_once = nv == 1 ? 4 : 1, apart = nv > 1 ? tile : tile > product_tile ? 5 : 3;
    constexpr size_t pointers = (tile + apart - 1) / apart;
    V sum[tile][nv];
    FW_UNROLL(32)
    for (size_t i = 0; i < tile; ++i)
        FW_UNROLL(2)
        for (size_t v = 0; v < nv; ++v) sum[i][v] = load<V>(out + i * stride + v * L);
    // With one vector, every third or fifth row has a pointer of its own, and the compiler must not know how they hang
    // together: it would make one for each row, for which there are not enough registers. With two there is time for that.
    const T *rows[pointers];
    FW_UNROLL(4)
    for (size_t g = 0; g < pointers; ++g) {
        rows[g] = packed + g * apart * row_step;
        if constexpr (pointers > 1) hide(rows[g]);
    }
    const auto add = [&](size_t e) __attribute__((always_inline)) {
        V right[nv];
        FW_UNROLL(2)
        for (size_t v = 0; v < nv; ++v) right[v] = load<V>(basis + v * L);
        FW_UNROLL(32)
        for (size_t i = 0; i < tile; ++i) {
            const V left = broadcast(rows[i / apart][i % apart * row_step + e]);
            FW_UNROLL(2)
            for (size_t v = 0; v < nv; ++v) sum[i][v] += left * right[v];
        }
        basis += stride;
    };
    const auto move_on = [&](size_t step) __attribute__((always_inline)) {
        FW_UNROLL(4)
        for (size_t g = 0; g < pointers; ++g) rows[g] += step;
    };
    const size_t whole = features / P * P;
    for (size_t f = 0; f < whole; f += P, move_on(panel_step - P)) {
        for (size_t line = 0; line < ahead; line += 64) __builtin_prefetch(next + line, 0, 2);
        next += ahead;
        for (size_t e = 0; e < P; e += at_once, move_on(at_once)) {
            FW_UNROLL(4)
            for (size_t u = 0; u < at_once; ++u) add(u);
        }
    }
    for (size_t e = 0; e < features - whole; ++e, move_on(1)) add(0);
    FW_UNROLL(32)
    for (size_t i = 0; i < tile; ++i)
        FW_UNROLL(2)
        for (size_t v = 0; v < nv; ++v) store(out + i * stride + v * L, sum[i][v]);
}

// out[column of T][feature] += sum over the rows of a strip, for `count` columns of T and one panel of features. The panel and
// the sums that come next are fetched meanwhile: with many columns, they are further away than the second-level cache. So is a
// line of each row that will be read soon, from `next` on.
template <class T, size_t count>
inline void back_tile(const T *packed, size_t row_step, size_t panel_step, const T *codes, size_t stride, size_t rows, T *out,
                      const char *next, size_t next_step) {
    using V = Vec<T>;
    constexpr size_t L = lanes<T>, P = panel_columns<T>;
    V sum[count][2] = {};
    const char *next_sums = (const char *)(out + count * P);
    FW_UNROLL(2)
    for (size_t row = 0; row < rows; ++row, packed += row_step, codes += stride, next += next_step) {
        __builtin_prefetch(next, 0, 2);
        for (size_t e = 0; e < P; e += 64 / sizeof(T)) __builtin_prefetch(packed + panel_step + e);
        if (row * 64 < count * P * sizeof(T)) __builtin_prefetch(next_sums + row * 64, 1);
        const V right[2] = {load<V>(packed), load<V>(packed + L)};
        FW_UNROLL(16)
        for (size_t c = 0; c < count; ++c) {
            const V left = broadcast(codes[c]);
            sum[c][0] += left * right[0];
            sum[c][1] += left * right[1];
        }
    }
    FW_UNROLL(16)
    for (size_t c = 0; c < count; ++c) {
        store(out + c * P, load<V>(out + c * P) + sum[c][0]);
        store(out + c * P + L, load<V>(out + c * P + L) + sum[c][1]);
    }
}

template <class T, size_t count = product_tile>
inline void back_columns(size_t wanted, const T *packed, size_t row_step, size_t panel_step, const T *codes, size_t stride,
                         size_t rows, T *out, const char *next, size_t next_step) {
    if (wanted == count)
        return back_tile<T, count>(packed, row_step, panel_step, codes, stride, rows, out, next, next_step);
    if constexpr (count > 1)
        back_columns<T, count - 1>(wanted, packed, row_step, panel_step, codes, stride, rows, out, next, next_step);
}

// Lines of the cache that a panel takes of a row, and whether Z'T, a group of columns at a time, can fetch one of those of the
// next strip with each group. There is more time for it than in T = Z Q, where nearly every product loads a value.
template <class T, class In> constexpr size_t panel_lines = (panel_columns<T> * sizeof(In) + 63) / 64;
template <class T, class In> inline bool back_fetches(size_t b) { return b > (panel_lines<T, In> - 1) * product_tile; }
template <class T, class In> inline size_t back_from(size_t b) { return back_fetches<T, In>(b) ? 0 : panel_lines<T, In>; }

// Adds Z'T of a strip to the sums [panel of columns][column of T][column of the panel]. The first `there` columns of Z are
// those of the rows x themselves, the others are packed. T has `b` columns, `stride` apart. Of the lines that a panel takes of a
// row of the next strip, those from `line` on are fetched.
template <class T, class In>
inline void add_back(const In *x, const T *packed, size_t there, size_t strip, size_t d, const T *codes, size_t stride, size_t b,
                     size_t line, T *part) {
    constexpr size_t P = panel_columns<T>;
    const size_t groups = (b + product_tile - 1) / product_tile;
    for (size_t p = 0; p * P < d; ++p) {
        const T *origin = packed + p * strip * P;
        size_t row_step = P, panel_step = strip * P;
        if (p * P < there) origin = (const T *)(x + p * P), row_step = d, panel_step = P;
        for (size_t g = 0, c = 0; g < groups; ++g) {
            const size_t count = (b - c) / (groups - g);
            const bool fetch = line + g < panel_lines<T, In>;
            const char *next = fetch ? (const char *)(x + strip * d + p * P) + 64 * (line + g) : (const char *)codes;
            back_columns<T>(count, origin, row_step, panel_step, codes + c, stride, strip, part + (p * stride + c) * P, next,
                            fetch ? d * sizeof(In) : 0);
            c += count;
        }
    }
}

// Rows less the pivot, times the factor, from the column `first` on. Rows past the end and rows without weight become zero.
template <class T, class In>
inline void pack_strip(const In *x, const double *w, size_t rows, size_t strip, size_t first, size_t d, const T *pivot,
                       const T *factor, T *packed) {
    using V = Vec<T>;
    constexpr size_t L = lanes<T>, P = panel_columns<T>;
    const size_t whole = d / P * P, panels = (d - first + P - 1) / P;
    for (size_t row = 0; row < strip; ++row) {
        T *to = packed + first * strip + row * P;
        if (row >= rows || (w && w[row] == 0)) {
            for (size_t p = 0; p < panels; ++p, to += strip * P)
                for (size_t e = 0; e < P; e += L) store(to + e, V{});
            continue;
        }
        const In *from = x + row * d;
        for (size_t j = first; j < whole; j += P, to += strip * P) {
            FW_UNROLL(2)
            for (size_t e = 0; e < P; e += L)
                store(to + e, (load_as<T>(from + j + e) - load<V>(pivot + j + e)) * load<V>(factor + j + e));
        }
        for (size_t e = 0; whole + e < d && e < P; ++e)
            to[e] = (T(from[whole + e]) - pivot[whole + e]) * factor[whole + e];
        for (size_t e = d - whole; d > whole && e < P; ++e) to[e] = 0;
    }
}

// Adds the sums over a few strips, in T, to those in float64, and clears them.
template <class T> inline void take_in(T *part, double *sums, size_t count) {
    constexpr size_t L = lanes<T>, D = lanes<double>;
    for (size_t i = 0; i < count; i += L) {
        FW_UNROLL(2)
        for (size_t e = 0; e < L; e += D)
            store(sums + i + e, load<Vec<double>>(sums + i + e) + load_as<double>(part + i + e));
        store(part + i, Vec<T>{});
    }
}

// Adds a row of T to the sums of its columns.
template <class T> inline void add_row(const T *codes, size_t columns, double *total) {
    constexpr size_t D = lanes<double>;
    for (size_t c = 0; c < columns; c += D) store(total + c, load<Vec<double>>(total + c) + load_as<double>(codes + c));
}

// The sums of Z'T, of which there are `columns` for each column of Z and `b` are wanted, as they are passed on: about the mean,
// which is `shift` away from the pivot, and times the factors, if they are not in it.
template <class T>
inline void hand_out(const double *sums, const double *shift, const double *total, const double *factor, size_t d, size_t b,
                     size_t columns, double *out) {
    constexpr size_t P = panel_columns<T>;
    for (size_t j = 0; j < d; ++j) {
        const double *__restrict from = sums + j / P * columns * P + j % P, *__restrict apart = total;
        const double here = shift[j], times = factor ? factor[j] : 1.0;
        double *__restrict to = out + j * b;
        for (size_t c = 0; c < b; ++c) to[c] = (from[c * P] - here * apart[c]) * times;
    }
}

template <class T> struct ProductWorkspace {
    T *packed, *codes, *first, *pivot, *factor, *basis, *part;
    double *sums, *total, *shift;
    ProductWorkspace(Arena &arena, size_t d, size_t columns) {
        const size_t padded = round_up(d, panel_columns<T>), strip = strip_rows<T>(d);
        packed = arena.take<T>(padded * strip);
        codes = arena.take<T>(strip * columns);
        first = arena.take<T>(columns);
        pivot = arena.take<T>(padded);
        factor = arena.take<T>(padded);
        basis = arena.take<T>(round_up(d, unit_lanes) * round_up(columns, narrow_columns));
        part = arena.take<T>(padded * columns);
        sums = sizeof(T) < sizeof(double) ? arena.take<double>(padded * columns) : (double *)part;
        total = arena.take<double>(columns);
        shift = arena.take<double>(padded);
    }
};

// Whether rows can be multiplied as they are, the centre and the factors being taken into account afterwards: where the centre
// is near zero, no digits are lost. Packing takes a sixth of the time otherwise. Factors bring columns to size one, or less.
template <class T, class In> inline bool as_they_are(const ProductTerms &terms) {
    if (sizeof(In) != sizeof(T) || sizeof(T) == sizeof(double) || terms.weights) return false;
    double distance = 0;
    for (size_t j = 0; j < terms.d; ++j) {
        const double factor = terms.factor ? terms.factor[j] : 1, mean = terms.centre[j] * factor;
        if (!(factor >= 0x1p-30 && factor <= 0x1p30)) return false;
        distance += mean * mean;
    }
    return distance <= near_zero;
}

// How many columns of a strip need not be packed. The last panel of a row may reach into the next ones, where there are any: sums
// of what is read there are never used.
template <class T> inline size_t unpacked(bool direct, size_t from, size_t strip, size_t n, size_t d) {
    if (!direct || from + strip > n) return 0;
    constexpr size_t P = panel_columns<T>;
    return (n - from - strip) * d >= P ? d : d / P * P;
}

// Looks at rows just before they are multiplied, while they are in the cache: at nothing.
struct NoLook {
    void place(Arena &) {}
    void start() {}
    void until(size_t) {}
};

template <class T, class In, class Look = NoLook>
void scatter_product(const In *x, size_t n, const ProductTerms &terms, double *out, Look &&look = {}) {
    constexpr size_t L = lanes<T>, P = panel_columns<T>;
    const size_t d = terms.d, b = terms.b, strip = strip_rows<T>(d);
    const double *w = terms.weights, *centre = terms.centre;
    const size_t columns = round_up(b, L), panels = (d + P - 1) / P;
    const bool direct = as_they_are<T, In>(terms);
    Arena arena{nullptr, 0};
    ProductWorkspace<T>(arena, d, columns);
    look.place(arena);
    arena = {(char *)scratch(arena.used), 0};
    const ProductWorkspace<T> work(arena, d, columns);
    look.place(arena);
    look.start();
    const auto factor_of = [&](size_t j) { return terms.factor ? terms.factor[j] : 1.0; };
    for (size_t j = 0; j < panels * P; ++j) {
        const double mean = j < d ? centre[j] : 0;
        work.factor[j] = direct || j >= d ? T(1) : T(factor_of(j));
        work.pivot[j] = direct ? T(0) : T(mean);
        work.shift[j] = j < d ? ((mean - double(work.pivot[j])) + centre[d + j]) * double(work.factor[j]) : 0;
    }
    for (size_t c = 0; c < columns; ++c) work.total[c] = 0;
    for (size_t j = 0; j < d; ++j) {
        const double shift = work.shift[j], factor = direct ? factor_of(j) : 1.0, *__restrict from = terms.basis + j * b;
        double *__restrict total = work.total;
        T *__restrict to = work.basis + j * columns;
        for (size_t c = 0; c < b; ++c) {
            const double value = from[c] * factor;
            to[c] = T(value);
            total[c] += shift * value;
        }
        for (size_t c = b; c < columns; ++c) to[c] = 0;
    }
    for (size_t c = 0; c < columns; ++c) work.first[c] = T(-work.total[c]), work.total[c] = 0;
    for (size_t i = 0; i < panels * P * columns; ++i) work.sums[i] = 0, work.part[i] = 0;

    const size_t fit = basis_bytes / (columns * sizeof(T)) / P * P, stretch = fit ? fit : P;
    const size_t together = part_rows / strip, fetched = back_fetches<T, In>(b) ? 0 : P * sizeof(In);
    const bool thin = columns == L && strip % thin_tile == 0;
    constexpr bool may_be_narrow = sizeof(T) == sizeof(float) && P % unit_lanes == 0;  // packed rows are cut into whole units
    const bool narrow = may_be_narrow && b <= narrow_most;
    // Memory is busy all the time if T = Z Q fetches one half of the lines, and Z'T the other.
    const size_t back_line = narrow ? panel_lines<T, In> / 2 : back_from<T, In>(b);
    const NarrowCut cut(d, b);
    if constexpr (may_be_narrow)
        if (narrow) pack_narrow(terms.basis, direct ? terms.factor : nullptr, d, b, cut, work.basis);
    for (size_t from = 0; from < n; from += strip) {
        const size_t rows = least(strip, n - from), room = unpacked<T>(direct, from, strip, n, d);
        const size_t there = narrow && room < d ? 0 : room;  // all of a strip or nothing
        look.until(from + rows);
        if (there < d)
            pack_strip<T>(x + from * d, w ? w + from : nullptr, rows, strip, there, d, work.pivot, work.factor, work.packed);
        for (size_t row = 0; row < strip; ++row)
            for (size_t c = 0; c < columns; ++c) work.codes[row * columns + c] = work.first[c];
        const char *next = (const char *)(x + (from + strip) * d);
        if constexpr (may_be_narrow)
            if (narrow) {
                const float *ahead = (const float *)(x + (from + strip) * d);
                const NarrowRows packed{work.packed, P, P / unit_lanes, (strip - 1) * P, ahead, d};
                const NarrowRows as_is{(const float *)x + from * d, d, cut.stretch, 0, ahead, d};
                narrow_project(there ? as_is : packed, strip, cut, work.basis, back_line > 0, work.codes, columns);
            }
        for (size_t f = narrow ? d : 0, here; f < d; f += here) {
            here = least(stretch, (f < there ? there : d) - f);
            const T *origin = work.packed + f * strip;
            size_t row_step = P, panel_step = strip * P;
            if (f < there) origin = (const T *)(x + from * d + f), row_step = d, panel_step = P;
            for (size_t row = 0; row < strip; row += thin ? thin_tile : product_tile) {
                const T *packed = origin + row * row_step, *basis = work.basis + f * columns;
                T *codes = work.codes + row * columns;
                size_t c = 0, ahead = product_tile * fetched;
                if (thin) {
                    project_tile<T, 1, thin_tile>(packed, row_step, panel_step, basis, L, here, codes, next, thin_tile * fetched);
                    continue;
                }
                for (; c + 2 * L <= columns; c += 2 * L, ahead = 0)
                    project_tile<T, 2>(packed, row_step, panel_step, basis + c, columns, here, codes + c, next, ahead);
                if (c < columns)
                    project_tile<T, 1>(packed, row_step, panel_step, basis + c, columns, here, codes + c, next, ahead);
            }
        }
        for (size_t row = 0; row < strip; ++row) {
            const T weight = row < rows ? (w ? T(w[from + row]) : T(1)) : T(0);
            T *codes = work.codes + row * columns;
            for (size_t c = 0; c < columns; c += L) {
                const Vec<T> weighted = load<Vec<T>>(codes + c) * broadcast(weight);
                store(codes + c, weighted);
            }
            add_row(codes, columns, work.total);
        }
        add_back<T>(x + from * d, work.packed, there, strip, d, work.codes, columns, b, back_line, work.part);
        if (sizeof(T) < sizeof(double) && ((from / strip + 1) % together == 0 || from + strip >= n))
            take_in<T>(work.part, work.sums, panels * P * columns);
    }
    hand_out<T>(work.sums, work.shift, work.total, direct ? terms.factor : nullptr, d, b, columns, out);
}
