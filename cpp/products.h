// Products of the scatter matrix of rows with a few vectors; one table per instruction set. Shared by all of them, so it
// contains no code.
#pragma once

#include <cstddef>
#include <cstdint>

#include "sparse_rows.h"

namespace fw {

// The rows are z = (x - centre) * factor; the centre is in two parts (2 x d), a null factor means 1, null weights mean 1.
struct ProductTerms {
    const double *weights, *centre, *factor;
    const double *basis;  // d x b
    std::size_t d, b;
};

// Writes the sum of w z z' q (d x b). `wide` forms the products of float32 rows in float64.
template <class T> struct ProductTable {
    void (*dense)(const T *x, std::size_t n, const ProductTerms &terms, bool wide, double *out);
    void (*narrow)(const SparseRows<T, std::int32_t> &x, const ProductTerms &terms, bool wide, double *out);
    void (*long_indices)(const SparseRows<T, std::int64_t> &x, const ProductTerms &terms, bool wide, double *out);
};

struct Products {
    ProductTable<float> f32;
    ProductTable<double> f64;
};

namespace baseline { extern const Products products; }
namespace avx2 { extern const Products products; }
namespace avx512 { extern const Products products; }

}  // namespace fw
