// Vectors of FW_BYTES bytes by compiler extension: one source for SSE2, AVX2, AVX-512 and NEON. Included by
// kernels_isa.cpp inside the namespace of its instruction set, so that no symbol is shared between them. For
// the same reason nothing here uses the standard library: its inline functions would be merged across units
// (std::index_sequence is a type only).

#define FW_PRAGMA(text) _Pragma(#text)
#ifdef __clang__
#define FW_UNROLL(n) FW_PRAGMA(unroll n)
#else
#define FW_UNROLL(n) FW_PRAGMA(GCC unroll n)
#endif

// A rule for all kernels: in an innermost loop, no arithmetic on floating-point vectors under a condition on a scalar
// (`w ? a * b : b` with w a pointer); make the condition a template parameter, or compute both and select. GCC compiles it
// wrongly for AVX-512 (12.2 does, and nothing in its later sources excludes it). Its if-conversion pass turns a product that
// might trap into .COND_MUL (condition, ...) if the vector mode has masked arithmetic, as only AVX-512 does. That is meant for
// scalars which are vectorised later; it does not check that the operands are vectors already. Such a loop is not vectorised
// again, but if straight-line vectorisation finds something else in its body (the widening loads of `load_as`), the converted
// body is kept. The condition, one bit, then goes to a mask register as it is: it governs the first lane, and all others
// take the value for "false". In the dump of -fdump-tree-ifcvt no .COND_* may have a vector to its left.

template <class T, size_t bytes> struct VecOf { typedef T type __attribute__((vector_size(bytes))); };
template <class T> using Vec = typename VecOf<T, FW_BYTES>::type;
template <class T> constexpr size_t lanes = FW_BYTES / sizeof(T);

template <class V, class T> inline V load(const T *p) {
    V v;
    __builtin_memcpy(&v, p, sizeof v);
    return v;
}

template <class V, class T> inline void store(T *p, V v) { __builtin_memcpy(p, &v, sizeof v); }

// lanes<T> values of type In, as a vector of T. Naming each lane compiles to one widening load;
// GCC splits __builtin_convertvector into halves.
template <class T, class In, size_t... lane>
inline Vec<T> convert(const In *p, std::index_sequence<lane...>) {
    return Vec<T>{T(p[lane])...};
}
template <class T, class In> inline Vec<T> load_as(const In *p) {
    return convert<T>(p, std::make_index_sequence<lanes<T>>{});
}
template <> inline Vec<float> load_as<float>(const float *p) { return load<Vec<float>>(p); }
template <> inline Vec<double> load_as<double>(const double *p) { return load<Vec<double>>(p); }

// s - 0 is s, -0 included, and compiles to a broadcast alone; s + 0 would cost an addition.
template <class T> inline Vec<T> broadcast(T s) { return s - Vec<T>{}; }

inline size_t least(size_t a, size_t b) { return a < b ? a : b; }
inline size_t round_up(size_t n, size_t step) { return (n + step - 1) / step * step; }
