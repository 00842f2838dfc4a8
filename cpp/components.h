// Gaussian components that rows are compared with, packed for the kernels of one instruction set. Shared by all of
// them, so it contains no code.
#pragma once

#include <cstddef>

namespace fw {

enum class Shape : int { full, tied, diag, spherical };
enum class Squares : int { full, tied, diag, none };

// Kernels work on y = x - pivot. T is the type of the arithmetic: float64, or float32 for float32 rows where that is
// accurate enough.
template <class T> struct Components {
    std::size_t k, d;
    Shape shape;
    Squares squares;
    std::size_t columns;        // d plus padding: the row length of `means`
    const double *pivot;        // d
    const T *means;             // k x columns: the means as y, rounded
    const double *rounded;      // k x d: the rounding errors of `means`
    const double *log_weights;  // k
    const T *factors;           // full: k packed triangles; tied: one (density.h)
    const T *starts;            // full: k x d: the effect of that rounding on U'(y - mean)
    const T *near;              // others: means (tied: whitened) as [feature][component], by groups of components
    const T *scales;            // diag: inverse standard deviations in the same layout; spherical: one per component
    const unsigned char *widths;  // numbers of columns of U that are processed together; they differ by at most 1
    std::size_t blocks;
    const unsigned char *group_widths;  // numbers of components that are processed together
    std::size_t groups;
    double far;                 // rows whose squared lengths all exceed this are processed in float64
};

// Rows are processed in float32 if `narrow` is not null; `wide` is always present.
struct Mixture {
    const Components<float> *narrow;
    const Components<double> *wide;
};

// What rows with missing cells need beside the components (gaps.h). Matrices have lines of `columns` values, padded with
// zeros; `step` is the distance from one component's matrix to the next one's, `line` that of its vectors: 0 if all share
// them. Without matrices, columns are independent, and only `lengths` and their logarithms are there.
struct Gaps {
    std::size_t columns, step, line;
    const double *factors;         // U, each line divided by its length
    const double *lengths;         // of the lines of U (inverse standard deviations if columns are independent)
    const double *inverse_lengths, *log_lengths;
    const double *precisions;      // the products of the lines in `factors`
    const double *correlations;
    const double *deviations;
    const double *log_deviations;
    const double *log_determinants;  // of U, one for each component
};

// Where completed rows go: n x d, of which only missing cells are written. With `noise`, n x d, they are drawn from what the
// `chosen` component says of them, else they are expected values with their standard deviations.
struct Completed {
    double *values, *deviations;
    const double *noise;
    const int *chosen;
};

template <class In> struct MixtureKernels {
    double (*step)(const In *x, const double *w, std::size_t n, const Mixture &m, double *counts, double *shift,
                   double *scatter);
    void (*logs)(const In *x, std::size_t n, const Mixture &m, double *total, double *each);
    // The same for the `n` rows of x, with missing cells, that `which` numbers.
    double (*step_gaps)(const In *x, const double *w, const int *which, std::size_t n, const Components<double> &c,
                        const Gaps &gaps, double *counts, double *shift, double *scatter);
    void (*logs_gaps)(const In *x, const int *which, std::size_t n, const Components<double> &c, const Gaps &gaps,
                      double *total, double *each, Completed completed);
};

}  // namespace fw
