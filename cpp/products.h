// Products of rows, and of their scatter matrix, with vectors; one table per instruction set. Shared by all of them, so it
// contains no code.
#pragma once

#include <cstddef>
#include <cstdint>

#include "sparse_rows.h"

namespace fw {

// The rows are z = (x - centre) * factor; the centre is in two parts (2 x d), a null factor means 1, null weights mean 1.
struct ProductTerms {
    const double *weights, *centre, *factor;
    const double *basis;  // d x b (n x b for `back`)
    std::size_t d, b;
};

// Writes the sum of w z z' q (d x b). `wide` forms the products of float32 rows in float64.
template <class T, class I> struct SparseProducts {
    void (*product)(const SparseRows<T, I> &x, const ProductTerms &terms, bool wide, double *out);
    // Its two halves, in float64, with roots of the weights: z q for each row, and the sum of z times the row of `basis`.
    void (*project)(const SparseRows<T, I> &x, const ProductTerms &terms, double *out);
    void (*back)(const SparseRows<T, I> &x, const ProductTerms &terms, double *out);
};

template <class T> struct ProductTable {
    void (*dense)(const T *x, std::size_t n, const ProductTerms &terms, bool wide, double *out);
    // The same for rows without weights, of which there are some, with the mean (2 x d) and the sum of squares of each column.
    void (*with_columns)(const T *x, std::size_t n, const ProductTerms &terms, bool wide, double *out, double *mean,
                         double *squares);
    // The same with products of T, and the form q' (sum of w z z') q (b x b) in float64.
    void (*with_form)(const T *x, std::size_t n, const ProductTerms &terms, double *out, double *form);
    SparseProducts<T, std::int32_t> narrow;
    SparseProducts<T, std::int64_t> long_indices;
};

struct Products {
    ProductTable<float> f32;
    ProductTable<double> f64;
    void (*row_product)(const float *x, std::size_t n, std::size_t d, const float *vectors, std::size_t o, float *out);
};

namespace baseline { extern const Products products; }
namespace avx2 { extern const Products products; }
namespace avx512 { extern const Products products; }

}  // namespace fw
