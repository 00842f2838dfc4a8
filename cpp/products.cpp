// Python bindings of the products of the scatter matrix with a few vectors.
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
                          const Square &basis, const MatrixOut &out) {
    require(centre.shape(0) == 2 && centre.shape(1) == d, "centre must have two entries per column");
    require(basis.shape(0) == d && out.shape(0) == d, "basis and out must have one row per column of x");
    require(basis.shape(1) == out.shape(1), "out must be like basis");
    return {data_or_null(weights, n, "weights must have one entry per row"), centre.data(),
            data_or_null(factor, d, "factor must have one entry per column"), basis.data(), d, basis.shape(1)};
}

template <class X, class F> void by_dtype(const X &x, F f) {
    if (x.dtype() == nb::dtype<float>()) f((const float *)x.data());
    else if (x.dtype() == nb::dtype<double>()) f((const double *)x.data());
    else throw nb::type_error("expected float32 or float64 values");
}

void scatter_product(Matrix x, Doubles weights, Square centre, Doubles factor, Square basis, bool wide, MatrixOut out) {
    const size_t n = x.shape(0);
    const fw::ProductTerms terms = terms_of(n, x.shape(1), weights, centre, factor, basis, out);
    by_dtype(x, [&](auto *values) {
        using T = std::remove_const_t<std::remove_pointer_t<decltype(values)>>;
        nb::gil_scoped_release released;
        table<T>().dense(values, n, terms, wide, out.data());
        fw::trim_scratch();
    });
}

template <class T, class I>
void run(size_t n, const T *values, const I *columns, const I *starts, const fw::ProductTerms &terms, bool wide, double *out) {
    const fw::SparseRows<T, I> rows{n, values, columns, starts};
    if constexpr (sizeof(I) == sizeof(std::int32_t)) table<T>().narrow(rows, terms, wide, out);
    else table<T>().long_indices(rows, terms, wide, out);
}

void sparse_product(Line values, Line columns, Line starts, Doubles weights, Square centre, Doubles factor, Square basis,
                    bool wide, MatrixOut out) {
    require(starts.shape(0) > 0, "starts must have one entry more than there are rows");
    require(values.shape(0) == columns.shape(0), "each value must have a column");
    const size_t n = starts.shape(0) - 1;
    const fw::ProductTerms terms = terms_of(n, basis.shape(0), weights, centre, factor, basis, out);
    by_dtype(values, [&](auto *data) {
        if (columns.dtype() != starts.dtype()) throw nb::type_error("columns and starts must have one dtype");
        if (columns.dtype() == nb::dtype<std::int32_t>()) {
            nb::gil_scoped_release released;
            run(n, data, (const std::int32_t *)columns.data(), (const std::int32_t *)starts.data(), terms, wide, out.data());
            fw::trim_scratch();
        } else if (columns.dtype() == nb::dtype<std::int64_t>()) {
            nb::gil_scoped_release released;
            run(n, data, (const std::int64_t *)columns.data(), (const std::int64_t *)starts.data(), terms, wide, out.data());
            fw::trim_scratch();
        } else throw nb::type_error("expected int32 or int64 columns");
    });
}

}  // namespace

void register_products(nb::module_ &m) {
    const auto weights = nb::arg("weights").noconvert().none(), factor = nb::arg("factor").noconvert().none();
    const auto centre = nb::arg("centre").noconvert(), basis = nb::arg("basis").noconvert();
    const auto out = nb::arg("out").noconvert();
    m.def("scatter_product", &scatter_product, nb::arg("x").noconvert(), weights, centre, factor, basis, nb::arg("wide"), out);
    m.def("sparse_product", &sparse_product, nb::arg("values").noconvert(), nb::arg("columns").noconvert(),
          nb::arg("starts").noconvert(), weights, centre, factor, basis, nb::arg("wide"), out);
}
