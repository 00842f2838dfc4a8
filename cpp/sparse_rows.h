// Rows of which only some values are stored (CSR), and the points they are compared with. Shared by all instruction
// sets, so there is no code here.
#pragma once

#include <cstddef>
#include <cstdint>

#include "targets.h"

namespace fw {

struct Grid;

template <class T, class I> struct SparseRows {
    std::size_t n;
    const T *values;
    const I *columns;  // of each value
    const I *starts;   // n + 1: where the values of each row begin
};

// A sum in two parts, some 100 bits; `exact` if nothing at all was rounded.
struct Wide {
    double high, low;
    bool exact;
};

// Rows are looked at as y = x * scale: a pivot would fill in their zeros.
template <class T> struct SparseTargets {
    std::size_t k, d, stride;
    double scale;
    const T *points;      // k x d, as given
    const float *turned;  // d x stride: times scale, column by column; zeros beyond k. In float32, since the speed is
                          // that of the memory behind it; what it leaves in doubt is settled from `points`
    const Wide *squares;  // k: squared lengths
    const double *half;   // stride: half of them; infinite beyond k
    const int *first;     // k: the lowest number of an equal target
    double longest;       // the greatest length
};

template <class T, class I> struct SparseKernels {
    Assigned (*nearest)(const SparseRows<T, I> &x, const SparseTargets<T> &t, int *labels, T *near, T *next);
    void (*transfer)(const SparseRows<T, I> &x, const double *w, double scale, size_t d, double weight_scale,
                     const int *before, const int *after, const int *slots, size_t m, const Grid &grid, double *high,
                     double *low, double *weight);
    void (*residuals)(const SparseRows<T, I> &x, const double *w, const SparseTargets<T> &t, const int *labels,
                      double *total, double *each);
    double (*closer)(const SparseRows<T, I> &x, const double *w, const SparseTargets<T> &t, size_t taken, T *closest,
                     double *potential);
    void (*distances)(const SparseRows<T, I> &x, const SparseTargets<T> &t, T *out);
};

template <class T> struct SparseTable {
    SparseKernels<T, std::int32_t> narrow;
    SparseKernels<T, std::int64_t> wide;
    void (*prepare)(const T *points, size_t k, size_t d, double scale, size_t stride, float *turned, Wide *squares);
    // Rows of length 1, or of zeros as they were; returns how many of those. Without `starts` rows have d values each.
    size_t (*unit)(const T *x, const std::int64_t *starts, size_t n, size_t d, T *out);
    void (*finish)(const double *high, const double *low, const double *weights, size_t k, size_t d, const double *pivot,
                   double scale, const T *old, T *now, bool given, double *figures);
};

}  // namespace fw
