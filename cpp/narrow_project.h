// T = Z Q in float32 for few columns of Q. Columns of Z are vectors: no lanes are idle where Q has fewer columns than a vector has
// lanes, and less than half a load goes with each product. Every sum has sixteen parts with AVX2 as with AVX-512, and so the same bits;
// shorter vectors do without it.
#pragma once

#include "transpose.h"

constexpr size_t narrow_most = 12;    // columns of Q: of more, whole vectors are as quick (project_tile)
constexpr size_t unit_lanes = 16;     // columns of Z that are multiplied at a time
constexpr size_t narrow_columns = 4;  // of Q, whose sums end up side by side
constexpr size_t unit_parts = unit_lanes / lanes<float>;
constexpr size_t narrow_rows = FW_BYTES == 64 ? 6 : 1;  // that go with them: 24 of 32 registers are sums, or 8 of 16
constexpr size_t narrow_bytes = 32 << 10;               // part of Q that stays in L1 while all rows of a strip pass by

// How Q is cut: its columns into groups of four, its rows into units, and these into stretches.
struct NarrowCut {
    size_t units, groups, stretch;
    NarrowCut(size_t d, size_t b) : units((d + unit_lanes - 1) / unit_lanes), groups((b + narrow_columns - 1) / narrow_columns) {
        const size_t most = narrow_bytes / (groups * narrow_columns * unit_lanes * sizeof(float));
        const size_t parts = (units + most - 1) / most;
        stretch = round_up((units + parts - 1) / parts, 4);  // whole panels
    }
    size_t size() const { return units * unit_lanes * groups * narrow_columns; }
};

// Q times the factors (null: 1) as [stretch][group][unit][column][lane], filled up with zeros.
inline void pack_narrow(const double *basis, const double *factor, size_t d, size_t b, const NarrowCut &cut, float *to) {
    for (size_t start = 0; start < cut.units; start += cut.stretch)
        for (size_t c = 0; c < b; c += narrow_columns)
            for (size_t u = start; u < least(start + cut.stretch, cut.units); ++u, to += narrow_columns * unit_lanes) {
                const size_t first = u * unit_lanes, here = least(unit_lanes, d - first), count = least(narrow_columns, b - c);
                for (size_t i = 0; i < narrow_columns * unit_lanes; ++i) to[i] = 0;
                for (size_t i = 0; i < here; ++i) {
                    const double times = factor ? factor[first + i] : 1.0, *__restrict from = basis + (first + i) * b + c;
                    for (size_t k = 0; k < count; ++k) to[k * unit_lanes + i] = float(from[k] * times);
                }
            }
}

using FourSums = typename VecOf<float, 16>::type;

template <size_t half, class V, size_t... lane> inline auto half_of(V v, std::index_sequence<lane...>) {
    return __builtin_shufflevector(v, v, int(half * sizeof...(lane) + lane)...);
}

// The sum of the parts of 16 bytes: of the first and the third, the second and the fourth, and then of these.
template <class V> inline FourSums add_parts(V v) {
    if constexpr (sizeof(V) == sizeof(FourSums)) {
        return v;
    } else {
        constexpr auto lane = std::make_index_sequence<sizeof(V) / sizeof(float) / 2>{};
        return add_parts(half_of<0>(v, lane) + half_of<1>(v, lane));
    }
}

// The sums of four columns, side by side.
inline FourSums add_lanes(const Vec<float> (&sum)[narrow_columns][unit_parts]) {
    Vec<float> total[unit_parts];
    FW_UNROLL(4)
    for (size_t p = 0; p < unit_parts; ++p) {
        Vec<float> v[narrow_columns] = {sum[0][p], sum[1][p], sum[2][p], sum[3][p]};
        transpose_parts<float>(v);
        total[p] = (v[0] + v[2]) + (v[1] + v[3]);
    }
    if constexpr (unit_parts == 4) return add_parts((total[0] + total[2]) + (total[1] + total[3]));
    else if constexpr (unit_parts == 2) return add_parts(total[0] + total[1]);
    else return add_parts(total[0]);
}

// Rows of Z, packed or as they are: from row to row, units of a panel, and from its end to the next one. `next` are the rows that
// will be read soon, one after the other.
struct NarrowRows {
    const float *first;
    size_t step, panel_units, apart;
    const float *next;
    size_t next_step;
};

// Of which units a line of the rows that will be read soon is fetched.
struct NarrowFetch {
    size_t unit, step;
};

// codes[row][c] += row times column c of Q, for four columns and the units from `start` on, of which there are `units`. It is a
// function of its own: within another one, the compiler would keep the sums in memory.
__attribute__((noinline)) inline void narrow_tile(const NarrowRows &z, size_t row, size_t start, const float *basis,
                                                  size_t units, NarrowFetch fetch, float *codes, size_t stride) {
    using V = Vec<float>;
    constexpr size_t L = lanes<float>, rows = narrow_rows;
    V sum[rows][narrow_columns][unit_parts] = {};
    const size_t step = z.step;
    const float *from = z.first + row * step + start / z.panel_units * (z.panel_units * unit_lanes + z.apart);
    const float *next = z.next + row * z.next_step + start * unit_lanes;
    for (size_t u = 0; u < units; from += z.apart)
        for (size_t end = least(units, u + z.panel_units); u < end; ++u, from += unit_lanes) {
            if (u == fetch.unit) {
                FW_UNROLL(8)
                for (size_t r = 0; r < rows; ++r) __builtin_prefetch(next + u * unit_lanes + r * z.next_step, 0, 2);
                fetch.unit += fetch.step;
            }
            FW_UNROLL(4)
            for (size_t p = 0; p < unit_parts; ++p) {
                V right[narrow_columns];
                FW_UNROLL(4)
                for (size_t c = 0; c < narrow_columns; ++c) right[c] = load<V>(basis + c * unit_lanes + p * L);
                FW_UNROLL(8)
                for (size_t r = 0; r < rows; ++r) {
                    const V left = load<V>(from + r * step + p * L);
                    FW_UNROLL(4)
                    for (size_t c = 0; c < narrow_columns; ++c) sum[r][c][p] += left * right[c];
                }
            }
            basis += narrow_columns * unit_lanes;
        }
    FW_UNROLL(8)
    for (size_t r = 0; r < rows; ++r)
        store(codes + r * stride, load<FourSums>(codes + r * stride) + add_lanes(sum[r]));
}

// codes += Z Q for `strip` rows, a multiple of those of a tile. With `fetch`, every other line of the rows that come next is fetched.
inline void narrow_project(const NarrowRows &z, size_t strip, const NarrowCut &cut, const float *basis, bool fetch, float *codes,
                           size_t stride) {
    for (size_t start = 0; start < cut.units; start += cut.stretch) {
        const size_t units = least(cut.stretch, cut.units - start), size = units * narrow_columns * unit_lanes;
        for (size_t row = 0; row < strip; row += narrow_rows)
            for (size_t g = 0; g < cut.groups; ++g) {
                const NarrowFetch lines{fetch ? 2 * g : units, 2 * cut.groups};
                narrow_tile(z, row, start, basis + g * size, units, lines, codes + row * stride + g * narrow_columns, stride);
            }
        basis += cut.groups * size;
    }
}
