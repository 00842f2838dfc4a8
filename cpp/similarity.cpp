// Python bindings of the exponentials used by kernel methods.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include "isa.h"

namespace nb = nanobind;

namespace {

using Line = nb::ndarray<double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

void similarity(Line x) {
    nb::gil_scoped_release released;
    fw::active_kernels().similarity(x.data(), x.shape(0));
}

}  // namespace

void register_similarity(nb::module_ &m) { m.def("similarity", &similarity, nb::arg("x").noconvert()); }
