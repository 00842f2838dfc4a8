// Python bindings of the sums of distances behind the silhouette.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include "isa.h"

namespace nb = nanobind;

namespace {

template <class... Extra> using Array = nb::ndarray<nb::c_contig, nb::device::cpu, Extra...>;

void distance_sums(Array<const double, nb::ndim<2>> points, Array<nb::ro, nb::ndim<2>> x,
                   Array<const double, nb::ndim<1>> weights, Array<const int, nb::ndim<1>> labels, double scale,
                   Array<double, nb::ndim<2>> out, Array<double, nb::ndim<2>> compared) {
    const size_t m = points.shape(0), n = x.shape(0), d = x.shape(1), k = out.shape(1);
    if (points.shape(1) != d || out.shape(0) != m || labels.shape(0) != n || (weights.is_valid() && weights.shape(0) != n))
        throw nb::value_error("points, rows, weights, labels and sums do not belong together");
    if (compared.is_valid() && (compared.shape(0) != m || compared.shape(1) != k))
        throw nb::value_error("compared must have the shape of the sums");
    for (size_t i = 0; i < n; ++i)
        if (labels.data()[i] < 0 || size_t(labels.data()[i]) >= k) throw nb::value_error("a label has no sum");
    const double *w = weights.is_valid() && n ? weights.data() : nullptr;
    const fw::Kernels &kernels = fw::active_kernels();
    const auto run = [&](auto kernel, const auto *rows) {
        nb::gil_scoped_release released;
        kernel(points.data(), m, rows, w, labels.data(), n, d, scale, k, out.data(), compared.is_valid() ? compared.data() : nullptr);
        fw::trim_scratch();
    };
    if (x.dtype() == nb::dtype<float>()) run(compared.is_valid() ? kernels.observed_distance_sums_f32 : kernels.distance_sums_f32, (const float *)x.data());
    else if (x.dtype() == nb::dtype<double>()) run(compared.is_valid() ? kernels.observed_distance_sums_f64 : kernels.distance_sums_f64, (const double *)x.data());
    else throw nb::type_error("expected float32 or float64 values");
}

}  // namespace

void register_distance_sums(nb::module_ &m) {
    m.def("distance_sums", &distance_sums, nb::arg("points").noconvert(), nb::arg("x").noconvert(),
          nb::arg("weights").noconvert().none(), nb::arg("labels").noconvert(), nb::arg("scale"),
          nb::arg("out").noconvert(), nb::arg("compared").noconvert().none() = nb::none());
}
