// Sparse rows (CSR) and the points that they are compared with. Shared by all instruction sets, so it contains no
// code.
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

// A sum in two parts, about 100 bits; `exact` if nothing was rounded.
struct TwoPartSum {
    double high, low;
    bool exact;
};

// Kernels work on y = x * scale. There is no pivot, since it would fill in the zeros.
template <class T> struct SparseTargets {
    std::size_t k, d, stride;
    double scale;
    const T *points;  // k x d, as given
    // d x stride: times scale, transposed, zeros beyond k. In float32, since memory bandwidth limits the speed; ties that
    // this leaves open are resolved with `points`.
    const float *transposed;
    const TwoPartSum *squares;  // k: squared lengths
    const double *half;         // stride: half of the squared lengths; infinite beyond k
    const int *first;           // k: the lowest-numbered target that is equal to it
    double longest;             // the largest length
};

template <class T, class I> struct SparseKernels {
    AssignCounts (*nearest)(const SparseRows<T, I> &x, const SparseTargets<T> &t, int *labels, T *near, T *next);
    void (*move_rows)(const SparseRows<T, I> &x, const double *w, double scale, size_t d, double weight_scale,
                      const int *before, const int *after, const int *slots, size_t m, const Grid &grid, double *high,
                      double *low, double *weight);
    void (*residuals)(const SparseRows<T, I> &x, const double *w, const SparseTargets<T> &t, const int *labels,
                      double *total, double *each);
    double (*update_closest)(const SparseRows<T, I> &x, const double *w, const SparseTargets<T> &t, size_t taken, T *closest,
                             double *potential);
    void (*distances)(const SparseRows<T, I> &x, const SparseTargets<T> &t, T *out);
};

template <class T> struct SparseTable {
    SparseKernels<T, std::int32_t> narrow;
    SparseKernels<T, std::int64_t> wide;
    void (*prepare_targets)(const T *points, size_t k, size_t d, double scale, size_t stride, float *transposed,
                            TwoPartSum *squares);
    // Scales rows to length 1; rows of zeros are copied, and their number is returned. Without `starts`, every row
    // has d values.
    size_t (*unit_rows)(const T *x, const std::int64_t *starts, size_t n, size_t d, T *out);
    void (*update_centres)(const double *high, const double *low, const double *weights, size_t k, size_t d, const double *pivot,
                           double scale, const T *old, T *now, bool given, double *figures, size_t from, size_t end);
};

}  // namespace fw
