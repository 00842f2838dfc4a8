// The memory of packed targets. They are packed anew for every pass by one thread while the others wait, so it must not take
// long: memory is not cleared before it is written, and loops are such that compilers can vectorise them.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "int16_storage.h"
#include "isa.h"

namespace fw {

// Targets by group and the ends of the groups; null if there is one group, in order.
struct GivenGroups {
    const int *order, *ends;
    size_t groups;
};

// Owns the memory that a Targets points to.
template <class T> class TargetStorage {
    std::unique_ptr<T[]> shifted, packed, by_slot;
    std::unique_ptr<double[]> exact;
    std::vector<T> pivot, minus_half, half_squares;
    std::vector<double> wide_pivot;
    std::vector<int> ids, ends, group_panels;
    std::vector<unsigned char> widths;
    Int16Storage int16;

public:
    Targets<T> view{};

    void fill(const T *centres, size_t k, size_t d, const double *given_pivot, double scale, GivenGroups given, bool observed,
              double row_length, bool kept) {
        const TargetKernels<T> &kernels = target_kernels<T>();
        wide_pivot.resize(d);
        pivot.assign(d + 16, T(0));  // vectors are loaded past its end
        for (size_t j = 0; j < d; ++j) {
            wide_pivot[j] = given_pivot[j] * scale;
            pivot[j] = T(wide_pivot[j]);
        }
        shifted.reset(new T[k * d]);
        exact.reset(new double[k * d]);
        packed.reset(new T[k * d]);
        minus_half.resize(k);
        std::vector<double> squares(k);
        double longest = 0;
        for (size_t c = 0; c < k; ++c) {
            squares[c] = kernels.shift(centres + c * d, d, scale, wide_pivot.data(), exact.get() + c * d, shifted.get() + c * d);
            longest = squares[c] > longest ? squares[c] : longest;
        }
        ids.resize(k);
        for (size_t s = 0; s < k; ++s) {
            ids[s] = given.order ? given.order[s] : int(s);
            minus_half[s] = T(-squares[size_t(ids[s])] / 2);
        }
        if (given.ends)
            ends.assign(given.ends, given.ends + given.groups);
        else
            ends.assign(1, int(k));
        const size_t most = active_kernels().panel_targets;
        size_t slot = 0;
        for (const int end : ends) {
            const size_t count = size_t(end) - slot, panels = (count + most - 1) / most;
            group_panels.push_back(int(panels));
            for (size_t p = 0; p < panels; ++p) {
                const size_t width = count / panels + (p < count % panels);
                widths.push_back((unsigned char)width);
                slot += width;
            }
        }
        kernels.pack(shifted.get(), ids.data(), widths.data(), widths.size(), d, packed.get());
        const size_t padded = observed ? (k + 15) / 16 * 16 : 0;
        half_squares.assign(padded * d, T(0));
        for (size_t s = 0; observed && s < k; ++s)
            for (size_t j = 0; j < d; ++j) {
                const double y = shifted[size_t(ids[s]) * d + j];
                half_squares[j * padded + s] = T(y * y / 2);
            }
        const size_t stride = (d + 15) / 16 * 16;
        T *lined = nullptr;
        if (!observed && (ends.size() > 1 || k <= few_most)) {
            by_slot.reset(new T[k * stride + 16]);
            lined = by_slot.get() + (64 - uintptr_t(by_slot.get()) % 64) % 64 / sizeof(T);
            for (size_t s = 0; s < k; ++s) {
                T *to = lined + s * stride;
                std::memcpy(to, shifted.get() + size_t(ids[s]) * d, d * sizeof(T));
                for (size_t j = d; j < stride; ++j) to[j] = T(0);
            }
        }
        const Int16Targets *rounded = nullptr;
        if constexpr (sizeof(T) == sizeof(float))
            if (row_length > 0 && !observed && !given.order && Int16Storage::suits(scale))
                rounded = int16.fill(shifted.get(), squares, k, d, scale, pivot.data(), widths, row_length, quick_int16(k, d, kept));
        view = {k, d, T(scale), pivot.data(), shifted.get(), exact.get(), packed.get(), minus_half.data(),
                ids.data(), !given.order, ends.size(), ends.data(), group_panels.data(), widths.data(),
                std::sqrt(longest) * (1 + 1e-6), scale, wide_pivot.data(), padded, half_squares.data(), lined, stride, rounded};
    }
};

}  // namespace fw
