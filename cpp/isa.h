// The table of kernels that each instruction set provides, and the choice among them at run time.
#pragma once

#include <cstddef>

#include "components.h"
#include "segments.h"
#include "sparse_rows.h"
#include "targets.h"

namespace fw {

using std::ptrdiff_t;
using std::size_t;

// The k-means kernels for rows of one dtype.
template <class T> struct RowKernels {
    AssignCounts (*nearest)(const T *x, size_t n, const Targets<T> &t, int *labels, T *near, T *next, Changes changes,
                            const FixedSums *sums, Int16Rows kept, const Residuals *residuals, bool fresh);
    AssignCounts (*nearest_bounded)(const T *x, size_t n, const Targets<T> &t, int *labels, const Bounds<T> &b, Changes changes,
                                    const FixedSums *sums);
    bool (*move_rows)(const T *x, const double *w, size_t n, const Targets<T> &t, double weight_scale, const int *which,
                      size_t count, const int *before, const int *after, const int *slots, size_t m, Grid grid,
                      double *high, double *low, double *weight, double *missing);
    bool (*move_rows_fixed)(const T *x, size_t n, const Targets<T> &t, const int *which, size_t count, const int *before,
                            const int *after, const FixedSums &to);
    void (*residuals)(const T *x, const double *w, size_t n, const Targets<T> &t, const int *labels, double *total,
                      double *each, double *counts);
    double (*update_closest)(const T *x, const double *w, size_t n, const Targets<T> &t, size_t taken, T *closest,
                             double *potential);
};

template <class T>
using DistanceSums = void (*)(const double *points, size_t m, const T *x, const double *w, const int *labels, size_t n,
                              size_t d, double scale, size_t k, double *out, double *compared);

// How targets are packed (pack_targets.h).
template <class T> struct TargetKernels {
    double (*shift)(const T *from, size_t d, double scale, const double *pivot, double *wide, T *shifted);
    void (*pack)(const T *targets, const int *ids, const unsigned char *widths, size_t panels, size_t d, T *to);
};

// What rounding makes of a target: the sum of absolute values, the squared error and the squared length.
struct RoundedTarget {
    double sum, error, square;
};

struct Kernels {
    const char *name;
    size_t panel_targets;  // number of targets in a full panel (panel.h)
    RowKernels<float> f32;
    RowKernels<double> f64;
    RowKernels<float> observed_f32;  // the same for rows with missing cells (observed.h)
    RowKernels<double> observed_f64;
    TargetKernels<float> targets_f32;
    TargetKernels<double> targets_f64;
    void (*target_size)(const float *target, size_t d, double &sum, double &largest);
    RoundedTarget (*round_target)(const float *target, size_t d, double factor, int *to);
    void (*pack_pairs)(const int *targets, const int *ids, const unsigned char *widths, size_t panels, size_t pairs, int *to);
    // These return the total weight, and write the mean in two parts (2 x d) and the upper triangle of the scatter matrix
    // (of d x d numbers, or, if it is packed, of no others) or the sums of squares (d).
    double (*scatter_f32)(const float *x, const double *w, size_t n, size_t d, double *mean, double *out,
                          bool packed);
    double (*scatter_f64)(const double *x, const double *w, size_t n, size_t d, double *mean, double *out,
                          bool packed);
    void (*merge_moments)(const double *left, const double *left_scatter, double left_weight, const double *right,
                          const double *right_scatter, double right_weight, size_t d, double *centre,
                          double *scatter, bool packed);
    double (*columns_f32)(const float *x, const double *w, size_t n, size_t d, double *mean, double *out, float *low, float *high);
    double (*columns_f64)(const double *x, const double *w, size_t n, size_t d, double *mean, double *out, double *low,
                          double *high);
    ptrdiff_t (*finite_f32)(const float *x, size_t n);
    ptrdiff_t (*finite_f64)(const double *x, size_t n);
    void (*centred_f32)(const float *x, const double *c, const double *s, size_t n, size_t d, float *out);
    void (*centred_f64)(const double *x, const double *c, const double *s, size_t n, size_t d, double *out);
    SparseTable<float> sparse_f32;
    SparseTable<double> sparse_f64;
    MixtureKernels<float> mixture_f32;
    MixtureKernels<double> mixture_f64;
    void (*similarity)(double *x, size_t n);
    DistanceSums<float> distance_sums_f32, observed_distance_sums_f32;
    DistanceSums<double> distance_sums_f64, observed_distance_sums_f64;
    int64_t (*assign_segments)(const Segments &s, size_t first, size_t last, void *memory);
};

namespace baseline { extern const Kernels kernels; }
namespace avx2 { extern const Kernels kernels; }
namespace avx512 { extern const Kernels kernels; }

// The best table that this processor supports, or a lesser one if FOLDWISE_ISA asks for it.
const Kernels &active_kernels();

template <class T> const TargetKernels<T> &target_kernels();
template <> inline const TargetKernels<float> &target_kernels<float>() { return active_kernels().targets_f32; }
template <> inline const TargetKernels<double> &target_kernels<double>() { return active_kernels().targets_f64; }

// How the active kernels compare rows of d columns with k targets as integers of 16 bits (nearest_int16.h,
// nearest_few_int16.h), if that takes less time; `kept`: if rows are such integers already.
Int16Layout quick_int16(size_t k, size_t d, bool kept);

// At least `bytes` of memory, aligned to 64 bytes. It belongs to the calling thread and is valid until that thread's
// next call. Kernels take all of their working memory from here: for small blocks, fresh pages would cost as much as
// the arithmetic.
void *scratch(size_t bytes);

// Lets one thread at a time write to sums; null lets everyone. Kernels hold it by `Guarded`.
class SumsGuard;
void hold(SumsGuard *guard);
void release(SumsGuard *guard);
class Guarded {
    SumsGuard *guard_;

public:
    explicit Guarded(SumsGuard *guard) : guard_(guard) { hold(guard_); }
    ~Guarded() { release(guard_); }
    Guarded(const Guarded &) = delete;
};

// Frees the calling thread's scratch memory if it has become large.
void trim_scratch();

}  // namespace fw
