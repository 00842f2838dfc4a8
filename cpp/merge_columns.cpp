// Merges the column moments of two sets of rows (Chan, Golub and LeVeque), as stats/column_moments.py describes. Compiled without
// fused multiply-add: the same bits on every processor, and those of the NumPy twin.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

namespace nb = nanobind;

namespace {

using Line = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Pair = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using LineOut = nb::ndarray<double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using PairOut = nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

constexpr double least_positive = 0x1p-1074;

// a + b as the rounded sum and its error (Knuth).
inline void two_parts(double a, double b, double &sum, double &rest) {
    sum = a + b;
    const double back = sum - a;
    rest = (a - (sum - back)) + (b - back);
}

void merge_columns(Pair left, Line left_squares, double left_weight, Pair right, Line right_squares, double right_weight,
                   PairOut centre, LineOut squares) {
    const size_t d = squares.shape(0);
    for (size_t side : {left.shape(1), left_squares.shape(0), right.shape(1), right_squares.shape(0), centre.shape(1)})
        if (side != d) throw nb::value_error("both sides and the result must have the same number of columns");
    if (left.shape(0) != 2 || right.shape(0) != 2 || centre.shape(0) != 2) throw nb::value_error("a centre has two parts");
    const double weight = left_weight + right_weight, factor = left_weight * right_weight / weight;
    const double share = right_weight / weight;
    const double *l = left.data(), *r = right.data(), *ls = left_squares.data(), *rs = right_squares.data();
    double *c = centre.data(), *out = squares.data();
    for (size_t j = 0; j < d; ++j) {
        const double delta = (r[j] - l[j]) + (r[d + j] - l[d + j]);
        const double found = ls[j] + rs[j] + delta * delta * factor;
        out[j] = found == 0 && delta != 0 ? least_positive : found;
        double sum, rest;
        two_parts(l[j], delta * share, sum, rest);
        two_parts(sum, rest + l[d + j], c[j], c[d + j]);
    }
}

}  // namespace

void register_merge_columns(nb::module_ &m) {
    m.def("merge_columns", &merge_columns, nb::arg("left").noconvert(), nb::arg("left_squares").noconvert(),
          nb::arg("left_weight"), nb::arg("right").noconvert(), nb::arg("right_squares").noconvert(), nb::arg("right_weight"),
          nb::arg("centre").noconvert(), nb::arg("squares").noconvert());
}
