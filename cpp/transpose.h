// Transposition in registers: first within the parts of 16 bytes of vectors, then of these parts. These shuffles have their
// pattern in the instruction. Others take registers for it and, with AVX-512, time of the units that multiply.

template <class T> constexpr size_t part_lanes = 16 / sizeof(T);

// Interleaves the lower (or upper) halves of the parts of two vectors, `width` values at a time.
template <class T, size_t width, bool upper, size_t... lane>
inline Vec<T> interleave(Vec<T> a, Vec<T> b, std::index_sequence<lane...>) {
    constexpr size_t P = part_lanes<T>, L = lanes<T>;
    return __builtin_shufflevector(
        a, b,
        int((lane / width % 2 ? L : 0) + lane / P * P + (upper ? P / 2 : 0) + lane % P / (2 * width) * width + lane % width)...);
}
template <class T, size_t width, bool upper> inline Vec<T> interleave(Vec<T> a, Vec<T> b) {
    return interleave<T, width, upper>(a, b, std::make_index_sequence<lanes<T>>{});
}

// The even (or odd) parts of a, then those of b.
template <class T, bool odd, size_t... lane> inline Vec<T> alternate_parts(Vec<T> a, Vec<T> b, std::index_sequence<lane...>) {
    constexpr size_t P = part_lanes<T>, L = lanes<T>, half = L / 2;
    return __builtin_shufflevector(a, b, int((lane < half ? 0 : L) + (lane % half / P * 2 + odd) * P + lane % P)...);
}
template <class T, bool odd> inline Vec<T> alternate_parts(Vec<T> a, Vec<T> b) {
    return alternate_parts<T, odd>(a, b, std::make_index_sequence<lanes<T>>{});
}

// As many vectors as a part has lanes: afterwards the i-th has what was in lane i of the parts of all.
template <class T> inline void transpose_parts(Vec<T> *v) {
    using V = Vec<T>;
    if constexpr (part_lanes<T> == 2) {
        const V low = interleave<T, 1, false>(v[0], v[1]);
        v[1] = interleave<T, 1, true>(v[0], v[1]);
        v[0] = low;
    } else {
        const V low = interleave<T, 1, false>(v[0], v[1]), high = interleave<T, 1, true>(v[0], v[1]);
        const V next_low = interleave<T, 1, false>(v[2], v[3]), next_high = interleave<T, 1, true>(v[2], v[3]);
        v[0] = interleave<T, 2, false>(low, next_low);
        v[1] = interleave<T, 2, true>(low, next_low);
        v[2] = interleave<T, 2, false>(high, next_high);
        v[3] = interleave<T, 2, true>(high, next_high);
    }
}

// As many vectors as each has parts: afterwards the i-th has the i-th parts of all.
template <class T> inline void transpose_between_parts(Vec<T> *v) {
    using V = Vec<T>;
    constexpr size_t G = lanes<T> / part_lanes<T>;
    if constexpr (G == 2) {
        const V even = alternate_parts<T, false>(v[0], v[1]);
        v[1] = alternate_parts<T, true>(v[0], v[1]);
        v[0] = even;
    } else if constexpr (G == 4) {
        const V a = alternate_parts<T, false>(v[0], v[1]), b = alternate_parts<T, false>(v[2], v[3]);
        const V e = alternate_parts<T, true>(v[0], v[1]), f = alternate_parts<T, true>(v[2], v[3]);
        v[0] = alternate_parts<T, false>(a, b);
        v[2] = alternate_parts<T, true>(a, b);
        v[1] = alternate_parts<T, false>(e, f);
        v[3] = alternate_parts<T, true>(e, f);
    }
}

// The even (or odd) lanes of each part of a, then of b.
template <bool odd, size_t... lane> inline Vec<float> every_other(Vec<float> a, Vec<float> b, std::index_sequence<lane...>) {
    return __builtin_shufflevector(a, b, int((lane % 4 < 2 ? 0 : lanes<float>) + lane / 4 * 4 + lane % 2 * 2 + odd)...);
}
template <bool odd> inline Vec<float> every_other(Vec<float> a, Vec<float> b) {
    return every_other<odd>(a, b, std::make_index_sequence<lanes<float>>{});
}

// As many vectors as they have lanes: rows become columns.
template <class T> inline void transpose(Vec<T> *v) {
    using V = Vec<T>;
    constexpr size_t L = lanes<T>, P = part_lanes<T>, G = L / P;
    FW_UNROLL(8)
    for (size_t g = 0; g < L; g += P) transpose_parts<T>(v + g);
    FW_UNROLL(4)
    for (size_t c = 0; c < P; ++c) {
        if constexpr (G > 1) {
            V part[G];
            FW_UNROLL(4)
            for (size_t g = 0; g < G; ++g) part[g] = v[g * P + c];
            transpose_between_parts<T>(part);
            FW_UNROLL(4)
            for (size_t g = 0; g < G; ++g) v[g * P + c] = part[g];
        }
    }
}

#if FW_BYTES == 64
// 16 rows of 8 columns. Each vector holds two rows, i and i + 4: i is from 0 to 3 in the first four vectors, from 8 to 11 in the
// others.
inline void transpose_eights(Vec<float> *v) {
    using V = Vec<float>;
    transpose_parts<float>(v);
    transpose_parts<float>(v + 4);
    FW_UNROLL(4)
    for (size_t c = 0; c < 4; ++c) {
        const V even = alternate_parts<float, false>(v[c], v[c + 4]);
        v[c + 4] = alternate_parts<float, true>(v[c], v[c + 4]);
        v[c] = even;
    }
}
#endif
