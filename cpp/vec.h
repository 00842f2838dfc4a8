// Vectors of FW_BYTES bytes, by compiler extension: one source for SSE2, AVX2, AVX-512 and NEON. kernels_isa.cpp
// includes this inside the namespace of its instruction set, so that no symbols are shared between them. For the same
// reason nothing here calls the standard library, whose inline functions would be merged across units
// (std::index_sequence is only a type).

#define FW_PRAGMA(text) _Pragma(#text)
#ifdef __clang__
#define FW_UNROLL(n) FW_PRAGMA(unroll n)
#else
#define FW_UNROLL(n) FW_PRAGMA(GCC unroll n)
#endif

// A rule for all kernels: in an innermost loop, never make floating-point arithmetic on vectors depend on a scalar
// condition (`w ? a * b : b` with a pointer w). Make the condition a template parameter, or compute both values and
// select.
//
// GCC miscompiles such loops for AVX-512 (12.2 does; sources of later versions contain no check against it). Its
// if-conversion pass replaces an operation that might trap by a masked one, .COND_MUL (condition, ...), if the target
// has masked arithmetic for its mode, which for vectors only AVX-512 has. This is meant for scalars that are
// vectorised later, but the pass does not check whether the operands are vectors already. The loop vectoriser then
// leaves such a loop alone, but if SLP vectorisation finds something else to do in the converted body (such as the
// widening loads of `load_as`), the converted body is kept. The scalar condition, a single bit, is moved to a mask
// register as it is: the first lane obeys it, and all other lanes take the value for "false". To check: in the output
// of -fdump-tree-ifcvt no .COND_* may have a vector result.

template <class T, size_t bytes> struct VecOf { typedef T type __attribute__((vector_size(bytes))); };
template <class T> using Vec = typename VecOf<T, FW_BYTES>::type;
template <class T> constexpr size_t lanes = FW_BYTES / sizeof(T);

template <class V, class T> inline V load(const T *p) {
    V v;
    __builtin_memcpy(&v, p, sizeof v);
    return v;
}

template <class V, class T> inline void store(T *p, V v) { __builtin_memcpy(p, &v, sizeof v); }

// Converts lanes<T> values of type In to a vector of T. Naming each lane compiles to one widening load, whereas GCC
// splits __builtin_convertvector into halves.
template <class V, class In, size_t... lane>
inline V convert(const In *p, std::index_sequence<lane...>) {
    return V{decltype(V{}[0] + 0)(p[lane])...};
}
template <class T, class In> inline Vec<T> load_as(const In *p) {
    return convert<Vec<T>>(p, std::make_index_sequence<lanes<T>>{});
}
template <> inline Vec<float> load_as<float>(const float *p) { return load<Vec<float>>(p); }
template <> inline Vec<double> load_as<double>(const double *p) { return load<Vec<double>>(p); }

// s - 0 equals s even for -0, and compiles to a broadcast alone; s + 0 would cost an addition.
template <class T> inline Vec<T> broadcast(T s) { return s - Vec<T>{}; }

// A register for any vector: with AVX-512 there are 32 of them, and "x" names only half.
#if defined(__x86_64__)
#if FW_BYTES == 64
#define FW_REGISTER "v"
#else
#define FW_REGISTER "x"
#endif
#endif

// Rounds v here: what follows is not fused with the product that made it. Where a value must be the same in two copies of
// a function, the compiler must not be free to fuse in one of them.
template <class V> inline void settle(V &v) {
#if defined(__x86_64__)
    __asm__("" : "+" FW_REGISTER(v));
#elif defined(__aarch64__)
    __asm__("" : "+w"(v));
#endif
}

// Calls f with 0, 1, ... as types. GCC leaves arrays of vectors in memory in large functions unless it knows early which element is meant.
template <class F, size_t... i> __attribute__((always_inline)) inline void each_of(F f, std::index_sequence<i...>) {
    (f(std::integral_constant<size_t, i>()), ...);
}
template <size_t count, class F> __attribute__((always_inline)) inline void each(F f) { each_of(f, std::make_index_sequence<count>()); }

inline size_t least(size_t a, size_t b) { return a < b ? a : b; }
inline size_t round_up(size_t n, size_t step) { return (n + step - 1) / step * step; }

template <class V> inline V larger(V a, V b) { return a > b ? a : b; }
template <class V> inline V smaller(V a, V b) { return a < b ? a : b; }

// The same as one instruction. GCC makes comparisons and masked operations of them where it can, and these occupy the units
// that multiply.
#if defined(__x86_64__) && FW_BYTES >= 32
#define FW_TWO_TO_ONE(name, instruction, T)                                                        \
    inline Vec<T> name(Vec<T> a, Vec<T> b) {                                                       \
        Vec<T> result;                                                                             \
        __asm__(instruction " %2, %1, %0" : "=" FW_REGISTER(result) : FW_REGISTER(a), FW_REGISTER(b)); \
        return result;                                                                             \
    }
FW_TWO_TO_ONE(larger, "vmaxps", float)
FW_TWO_TO_ONE(smaller, "vminps", float)
FW_TWO_TO_ONE(larger, "vmaxpd", double)
FW_TWO_TO_ONE(smaller, "vminpd", double)
#endif

// Which lanes of two vectors of 32-bit numbers differ, as bits.
template <class I> inline unsigned long long different(I a, I b) {
#if defined(__x86_64__)
    if constexpr (sizeof(I) == 64) {
        unsigned short bits;
        __asm__("vpcmpneqd %2, %1, %0" : "=Yk"(bits) : "v"(a), "v"(b));
        return bits;
    } else {
        const I same = a == b;
        unsigned bits;
        constexpr unsigned all = (1u << sizeof(I) / 4) - 1;
#if FW_BYTES >= 32
        __asm__("vmovmskps %1, %0" : "=r"(bits) : "x"(same));
#else
        __asm__("movmskps %1, %0" : "=r"(bits) : "x"(same));
#endif
        return bits ^ all;
    }
#else
    unsigned long long bits = 0;
    for (size_t i = 0; i < sizeof(I) / 4; ++i) bits |= (unsigned long long)(a[i] != b[i]) << i;
    return bits;
#endif
}

// Which lanes of a comparison are false, as bits.
template <class M> inline unsigned long long false_lanes(M mask) {
    constexpr size_t lane = sizeof(mask[0]), count = sizeof(M) / lane;
    if constexpr (lane == sizeof(int)) {
        using I = typename VecOf<int, sizeof(M)>::type;
        return different((I)mask, I{} - 1);
    } else {
        unsigned long long bits = 0;
        for (size_t i = 0; i < count; ++i) bits |= (unsigned long long)(mask[i] == 0) << i;
        return bits;
    }
}

// Whether all lanes of a comparison are true.
template <class M> inline bool all_true(M mask) { return !false_lanes((typename VecOf<int, sizeof(M)>::type)mask); }
