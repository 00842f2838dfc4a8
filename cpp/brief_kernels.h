// What brief_starts.cpp does with a block of rows at a time, in vectors. None of it fuses products, so all processors have the
// same bits.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>

#if defined(FW_X86) && defined(__GNUC__) && !defined(__clang__) && defined(__GLIBC__)
#define FW_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#define FW_HAS_CLONES
#else
#define FW_CLONES
#endif

namespace {

using std::size_t;

typedef float Lanes __attribute__((vector_size(64)));
typedef float Unaligned __attribute__((vector_size(64), aligned(4), may_alias));
constexpr size_t kLanes = 16, kGroups = 2, kBlock = kLanes * kGroups;  // rows that are compared together

#define loaded(from) (*reinterpret_cast<const Unaligned *>(from))

// x.p - p.p / 2 of a block of rows, stored by columns, and `m` of the points: out[j * kBlock + row].
template <size_t m>
__attribute__((always_inline)) inline void tile(const float *block, size_t d, const float *points, const float *half, float *out) {
    Lanes sum[m][kGroups];
    for (size_t j = 0; j < m; ++j)
        for (size_t g = 0; g < kGroups; ++g) sum[j][g] = -half[j] - Lanes{};
    for (size_t c = 0; c < d; ++c) {
        Lanes x[kGroups];
        for (size_t g = 0; g < kGroups; ++g) x[g] = loaded(block + c * kBlock + g * kLanes);
        for (size_t j = 0; j < m; ++j)
            for (size_t g = 0; g < kGroups; ++g) sum[j][g] += x[g] * points[j * d + c];
    }
    std::memcpy(out, sum, sizeof sum);
}

// How many points are compared together: as many as there are registers for their sums. Each sum is by itself, so that the
// number changes no bits.
inline size_t widest_tile() {
#ifdef FW_HAS_CLONES
    static const size_t widest = __builtin_cpu_supports("avx512f") ? 6 : 3;
    return widest;
#else
    return 3;
#endif
}

FW_CLONES void products(const float *block, size_t d, const float *points, const float *half, size_t count, float *out) {
    const size_t widest = widest_tile();
    for (size_t j = 0, m; j < count; j += m) {
        const size_t left = count - j, tiles = (left + widest - 1) / widest;
        m = (left + tiles - 1) / tiles;  // alike: a tile of one point would wait for its sums
        const float *point = points + j * d, *halved = half + j;
        float *to = out + j * kBlock;
        switch (m) {
        case 6: tile<6>(block, d, point, halved, to); break;
        case 5: tile<5>(block, d, point, halved, to); break;
        case 4: tile<4>(block, d, point, halved, to); break;
        case 3: tile<3>(block, d, point, halved, to); break;
        case 2: tile<2>(block, d, point, halved, to); break;
        default: tile<1>(block, d, point, halved, to);
        }
    }
}

// The largest of `k` products of each row of a block, and whose it is.
FW_CLONES void largest(const float *from, size_t k, float *best, float *label) {
    for (size_t g = 0; g < kGroups; ++g) {
        Lanes most = loaded(from + g * kLanes), name = {};
        for (size_t j = 1; j < k; ++j) {
            const Lanes value = loaded(from + j * kBlock + g * kLanes);
            const auto more = value > most;
            most = more ? value : most;
            name = more ? float(j) - Lanes{} : name;
        }
        std::memcpy(best + g * kLanes, &most, sizeof most);
        std::memcpy(label + g * kLanes, &name, sizeof name);
    }
}

// The smaller of a known squared distance and that to a new point, for the rows of a block; returns their weighted sum.
FW_CLONES double closer(const float *product, const float *square, const float *known, const float *weight, float *out) {
    Lanes sum = {};
    for (size_t g = 0; g < kGroups; ++g) {
        const size_t at = g * kLanes;
        Lanes now = loaded(square + at) - 2.0f * loaded(product + at);
        now = now > 0 ? now : Lanes{};
        const Lanes before = loaded(known + at);
        now = now < before ? now : before;
        std::memcpy(out + at, &now, sizeof now);
        sum += loaded(weight + at) * now;
    }
    double total = 0;
    for (size_t l = 0; l < kLanes; ++l) total += double(sum[l]);
    return total;
}

struct Glance {
    float farthest;
    bool moved;  // whether the label of some row is not the known one
};

// The squared distances of a block of rows from their centres. What fills the last block may look far or moved.
FW_CLONES Glance distances(const float *product, const float *square, const float *known, const float *label, float *out) {
    Lanes farthest = {};
    decltype(farthest > farthest) moved = {};
    for (size_t g = 0; g < kGroups; ++g) {
        const size_t at = g * kLanes;
        Lanes away = loaded(square + at) - 2.0f * loaded(product + at);
        away = away < 0 ? Lanes{} : away;
        std::memcpy(out + at, &away, sizeof away);
        farthest = away > farthest ? away : farthest;
        moved |= loaded(known + at) != loaded(label + at);
    }
    Glance seen = {0.0f, false};
    for (size_t l = 0; l < kLanes; ++l) {
        seen.farthest = std::max(seen.farthest, farthest[l]);
        seen.moved |= moved[l] != 0;
    }
    return seen;
}

FW_CLONES void add_row(const float *row, size_t d, double w, double *sum) {
    for (size_t c = 0; c < d; ++c) sum[c] += w * double(row[c]);
}

}  // namespace
