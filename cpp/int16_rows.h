// Rows rounded to integers of 16 bits, two columns in each lane (Int16Targets, Int16Rows in targets.h).

#if defined(__x86_64__) && FW_BYTES >= 32
using IntVec = Vec<int>;
using UnsignedVec = Vec<unsigned>;

FW_TWO_TO_ONE(packed_int16, "vpackssdw", int)

// With AVX-512 these keep it to themselves if they round: meanwhile rows may be added to sums, which must not (join_meanwhile.h).
#if FW_BYTES == 64
#define FW_QUIETLY "%{rn-sae%}, "
#else
#define FW_QUIETLY
#endif
inline IntVec nearest_integers(Vec<float> v) {
    IntVec result;
    __asm__("vcvtps2dq " FW_QUIETLY "%1, %0" : "=" FW_REGISTER(result) : FW_REGISTER(v));
    return result;
}
inline Vec<float> to_float(IntVec v) {
    Vec<float> result;
    __asm__("vcvtdq2ps " FW_QUIETLY "%1, %0" : "=" FW_REGISTER(result) : FW_REGISTER(v));
    return result;
}
inline Vec<float> sum_of(Vec<float> a, Vec<float> b) {
    __asm__("vaddps " FW_QUIETLY "%1, %0, %0" : "+" FW_REGISTER(a) : FW_REGISTER(b));
    return a;
}
// a * b + c and a * b - c.
inline Vec<float> multiplied_plus(Vec<float> a, Vec<float> b, Vec<float> c) {
#if FW_BYTES == 64
    __asm__("vfmadd213ps " FW_QUIETLY "%2, %1, %0" : "+v"(a) : "v"(b), "v"(c));
    return a;
#else
    return a * b + c;
#endif
}
inline Vec<float> multiplied_minus(Vec<float> a, Vec<float> b, Vec<float> c) {
#if FW_BYTES == 64
    __asm__("vfmsub213ps " FW_QUIETLY "%2, %1, %0" : "+v"(a) : "v"(b), "v"(c));
    return a;
#else
    return a * b - c;
#endif
}
inline Vec<float> square_roots(Vec<float> v) {
    Vec<float> result;
    __asm__("vsqrtps " FW_QUIETLY "%1, %0" : "=" FW_REGISTER(result) : FW_REGISTER(v));
    return result;
}

// sum += the products of both halves of each lane of a and b.
__attribute__((always_inline)) inline void add_products(IntVec &sum, IntVec a, IntVec b) {
#if FW_BYTES == 64
    __asm__("vpdpwssd %2, %1, %0" : "+v"(sum) : "v"(a), "v"(b));
#else
    IntVec products;
    __asm__("vpmaddwd %2, %1, %0" : "=x"(products) : "x"(a), "x"(b));
    sum = (IntVec)((UnsignedVec)sum + (UnsignedVec)products);  // sums that leave 32 bits are not used
#endif
}
// The same for one pair of a target in memory.
__attribute__((always_inline)) inline void add_products(IntVec &sum, IntVec a, const int *pair) {
#if FW_BYTES == 64
    __asm__("vpdpwssd %2%{1to16%}, %1, %0" : "+v"(sum) : "v"(a), "m"(*pair));
#else
    add_products(sum, a, broadcast(*pair));
#endif
}

// Quadruples of adjacent rows, two columns in each lane: even and odd pairs of columns apart, all rows of a pair together.
inline void gather_pairs(const IntVec *rows, IntVec *to) {
    using V = Vec<float>;
    constexpr size_t G = lanes<int> / 4;  // parts of 16 bytes in a vector; quadruples of rows
    V even[G], odd[G];
    FW_UNROLL(4)
    for (size_t q = 0; q < G; ++q) {
        const V a = (V)packed_int16(rows[4 * q], rows[4 * q + 1]), b = (V)packed_int16(rows[4 * q + 2], rows[4 * q + 3]);
        even[q] = every_other<false>(a, b);
        odd[q] = every_other<true>(a, b);
    }
    transpose_between_parts<float>(even);
    transpose_between_parts<float>(odd);
    FW_UNROLL(4)
    for (size_t l = 0; l < G; ++l) {
        to[2 * l] = (IntVec)even[l];
        to[2 * l + 1] = (IntVec)odd[l];
    }
}

// Rounds as many columns as a vector has lanes, from column j on, of as many rows: half as many vectors of pairs.
inline void round_rows(const float *const *rows, size_t j, const Int16Targets &t, IntVec *to) {
    constexpr size_t L = lanes<float>;
    const Vec<float> p = load<Vec<float>>(t.row_pivot + j), scale = broadcast(t.row_scale);
    IntVec y[L];
    FW_UNROLL(16)
    for (size_t i = 0; i < L; ++i) y[i] = nearest_integers(multiplied_minus(load<Vec<float>>(rows[i] + j), scale, p));
    gather_pairs(y, to);
}

#if FW_BYTES == 64
// The same for adjacent rows of 8 columns, of which two fill a vector.
inline void round_eights(const float *x, const Int16Targets &t, IntVec *to) {
    using V = Vec<float>;
    typedef float Half __attribute__((vector_size(32)));
    const Half half = load<Half>(t.row_pivot);
    const V p = __builtin_shufflevector(half, half, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15), scale = broadcast(t.row_scale);
    IntVec y[8];
    FW_UNROLL(8)
    for (size_t i = 0; i < 8; ++i) {  // rows i and i + 4; for the last four vectors, 4 rows further on
        const float *row = x + (i + (i & 4)) * 8;
        const V both = __builtin_shufflevector(load<Half>(row), load<Half>(row + 32), 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
        y[i] = nearest_integers(multiplied_minus(both, scale, p));
    }
    V even[2], odd[2];
    FW_UNROLL(2)
    for (size_t q = 0; q < 2; ++q) {
        const V a = (V)packed_int16(y[4 * q], y[4 * q + 1]), b = (V)packed_int16(y[4 * q + 2], y[4 * q + 3]);
        even[q] = every_other<false>(a, b);
        odd[q] = every_other<true>(a, b);
    }
    to[0] = (IntVec)alternate_parts<float, false>(even[0], even[1]);
    to[1] = (IntVec)alternate_parts<float, false>(odd[0], odd[1]);
    to[2] = (IntVec)alternate_parts<float, true>(even[0], even[1]);
    to[3] = (IntVec)alternate_parts<float, true>(odd[0], odd[1]);
}
#endif

// The sum of the squares of rows, two pairs of columns at a time: more could exceed 32 bits.
struct Int16Squares {
    Vec<float> sum = {};
    inline void add(IntVec pair) {
        IntVec products = {};
        add_products(products, pair, pair);
        sum = sum_of(sum, to_float(products));
    }
    inline void add(IntVec pair, IntVec other) {
        IntVec products = {};
        add_products(products, pair, pair);
        add_products(products, other, other);
        sum = sum_of(sum, to_float(products));
    }
};

// Rows that are kept as integers from pass to pass: read if they are `ready`, written otherwise, if there is room for them.
struct KeptInts {
    int *values;
    bool ready;
    explicit KeptInts(const Int16Rows &rows) : values(rows.values), ready(rows.values && rows.ready) {}
    bool wanted() const { return values && !ready; }  // they are still to be written
};

// How far apart vectors of rows are: their pairs of columns, and their lengths.
inline size_t int16_vector(size_t pairs) { return (pairs + 1) * lanes<int>; }

// Rounds the columns from j on, as many as a vector has lanes (or, unless `whole`, fewer), of a vector of rows.
template <bool whole>
inline void round_columns(const float *const *rows, size_t j, size_t d, const Int16Targets &t, int *to, Int16Squares &sum) {
    constexpr size_t half = lanes<float> / 2, L = lanes<float>;
    IntVec y[half];
    round_rows(rows, j, t, y);
    if constexpr (whole) {
        FW_UNROLL(8)
        for (size_t p = 0; p < half; p += 2) {
            store(to + p * L, y[p]);
            store(to + (p + 1) * L, y[p + 1]);
            sum.add(y[p], y[p + 1]);
        }
    } else {
        const size_t some = t.pairs - j / 2;
        FW_UNROLL(8)
        for (size_t p = 0; p < half; ++p) {
            if (p >= some) break;
            if (d % 2 && p + 1 == some) y[p] &= 0xffff;  // the other half belongs to the next row
            store(to + p * L, y[p]);
            sum.add(y[p]);
        }
    }
}

// Memory that is fetched meanwhile, some cache lines of it at a time.
struct FetchedMeanwhile {
    const int *from;
    size_t lines;
    __attribute__((always_inline)) inline void next() {  // GCC drops calls of functions that only fetch
        for (size_t i = 0; i < lines; ++i, from += 16) __builtin_prefetch(from, 0, 1);
    }
};

// Rounds a panel of rows: by vector of rows, pairs of columns and the lengths of the rows.
inline void round_panel(const float *const *rows, size_t d, const Int16Targets &t, int *panel, FetchedMeanwhile ahead) {
    constexpr size_t L = lanes<float>;
    const size_t step = int16_vector(t.pairs);
    Int16Squares sums[panel_vectors];
    size_t j = 0;
    for (; j + L <= d; j += L) {
        FW_UNROLL(1)
        for (size_t v = 0; v < panel_vectors; ++v) {
            ahead.next();
            round_columns<true>(rows + v * L, j, d, t, panel + v * step + j / 2 * L, sums[v]);
        }
    }
    if (j < d) {
        FW_UNROLL(1)
        for (size_t v = 0; v < panel_vectors; ++v)
            round_columns<false>(rows + v * L, j, d, t, panel + v * step + j / 2 * L, sums[v]);
    }
    for (size_t v = 0; v < panel_vectors; ++v) store(panel + v * step + t.pairs * L, square_roots(sums[v].sum));
}
#endif
