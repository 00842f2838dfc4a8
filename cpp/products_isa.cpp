// The products of products.h for one instruction set. Compiled once per set, with FW_ISA its name and FW_BYTES its vector
// size; apart from the other kernels, which take minutes to compile.
#include <utility>

#include "isa.h"
#include "products.h"

namespace fw {
namespace FW_ISA {
namespace {

#include "vec.h"
#include "columns.h"
#include "scatter_product.h"
#include "product_and_form.h"
#include "sparse_product.h"
#include "row_product.h"

// Products with weights far from 1 would leave the range of float32.
inline bool moderate(const double *w, size_t n) {
    for (size_t i = 0; w && i < n; ++i)
        if (!(w[i] == 0 || (w[i] >= 0x1p-20 && w[i] <= 0x1p20))) return false;
    return true;
}

void dense_f32(const float *x, size_t n, const ProductTerms &t, bool wide, double *out) {
    if (wide || !moderate(t.weights, n)) scatter_product<double>(x, n, t, out);
    else scatter_product<float>(x, n, t, out);
}
void dense_f64(const double *x, size_t n, const ProductTerms &t, bool, double *out) { scatter_product<double>(x, n, t, out); }

// With the moments of the columns, in one sweep.
template <class T, class In>
void with_columns(const In *x, size_t n, const ProductTerms &t, double *out, double *mean, double *squares) {
    ColumnSweep<In, sizeof(In) == sizeof(double)> sweep(x, nullptr, n, t.d);
    scatter_product<T>(x, n, t, out, sweep);
    sweep.finish(double(n), mean, squares);
}
void with_columns_f32(const float *x, size_t n, const ProductTerms &t, bool wide, double *out, double *mean, double *squares) {
    if (wide) with_columns<double>(x, n, t, out, mean, squares);
    else with_columns<float>(x, n, t, out, mean, squares);
}
void with_columns_f64(const double *x, size_t n, const ProductTerms &t, bool, double *out, double *mean, double *squares) {
    with_columns<double>(x, n, t, out, mean, squares);
}

// The form of a product in float64.
void form_of(const ProductTerms &t, const double *product, double *form) {
    for (size_t i = 0; i < t.b * t.b; ++i) form[i] = 0;
    for (size_t j = 0; j < t.d; ++j)
        for (size_t i = 0; i < t.b; ++i)
            for (size_t c = 0; c < t.b; ++c) form[i * t.b + c] += t.basis[j * t.b + i] * product[j * t.b + c];
}

void with_form_f64(const double *x, size_t n, const ProductTerms &t, double *out, double *form) {
    scatter_product<double>(x, n, t, out);
    form_of(t, out, form);
}
void with_form_f32(const float *x, size_t n, const ProductTerms &t, double *out, double *form) {
    if (moderate(t.weights, n)) return product_and_form(x, n, t, out, form);
    scatter_product<double>(x, n, t, out);
    form_of(t, out, form);
}

template <class I> void sparse_f32(const SparseRows<float, I> &x, const ProductTerms &t, bool wide, double *out) {
    if (wide || !moderate(t.weights, x.n)) sparse_product<double>(x, t, out);
    else sparse_product<float>(x, t, out);
}
template <class I> void sparse_f64(const SparseRows<double, I> &x, const ProductTerms &t, bool, double *out) {
    sparse_product<double>(x, t, out);
}

template <class I>
constexpr SparseProducts<float, I> sparse_products_f32 = {sparse_f32<I>, sparse_project<float, I>, sparse_back<float, I>};
template <class I>
constexpr SparseProducts<double, I> sparse_products_f64 = {sparse_f64<I>, sparse_project<double, I>, sparse_back<double, I>};

}  // namespace

extern const Products products = {
    {dense_f32, with_columns_f32, with_form_f32, sparse_products_f32<std::int32_t>, sparse_products_f32<std::int64_t>},
    {dense_f64, with_columns_f64, with_form_f64, sparse_products_f64<std::int32_t>, sparse_products_f64<std::int64_t>},
    row_product,
};

}  // namespace FW_ISA
}  // namespace fw
