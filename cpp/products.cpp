// Python bindings of the products of rows, and of their scatter matrix, with vectors.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstring>

#include "isa.h"
#include "products.h"

namespace nb = nanobind;

namespace {

template <class... Extra> using Array = nb::ndarray<nb::c_contig, nb::device::cpu, Extra...>;
using Matrix = Array<nb::ro, nb::ndim<2>>;
using Line = Array<nb::ro, nb::ndim<1>>;
using Doubles = Array<const double, nb::ndim<1>>;
using Square = Array<const double, nb::ndim<2>>;
using MatrixOut = Array<double, nb::ndim<2>>;
using Floats = Array<const float, nb::ndim<2>>;
using FloatsOut = Array<float, nb::ndim<2>>;
using DoublesOut = Array<double, nb::ndim<1>>;

void require(bool condition, const char *message) {
    if (!condition) throw nb::value_error(message);
}

const fw::Products &products() {
#ifdef FW_X86
    const char *name = fw::active_kernels().name;
    if (std::strcmp(name, "avx512") == 0) return fw::avx512::products;
    if (std::strcmp(name, "avx2") == 0) return fw::avx2::products;
#endif
    return fw::baseline::products;
}

template <class T> const fw::ProductTable<T> &table() {
    if constexpr (sizeof(T) == sizeof(float)) return products().f32;
    else return products().f64;
}

const double *data_or_null(const Doubles &array, size_t size, const char *message) {
    if (!array.is_valid()) return nullptr;
    require(array.shape(0) == size, message);
    static const double none = 0;  // the data pointer of an empty array may be null, but null means "none given"
    return size ? array.data() : &none;
}

fw::ProductTerms terms_of(size_t n, size_t d, const Doubles &weights, const Square &centre, const Doubles &factor,
                          const Square &basis) {
    require(centre.shape(0) == 2 && centre.shape(1) == d, "centre must have two entries per column");
    return {data_or_null(weights, n, "weights must have one entry per row"), centre.data(),
            data_or_null(factor, d, "factor must have one entry per column"), basis.data(), d, basis.shape(1)};
}

void require_shapes(const Square &basis, size_t rows, const MatrixOut &out, size_t out_rows) {
    require(basis.shape(0) == rows, "basis has the wrong number of rows");
    require(out.shape(0) == out_rows && out.shape(1) == basis.shape(1), "out has the wrong shape");
}

template <class X, class F> void by_dtype(const X &x, F f) {
    if (x.dtype() == nb::dtype<float>()) f((const float *)x.data());
    else if (x.dtype() == nb::dtype<double>()) f((const double *)x.data());
    else throw nb::type_error("expected float32 or float64 values");
}

void scatter_product(Matrix x, Doubles weights, Square centre, Doubles factor, Square basis, bool wide, MatrixOut out) {
    const size_t n = x.shape(0);
    require_shapes(basis, x.shape(1), out, x.shape(1));
    if (basis.shape(1) == 0) return;  // nothing to multiply with
    const fw::ProductTerms terms = terms_of(n, x.shape(1), weights, centre, factor, basis);
    by_dtype(x, [&](auto *values) {
        using T = std::remove_const_t<std::remove_pointer_t<decltype(values)>>;
        nb::gil_scoped_release released;
        table<T>().dense(values, n, terms, wide, out.data());
        fw::trim_scratch();
    });
}

void product_and_columns(Matrix x, Square centre, Doubles factor, Square basis, bool wide, MatrixOut out, MatrixOut mean,
                         DoublesOut squares) {
    const size_t n = x.shape(0), d = x.shape(1);
    require_shapes(basis, d, out, d);
    require(n > 0 && d > 0 && basis.shape(1) > 0, "there must be rows, columns and vectors");
    require(mean.shape(0) == 2 && mean.shape(1) == d && squares.shape(0) == d, "mean or squares has the wrong shape");
    const fw::ProductTerms terms = terms_of(n, d, Doubles(), centre, factor, basis);
    by_dtype(x, [&](auto *values) {
        using T = std::remove_const_t<std::remove_pointer_t<decltype(values)>>;
        nb::gil_scoped_release released;
        table<T>().with_columns(values, n, terms, wide, out.data(), mean.data(), squares.data());
        fw::trim_scratch();
    });
}

void product_and_form(Matrix x, Doubles weights, Square centre, Doubles factor, Square basis, MatrixOut out, MatrixOut form) {
    const size_t n = x.shape(0), b = basis.shape(1);
    require_shapes(basis, x.shape(1), out, x.shape(1));
    require(form.shape(0) == b && form.shape(1) == b, "form has the wrong shape");
    if (b == 0) return;
    const fw::ProductTerms terms = terms_of(n, x.shape(1), weights, centre, factor, basis);
    by_dtype(x, [&](auto *values) {
        using T = std::remove_const_t<std::remove_pointer_t<decltype(values)>>;
        nb::gil_scoped_release released;
        table<T>().with_form(values, n, terms, out.data(), form.data());
        fw::trim_scratch();
    });
}

void row_product(Floats x, Floats vectors, FloatsOut out) {
    const size_t n = x.shape(0), d = x.shape(1), o = vectors.shape(0);
    require(vectors.shape(1) == d, "vectors must have one entry per column");
    require(out.shape(0) == n && out.shape(1) == o, "out must have a row for each row and a column for each vector");
    nb::gil_scoped_release released;
    products().row_product(x.data(), n, d, vectors.data(), o, out.data());
    fw::trim_scratch();
}

template <class I, class T> const fw::SparseProducts<T, I> &sparse_table() {
    if constexpr (sizeof(I) == sizeof(std::int32_t)) return table<T>().narrow;
    else return table<T>().long_indices;
}

// Calls f(kernels, rows) for the dtypes of a CSR matrix.
template <class F> void by_dtypes(const Line &values, const Line &columns, const Line &starts, F f) {
    require(starts.shape(0) > 0, "starts must have one entry more than there are rows");
    require(values.shape(0) == columns.shape(0), "each value must have a column");
    if (columns.dtype() != starts.dtype()) throw nb::type_error("columns and starts must have one dtype");
    by_dtype(values, [&](auto *data) {
        using T = std::remove_const_t<std::remove_pointer_t<decltype(data)>>;
        const auto run = [&](auto index) {
            using I = decltype(index);
            const fw::SparseRows<T, I> rows{starts.shape(0) - 1, data, (const I *)columns.data(), (const I *)starts.data()};
            nb::gil_scoped_release released;
            f(sparse_table<I, T>(), rows);
            fw::trim_scratch();
        };
        if (columns.dtype() == nb::dtype<std::int32_t>()) run(std::int32_t());
        else if (columns.dtype() == nb::dtype<std::int64_t>()) run(std::int64_t());
        else throw nb::type_error("expected int32 or int64 columns");
    });
}

void sparse_product(Line values, Line columns, Line starts, Doubles weights, Square centre, Doubles factor, Square basis,
                    bool wide, MatrixOut out) {
    const size_t d = centre.shape(1);
    require_shapes(basis, d, out, d);
    const fw::ProductTerms terms = terms_of(starts.shape(0) - 1, d, weights, centre, factor, basis);
    by_dtypes(values, columns, starts, [&](auto &kernels, auto &rows) { kernels.product(rows, terms, wide, out.data()); });
}

void sparse_project(Line values, Line columns, Line starts, Doubles weights, Square centre, Doubles factor, Square basis,
                    MatrixOut out) {
    const size_t d = centre.shape(1), n = starts.shape(0) - 1;
    require_shapes(basis, d, out, n);
    const fw::ProductTerms terms = terms_of(n, d, weights, centre, factor, basis);
    by_dtypes(values, columns, starts, [&](auto &kernels, auto &rows) { kernels.project(rows, terms, out.data()); });
}

void sparse_back(Line values, Line columns, Line starts, Doubles weights, Square centre, Doubles factor, Square codes,
                 MatrixOut out) {
    const size_t d = centre.shape(1), n = starts.shape(0) - 1;
    require_shapes(codes, n, out, d);
    const fw::ProductTerms terms = terms_of(n, d, weights, centre, factor, codes);
    by_dtypes(values, columns, starts, [&](auto &kernels, auto &rows) { kernels.back(rows, terms, out.data()); });
}

}  // namespace

void register_products(nb::module_ &m) {
    const auto weights = nb::arg("weights").noconvert().none(), factor = nb::arg("factor").noconvert().none();
    const auto centre = nb::arg("centre").noconvert(), basis = nb::arg("basis").noconvert();
    const auto out = nb::arg("out").noconvert();
    m.def("scatter_product", &scatter_product, nb::arg("x").noconvert(), weights, centre, factor, basis, nb::arg("wide"), out);
    m.def("product_and_columns", &product_and_columns, nb::arg("x").noconvert(), centre, factor, basis, nb::arg("wide"), out,
          nb::arg("mean").noconvert(), nb::arg("squares").noconvert());
    m.def("product_and_form", &product_and_form, nb::arg("x").noconvert(), weights, centre, factor, basis, out,
          nb::arg("form").noconvert());
    m.def("row_product", &row_product, nb::arg("x").noconvert(), nb::arg("vectors").noconvert(), out);
    const auto values = nb::arg("values").noconvert(), columns = nb::arg("columns").noconvert();
    const auto starts = nb::arg("starts").noconvert();
    m.def("sparse_product", &sparse_product, values, columns, starts, weights, centre, factor, basis, nb::arg("wide"), out);
    m.def("sparse_project", &sparse_project, values, columns, starts, weights, centre, factor, basis, out);
    m.def("sparse_back", &sparse_back, values, columns, starts, weights, centre, factor, nb::arg("codes").noconvert(), out);
}
