// Gaussians that rows are compared with, prepared for the kernels of one instruction set. Shared by all of them, so there
// is no code here.
#pragma once

#include <cstddef>

namespace fw {

enum class Shape : int { full, tied, diag, spherical };
enum class Squares : int { full, tied, diag, none };

// Rows are looked at as y = x - pivot. All of this is in T, the type that is computed in: float64, or float32 for float32
// rows where that is good enough.
template <class T> struct Components {
    std::size_t k, d;
    Shape shape;
    Squares squares;
    std::size_t columns;        // d and padding: the length of a row in `pivot` and `means`
    const double *pivot;        // columns
    const T *means;             // k x columns: the means as y, rounded
    const double *rounded;      // k x d: what rounding added to them
    const double *log_weights;  // k
    const T *factors;           // full: k packed triangles, tied: one (density.h)
    const T *starts;            // full: k x d: what rounding of the means took from U'(y - mean)
    const T *near;              // the others: [feature][component] by groups of components: means (tied: whitened),
    const T *scales;            // diag: inverse standard deviations, likewise; spherical: one of each component
    const unsigned char *widths;  // how many columns of U go together, as equal as they can be
    std::size_t blocks;
    const unsigned char *group_widths;  // how many components go together
    std::size_t groups;
    double far;                 // rows all of whose squared lengths exceed this are left to float64
};

// Rows meet the components in float32 if `narrow` is there; `wide` always is.
struct Mixture {
    const Components<float> *narrow;
    const Components<double> *wide;
};

template <class In> struct MixtureKernels {
    double (*step)(const In *x, const double *w, std::size_t n, const Mixture &m, double *counts, double *shift,
                   double *scatter);
    void (*logs)(const In *x, std::size_t n, const Mixture &m, double *total, double *each);
};

}  // namespace fw
