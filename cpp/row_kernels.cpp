// Python bindings of the kernels that take plain rows: they check dtypes and shapes, release the GIL and call the
// kernel for the active instruction set. Results are written to arrays allocated by the caller, since numpy.empty is
// several times cheaper than wrapping our own memory.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include "isa.h"

namespace nb = nanobind;

namespace {

template <class... Extra> using Array = nb::ndarray<nb::c_contig, nb::device::cpu, Extra...>;
using Matrix = Array<nb::ro, nb::ndim<2>>;
using Values = Array<nb::ro>;
using Doubles = Array<const double, nb::ndim<1>>;
using DoublesOut = Array<double, nb::ndim<1>>;
using Square = Array<const double, nb::ndim<2>>;
using MatrixOut = Array<double, nb::ndim<2>>;
using AnyOut = Array<nb::ndim<2>>;
using RangeOut = Array<nb::ndim<1>>;

void require(bool condition, const char *message) {
    if (!condition) throw nb::value_error(message);
}

// Calls f with x as float32 or float64 values.
template <class X, class F> auto by_dtype(const X &x, F f) {
    if (x.dtype() == nb::dtype<float>()) return f((const float *)x.data());
    if (x.dtype() == nb::dtype<double>()) return f((const double *)x.data());
    throw nb::type_error("expected float32 or float64 values");
}

const double *data_or_null(const Doubles &array, size_t size, const char *message) {
    if (!array.is_valid()) return nullptr;
    require(array.shape(0) == size, message);
    // The data pointer of an empty array may be null, but null means "no weights".
    static const double none = 0;
    return size ? array.data() : &none;
}

struct Scatter {
    bool packed;
    double run(const float *x, const double *w, size_t n, size_t d, double *m, double *out) const {
        return fw::active_kernels().scatter_f32(x, w, n, d, m, out, packed);
    }
    double run(const double *x, const double *w, size_t n, size_t d, double *m, double *out) const {
        return fw::active_kernels().scatter_f64(x, w, n, d, m, out, packed);
    }
};

struct Columns {
    void *low, *high;
    double run(const float *x, const double *w, size_t n, size_t d, double *m, double *out) const {
        return fw::active_kernels().columns_f32(x, w, n, d, m, out, (float *)low, (float *)high);
    }
    double run(const double *x, const double *w, size_t n, size_t d, double *m, double *out) const {
        return fw::active_kernels().columns_f64(x, w, n, d, m, out, (double *)low, (double *)high);
    }
};

template <class Kernel>
double moments(const Kernel &kernel, const Matrix &x, const Doubles &weights, const MatrixOut &mean, double *out) {
    const size_t n = x.shape(0), d = x.shape(1);
    const double *w = data_or_null(weights, n, "weights must have one entry per row");
    require(mean.shape(0) == 2 && mean.shape(1) == d, "mean must have two entries per column");
    return by_dtype(x, [&](auto *values) {
        nb::gil_scoped_release released;
        const double total = kernel.run(values, w, n, d, mean.data(), out);
        fw::trim_scratch();
        return total;
    });
}

double scatter(Matrix x, Doubles weights, MatrixOut mean, MatrixOut out) {
    require(out.shape(0) == x.shape(1) && out.shape(1) == x.shape(1), "out must be square, as wide as x");
    return moments(Scatter{false}, x, weights, mean, out.data());
}

double scatter_packed(Matrix x, Doubles weights, MatrixOut mean, DoublesOut out) {
    require(out.shape(0) == x.shape(1) * (x.shape(1) + 1) / 2, "out must have the size of a triangle, as wide as x");
    return moments(Scatter{true}, x, weights, mean, out.data());
}

void merge_moments(Square left, Square left_scatter, double left_weight, Square right, Square right_scatter,
                   double right_weight, MatrixOut centre, MatrixOut scatter) {
    const size_t d = centre.shape(1);
    for (size_t side : {left.shape(1), left_scatter.shape(0), left_scatter.shape(1), right.shape(1),
                        right_scatter.shape(0), right_scatter.shape(1), scatter.shape(0), scatter.shape(1)})
        require(side == d, "both sides and the result must have the same number of columns");
    require(left.shape(0) == 2 && right.shape(0) == 2 && centre.shape(0) == 2, "a centre has two parts");
    nb::gil_scoped_release released;
    fw::active_kernels().merge_moments(left.data(), left_scatter.data(), left_weight, right.data(), right_scatter.data(),
                                       right_weight, d, centre.data(), scatter.data(), false);
}

// The sum takes the place of the left part.
void merge_packed(Square left, DoublesOut left_scatter, double left_weight, Square right, Doubles right_scatter,
                  double right_weight, MatrixOut centre) {
    const size_t d = centre.shape(1), size = d * (d + 1) / 2;
    require(left.shape(1) == d && right.shape(1) == d, "both sides and the result must have the same number of columns");
    require(left.shape(0) == 2 && right.shape(0) == 2 && centre.shape(0) == 2, "a centre has two parts");
    require(left_scatter.shape(0) == size && right_scatter.shape(0) == size, "a triangle has d (d + 1) / 2 numbers");
    nb::gil_scoped_release released;
    fw::active_kernels().merge_moments(left.data(), left_scatter.data(), left_weight, right.data(), right_scatter.data(),
                                       right_weight, d, centre.data(), left_scatter.data(), true);
}

double columns(Matrix x, Doubles weights, MatrixOut mean, DoublesOut out, RangeOut low, RangeOut high) {
    const size_t d = x.shape(1);
    require(out.shape(0) == d, "out must have one entry per column");
    require(low.shape(0) == d && high.shape(0) == d && low.dtype() == x.dtype() && high.dtype() == x.dtype(),
            "low and high must have one entry per column, in the dtype of x");
    return moments(Columns{low.data(), high.data()}, x, weights, mean, out.data());
}

ptrdiff_t finite(const float *x, size_t n) { return fw::active_kernels().finite_f32(x, n); }
ptrdiff_t finite(const double *x, size_t n) { return fw::active_kernels().finite_f64(x, n); }

ptrdiff_t first_not_finite(Values x) {
    return by_dtype(x, [&](auto *values) {
        nb::gil_scoped_release released;
        return finite(values, x.size());
    });
}

void subtract(const float *x, const double *c, const double *s, size_t n, size_t d, void *out) {
    fw::active_kernels().centred_f32(x, c, s, n, d, (float *)out);
}
void subtract(const double *x, const double *c, const double *s, size_t n, size_t d, void *out) {
    fw::active_kernels().centred_f64(x, c, s, n, d, (double *)out);
}

void centred(Matrix x, Doubles centre, Doubles scale, AnyOut out) {
    const size_t n = x.shape(0), d = x.shape(1);
    require(centre.shape(0) == d, "centre must have one entry per column");
    const double *s = data_or_null(scale, d, "scale must have one entry per column");
    require(out.shape(0) == n && out.shape(1) == d && out.dtype() == x.dtype(), "out must be like x");
    by_dtype(x, [&](auto *values) {
        nb::gil_scoped_release released;
        subtract(values, centre.data(), s, n, d, out.data());
    });
}

const char *isa() { return fw::active_kernels().name; }

}  // namespace

void register_row_kernels(nb::module_ &m) {
    // noconvert: an implicit copy would cost more than the kernel saves, so a wrong dtype or memory order is a
    // TypeError.
    const auto x = nb::arg("x").noconvert(), mean = nb::arg("mean").noconvert();
    const auto out = nb::arg("out").noconvert();
    const auto weights = nb::arg("weights").noconvert().none();
    m.def("scatter", &scatter, x, weights, mean, out);
    m.def("scatter_packed", &scatter_packed, x, weights, mean, out);
    m.def("merge_packed", &merge_packed, nb::arg("left").noconvert(), nb::arg("left_scatter").noconvert(),
          nb::arg("left_weight"), nb::arg("right").noconvert(), nb::arg("right_scatter").noconvert(),
          nb::arg("right_weight"), nb::arg("centre").noconvert());
    m.def("merge_moments", &merge_moments, nb::arg("left").noconvert(), nb::arg("left_scatter").noconvert(),
          nb::arg("left_weight"), nb::arg("right").noconvert(), nb::arg("right_scatter").noconvert(),
          nb::arg("right_weight"), nb::arg("centre").noconvert(), nb::arg("scatter").noconvert());
    m.def("columns", &columns, x, weights, mean, out, nb::arg("low").noconvert(), nb::arg("high").noconvert());
    m.def("finite", &first_not_finite, x);
    m.def("centred", &centred, x, nb::arg("centre").noconvert(), nb::arg("scale").noconvert().none(), out);
    m.def("isa", &isa);
}
