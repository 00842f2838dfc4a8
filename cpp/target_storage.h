// The memory of packed targets. They are packed anew for every pass while threads wait for it, so it must not take long: threads
// that are awake join in, memory is not cleared before it is written, and loops are such that compilers can vectorise them.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "crew.h"
#include "int16_storage.h"
#include "isa.h"
#include "spare_memory.h"

namespace fw {

// Targets by group and the ends of the groups; null if there is one group, in order.
struct GivenGroups {
    const int *order, *ends;
    size_t groups;
};

// Owns the memory that a Targets points to.
template <class T> class TargetStorage {
    SpareMemory memory;
    std::vector<T> pivot, minus_half, half_squares;
    std::vector<double> wide_pivot;
    std::vector<int> ids, ends, group_panels;
    std::vector<unsigned char> widths;
    Int16Storage int16;

public:
    Targets<T> view{};

    void fill(const T *centres, size_t k, size_t d, const double *given_pivot, double scale, GivenGroups given, bool observed,
              double row_length, bool kept, size_t helpers) {
        const TargetKernels<T> &kernels = target_kernels<T>();
        wide_pivot.resize(d);
        pivot.assign(d + 16, T(0));  // vectors are loaded past its end
        for (size_t j = 0; j < d; ++j) {
            wide_pivot[j] = given_pivot[j] * scale;
            pivot[j] = T(wide_pivot[j]);
        }
        ids.resize(k);
        for (size_t s = 0; s < k; ++s) ids[s] = given.order ? given.order[s] : int(s);
        if (given.ends)
            ends.assign(given.ends, given.ends + given.groups);
        else
            ends.assign(1, int(k));
        const size_t most = active_kernels().panel_targets;
        std::vector<size_t> slots;  // by panel: its first
        size_t slot = 0;
        for (const int end : ends) {
            const size_t count = size_t(end) - slot, panels = (count + most - 1) / most;
            group_panels.push_back(int(panels));
            for (size_t p = 0; p < panels; ++p) {
                const size_t width = count / panels + (p < count % panels);
                widths.push_back((unsigned char)width);
                slots.push_back(slot);
                slot += width;
            }
        }
        slots.push_back(slot);
        const bool lines = !observed && (ends.size() > 1 || k <= few_most);
        const size_t stride = (d + 15) / 16 * 16;
        double *exact = (double *)memory.take(k * d * sizeof(double) + (2 * k * d + (lines ? k * stride : 0) + 48) * sizeof(T));
        T *const shifted = (T *)(exact + k * d), *const packed = shifted + k * d;
        T *const lined = lines ? packed + k * d + (64 - uintptr_t(packed + k * d) % 64) % 64 / sizeof(T) : nullptr;
        std::vector<double> squares(k);
        // Each thread packs what it has shifted itself: it is in its own cache.
        const auto pack = [&](size_t panel, size_t end) {
            for (size_t s = slots[panel]; s < slots[end]; ++s) {
                const size_t c = size_t(ids[s]);
                squares[c] = kernels.shift(centres + c * d, d, scale, wide_pivot.data(), exact + c * d, shifted + c * d);
                if (!lined) continue;
                T *to = lined + s * stride;
                std::memcpy(to, shifted + c * d, d * sizeof(T));
                for (size_t j = d; j < stride; ++j) to[j] = T(0);
            }
            kernels.pack(shifted, ids.data() + slots[panel], widths.data() + panel, end - panel, d, packed + slots[panel] * d);
        };
        crew.each(k * d < shared_values ? 0 : helpers, widths.size(), rows_at_a_time(d * most), pack);
        double longest = 0;
        minus_half.resize(k);
        for (size_t s = 0; s < k; ++s) {
            const double square = squares[size_t(ids[s])];
            minus_half[s] = T(-square / 2);
            longest = square > longest ? square : longest;
        }
        const size_t padded = observed ? (k + 15) / 16 * 16 : 0;
        half_squares.assign(padded * d, T(0));
        for (size_t s = 0; observed && s < k; ++s)
            for (size_t j = 0; j < d; ++j) {
                const double y = shifted[size_t(ids[s]) * d + j];
                half_squares[j * padded + s] = T(y * y / 2);
            }
        const Int16Targets *rounded = nullptr;
        if constexpr (sizeof(T) == sizeof(float))
            if (row_length > 0 && !observed && !given.order && Int16Storage::suits(scale))
                rounded = int16.fill(shifted, squares, k, d, scale, pivot.data(), widths, row_length, quick_int16(k, d, kept));
        view = {k, d, T(scale), pivot.data(), shifted, exact, packed, minus_half.data(),
                ids.data(), !given.order, ends.size(), ends.data(), group_panels.data(), widths.data(),
                std::sqrt(longest) * (1 + 1e-6), scale, wide_pivot.data(), padded, half_squares.data(), lined, stride, rounded};
    }
};

}  // namespace fw
