// Targets as integers of 16 bits (Int16Targets, targets.h).
//
// With Q the factor of the rows and s that of the targets, a score times Q s is a sum of products of integers plus three
// errors: that of the row times the target, that of the target times the row, and the rounding of the start. So much must the
// best lead for the label to be certain; a row with a smaller lead is compared once more, in floating point.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "isa.h"

namespace fw {

class Int16Storage {
    std::vector<int> in_order, packed, start;
    std::vector<float> row_pivot;
    Int16Targets view{};

    static constexpr double most = 0x1p31 - 0x1p12;  // no score exceeds it, nor does a part of its sum
    static constexpr double row_error = 0.502;  // of a value of a row: rounded as float32 first, of at most 2^14, then to an integer
    static constexpr double target_error = 0.002;  // the shifted targets are float32 numbers, of at most 2^15 here
    static constexpr double long_rows = 2;  // rows longer than typical ones by more than this are always compared once more

    struct Sizes {
        double sum = 0, largest = 0, square = 0;  // the largest of all targets: sum of absolute values, absolute value, squared length
    };

    // The factor of the rows, a power of two: it causes no error. It depends on nothing but the rows, so that they can be kept
    // as integers while the targets move. The error of scores, |target| sqrt(d) / row + 0.6 |row| sqrt(d) / (factor of targets), is
    // smallest about here if targets are no longer than rows.
    static double row_factor(double row_length) {
        const double best = std::sqrt(most / 1.3) / row_length;
        return std::fmin(std::fmax(std::exp2(std::rint(std::log2(best))), 0x1p6), 0x1p14);
    }
    // The targets take what the limit of scores leaves.
    static double target_factor(const Sizes &of, double row, double row_length) {
        const double score = long_rows * row_length * std::sqrt(of.square) + of.square / 2;
        return std::fmin(most / (row * score), 32766 / of.largest);
    }

    static void include(RoundedTarget &all, const RoundedTarget &one) {  // the largest of all
        all.sum = one.sum > all.sum ? one.sum : all.sum;
        all.error = one.error > all.error ? one.error : all.error;
        all.square = one.square > all.square ? one.square : all.square;
    }
    // Where packing two vectors of 16 integers puts a pair of columns.
    static size_t packed_place(size_t p) { return p / 16 * 16 + p % 8 / 2 * 4 + p % 16 / 8 * 2 + p % 2; }

public:
    // Whether rows times this power of two can be compared in this way.
    static bool suits(double scale) { return scale < 0x1p100 && scale > 0x1p-100; }

    // `squares` are the squared lengths of the targets, `widths` those of the panels. Null if it cannot be done.
    const Int16Targets *fill(const float *shifted, const std::vector<double> &squares, size_t k, size_t d, double scale,
                             const float *pivot, const std::vector<unsigned char> &widths, double row_length, Int16Layout layout) {
        if (layout == Int16Layout::none) return nullptr;
        const Kernels &kernels = active_kernels();
        Sizes sizes;
        for (size_t c = 0; c < k; ++c) {
            double sum, largest;
            kernels.target_size(shifted + c * d, d, sum, largest);
            if (!(sum < 0x1p20)) return nullptr;  // nor for NaN
            sizes.sum = sum > sizes.sum ? sum : sizes.sum;
            sizes.largest = largest > sizes.largest ? largest : sizes.largest;
            sizes.square = squares[c] > sizes.square ? squares[c] : sizes.square;
        }
        if (!(sizes.sum > 0x1p-60)) return nullptr;
        const double by_row = row_factor(row_length), by_target = target_factor(sizes, by_row, row_length);
        if (!(by_target > 1)) return nullptr;
        const size_t pairs = (d + 1) / 2;
        const size_t stride = layout == Int16Layout::columns ? (d + 31) / 32 * 16 : pairs;
        packed.assign(k * stride + 16, 0);
        int *to = packed.data() + (64 - uintptr_t(packed.data()) % 64) % 64 / sizeof(int);
        start.resize(k);
        for (size_t c = 0; c < k; ++c) start[c] = int(std::lrint(-squares[c] / 2 * by_row * by_target));
        RoundedTarget all{};
        const bool direct = layout == Int16Layout::rows;
        if (!direct) in_order.resize(k * pairs);
        for (size_t c = 0; c < k; ++c)
            include(all, kernels.round_target(shifted + c * d, d, by_target, (direct ? to : in_order.data()) + c * pairs));
        if (layout == Int16Layout::panels) {
            kernels.pack_pairs(in_order.data(), nullptr, widths.data(), widths.size(), pairs, to);
        } else if (!direct) {
            for (size_t c = 0; c < k; ++c)
                for (size_t p = 0; p < pairs; ++p) to[c * stride + packed_place(p)] = in_order[c * pairs + p];
        }
        row_pivot.assign(d + 32, 0.0f);
        for (size_t j = 0; j < d; ++j) row_pivot[j] = float(pivot[j] * by_row);
        const double root = std::sqrt(double(d)), half = sizes.square / 2 * by_row * by_target;
        const double per_length = 2 * (std::sqrt(all.error) + target_error * root);
        // Both scores of a comparison may be off: by their tags, by their starts, and by the rounding of squared lengths.
        const double flat = row_error * (2 * all.sum + per_length * root) + 600 + half * 0x1p-20;
        const double longest = (most - half) / (std::sqrt(all.square) + 1);
        const double typical = row_length * by_row;  // no length exceeds (square / typical + typical) / 2
        view = {pairs, to, start.data(), float(scale * by_row), row_pivot.data(), float(per_length * 1.001),
                float(flat * 1.001), float(longest * 0.9995), float(per_length / (2 * typical) * 1.002),
                float((per_length * typical / 2 + flat) * 1.002), float(longest * longest * 0.998), layout, stride};
        return &view;
    }
};

}  // namespace fw
