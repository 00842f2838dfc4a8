// Python bindings of the k-means kernels for sparse rows. An object holds the targets, transposed once per pass.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/tuple.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "crew.h"
#include "isa.h"

namespace nb = nanobind;

namespace {

template <class... Extra> using Array = nb::ndarray<nb::c_contig, nb::device::cpu, Extra...>;
using Matrix = Array<nb::ro, nb::ndim<2>>;
using Line = Array<nb::ro, nb::ndim<1>>;
using LineOut = Array<nb::ndim<1>>;
using Doubles = Array<const double, nb::ndim<1>>;
using DoublesOut = Array<double, nb::ndim<1>>;
using Doubles2Out = Array<double, nb::ndim<2>>;
using Ints = Array<const int, nb::ndim<1>>;
using IntsOut = Array<int, nb::ndim<1>>;

void require(bool condition, const char *message) {
    if (!condition) throw nb::value_error(message);
}

template <class T> const fw::SparseTable<T> &table();
template <> const fw::SparseTable<float> &table<float>() { return fw::active_kernels().sparse_f32; }
template <> const fw::SparseTable<double> &table<double>() { return fw::active_kernels().sparse_f64; }

template <class T, class I> const fw::SparseKernels<T, I> &kernels() {
    if constexpr (sizeof(I) == 4) return table<T>().narrow;
    else return table<T>().wide;
}

// Owns the memory that a fw::SparseTargets points to.
template <class T> struct Storage {
    std::unique_ptr<float[]> transposed;
    std::vector<fw::TwoPartSum> squares;
    std::vector<double> half;
    std::vector<int> first;
    fw::SparseTargets<T> view{};

    void fill(const T *points, size_t k, size_t d, double scale) {
        const size_t stride = (k + 7) / 8 * 8;  // whole vectors for every instruction set
        transposed.reset(new float[d * stride]);  // not zeroed: prepare_targets writes all of it
        squares.resize(k);
        half.assign(stride, std::numeric_limits<double>::infinity());
        first.resize(k);
        table<T>().prepare_targets(points, k, d, scale, stride, transposed.get(), squares.data());
        double longest = 0;
        std::unordered_map<double, std::vector<int>> alike;
        for (size_t c = 0; c < k; ++c) {
            half[c] = squares[c].high / 2;
            longest = squares[c].high > longest ? squares[c].high : longest;
            first[c] = int(c);
            auto &same = alike[squares[c].high];
            for (const int other : same)
                if (std::memcmp(points + size_t(other) * d, points + c * d, d * sizeof(T)) == 0) {
                    first[c] = other;
                    break;
                }
            if (first[c] == int(c)) same.push_back(int(c));
        }
        view = {k, d, stride, scale, points, transposed.get(), squares.data(), half.data(), first.data(),
                std::sqrt(longest) * (1 + 1e-6)};
    }
};

class SparseTargets {
    Matrix points_;  // keeps the array alive: resolving ties reads it
    bool single_;
    size_t k_, d_;
    Storage<float> f32_;
    Storage<double> f64_;

    template <class I> static bool in_range(const Line &columns, size_t d) {
        const I *data = (const I *)columns.data();
        bool good = true;
        for (size_t p = 0; p < columns.shape(0); ++p) good &= data[p] >= 0 && size_t(data[p]) < d;
        return good;
    }

    template <class T, class I, class F>
    auto checked(const Line &values, const Line &columns, const Line &starts, const fw::SparseTargets<T> &t, F f) const {
        const I *ends = (const I *)starts.data();
        const size_t n = starts.shape(0) - 1;
        bool rising = ends[0] >= 0;
        for (size_t i = 0; i < n; ++i) rising &= ends[i] <= ends[i + 1];
        require(rising && size_t(ends[n]) <= values.shape(0), "rows must begin where the one before ends");
        require(in_range<I>(columns, d_), "a stored value has a column that the targets do not have");
        return f(fw::SparseRows<T, I>{n, (const T *)values.data(), (const I *)columns.data(), ends}, t);
    }

    // Calls f(rows, targets) with the right types.
    template <class F> auto with(const Line &values, const Line &columns, const Line &starts, F f) const {
        require(starts.shape(0) > 0 && columns.shape(0) == values.shape(0), "one column per value, and an end per row");
        const bool narrow = columns.dtype() == nb::dtype<int32_t>();
        if ((!narrow && columns.dtype() != nb::dtype<int64_t>()) || starts.dtype() != columns.dtype())
            throw nb::type_error("columns and starts must be int32 or int64, both the same");
        if (values.dtype() != (single_ ? nb::dtype<float>() : nb::dtype<double>()))
            throw nb::type_error("values must have the targets' dtype");
        if (single_)
            return narrow ? checked<float, int32_t>(values, columns, starts, f32_.view, f)
                          : checked<float, int64_t>(values, columns, starts, f32_.view, f);
        return narrow ? checked<double, int32_t>(values, columns, starts, f64_.view, f)
                      : checked<double, int64_t>(values, columns, starts, f64_.view, f);
    }

    template <class T> static T *optional(const LineOut &array, size_t n) {
        if (!array.is_valid()) return nullptr;
        require(array.shape(0) == n && array.dtype() == nb::dtype<T>(), "one entry per row, in the rows' dtype");
        return (T *)array.data();
    }

    static const double *optional_weights(const Doubles &weights, size_t n) {
        if (!weights.is_valid()) return nullptr;
        require(weights.shape(0) == n, "weights must have one entry per row");
        return weights.data();
    }

public:
    SparseTargets(Matrix points, double scale)
        : points_(points), single_(points.dtype() == nb::dtype<float>()), k_(points.shape(0)), d_(points.shape(1)) {
        require(single_ || points.dtype() == nb::dtype<double>(), "expected float32 or float64 values");
        require(k_ > 0 && d_ > 0, "there must be a target and a column");
        nb::gil_scoped_release released;
        if (single_) f32_.fill((const float *)points_.data(), k_, d_, scale);
        else f64_.fill((const double *)points_.data(), k_, d_, scale);
    }

    // Returns (moved, computed, near_ties, exact_ties).
    std::tuple<size_t, size_t, size_t, size_t> nearest(Line values, Line columns, Line starts, IntsOut labels, LineOut near,
                                                       LineOut next) const {
        return with(values, columns, starts, [&](const auto &x, const auto &t) {
            using T = std::remove_const_t<std::remove_pointer_t<decltype(x.values)>>;
            using I = std::remove_const_t<std::remove_pointer_t<decltype(x.columns)>>;
            require(labels.shape(0) == x.n, "labels must have one entry per row");
            T *first = optional<T>(near, x.n), *second = optional<T>(next, x.n);
            nb::gil_scoped_release released;
            const fw::AssignCounts a = kernels<T, I>().nearest(x, t, labels.data(), first, second);
            fw::trim_scratch();
            return std::make_tuple(a.moved, a.computed, a.near_ties, a.exact_ties);
        });
    }

    void move_rows(Line values, Line columns, Line starts, Doubles weights, double weight_scale, Ints before, Ints after,
                   Ints slots, double coarse, double fine, Doubles2Out high, Doubles2Out low, Doubles2Out weight) const {
        with(values, columns, starts, [&](const auto &x, const auto &t) {
            using T = std::remove_const_t<std::remove_pointer_t<decltype(x.values)>>;
            using I = std::remove_const_t<std::remove_pointer_t<decltype(x.columns)>>;
            const size_t m = high.shape(0);
            const double *w = optional_weights(weights, x.n);
            require(after.shape(0) == x.n && (!before.is_valid() || before.shape(0) == x.n), "labels: one entry per row");
            require(slots.shape(0) == k_, "slots must have one entry per target");
            require(high.shape(1) == d_ && low.shape(0) == m && low.shape(1) == d_ && weight.shape(0) == 2 &&
                    weight.shape(1) == m,
                    "sums must be slots by columns");
            const int *old = before.is_valid() ? before.data() : nullptr;
            const auto known = [&](int label) {
                return label >= 0 && size_t(label) < k_ && slots.data()[label] >= 0 && size_t(slots.data()[label]) < m;
            };
            for (size_t i = 0; i < x.n; ++i) {
                const int from = old ? old[i] : -1, to = after.data()[i];
                require(from == to || (known(to) && (from < 0 || known(from))), "a label has no slot");
            }
            nb::gil_scoped_release released;
            kernels<T, I>().move_rows(x, w, t.scale, d_, weight_scale, old, after.data(), slots.data(), m, {coarse, fine},
                                      high.data(), low.data(), weight.data());
        });
    }

    void residuals(Line values, Line columns, Line starts, Doubles weights, Ints labels, DoublesOut total,
                   DoublesOut each) const {
        with(values, columns, starts, [&](const auto &x, const auto &t) {
            using T = std::remove_const_t<std::remove_pointer_t<decltype(x.values)>>;
            using I = std::remove_const_t<std::remove_pointer_t<decltype(x.columns)>>;
            const double *w = optional_weights(weights, x.n);
            require(labels.shape(0) == x.n && total.shape(0) == k_, "labels per row, totals per target");
            require(!each.is_valid() || each.shape(0) == x.n, "each must have one entry per row");
            for (size_t i = 0; i < x.n; ++i)
                require(labels.data()[i] >= 0 && size_t(labels.data()[i]) < k_, "a label is not a target");
            nb::gil_scoped_release released;
            kernels<T, I>().residuals(x, w, t, labels.data(), total.data(), each.is_valid() ? each.data() : nullptr);
        });
    }

    double update_closest(Line values, Line columns, Line starts, Doubles weights, size_t taken, LineOut closest,
                          DoublesOut potential) const {
        return with(values, columns, starts, [&](const auto &x, const auto &t) {
            using T = std::remove_const_t<std::remove_pointer_t<decltype(x.values)>>;
            using I = std::remove_const_t<std::remove_pointer_t<decltype(x.columns)>>;
            const double *w = optional_weights(weights, x.n);
            require(taken <= k_ && potential.shape(0) == k_ - taken, "potential must have one entry per candidate");
            T *distances = optional<T>(closest, x.n);
            require(distances != nullptr, "closest is needed");
            nb::gil_scoped_release released;
            return kernels<T, I>().update_closest(x, w, t, taken, distances, potential.data());
        });
    }

    void distances(Line values, Line columns, Line starts, Array<nb::ndim<2>> out) const {
        with(values, columns, starts, [&](const auto &x, const auto &t) {
            using T = std::remove_const_t<std::remove_pointer_t<decltype(x.values)>>;
            using I = std::remove_const_t<std::remove_pointer_t<decltype(x.columns)>>;
            require(out.shape(0) == x.n && out.shape(1) == k_ && out.dtype() == nb::dtype<T>(),
                    "out must be rows by targets, in the rows' dtype");
            nb::gil_scoped_release released;
            kernels<T, I>().distances(x, t, (T *)out.data());
        });
    }
};

size_t unit_rows(Line values, Array<const int64_t, nb::ndim<1>> starts, size_t columns, LineOut out) {
    const bool single = values.dtype() == nb::dtype<float>();
    require(single || values.dtype() == nb::dtype<double>(), "expected float32 or float64 values");
    require(out.shape(0) == values.shape(0) && out.dtype() == values.dtype(), "out must be like the values");
    const int64_t *ends = starts.is_valid() ? starts.data() : nullptr;
    size_t n = 0;
    if (ends) {
        require(starts.shape(0) > 0, "one end per row");
        n = starts.shape(0) - 1;
        bool rising = ends[0] >= 0;
        for (size_t i = 0; i < n; ++i) rising &= ends[i] <= ends[i + 1];
        require(rising && size_t(ends[n]) <= values.shape(0), "rows must begin where the one before ends");
    } else {
        require(columns > 0 && values.shape(0) % columns == 0, "whole rows only");
        n = values.shape(0) / columns;
    }
    nb::gil_scoped_release released;
    if (single) return table<float>().unit_rows((const float *)values.data(), ends, n, columns, (float *)out.data());
    return table<double>().unit_rows((const double *)values.data(), ends, n, columns, (double *)out.data());
}

void update_centres(Array<const double, nb::ndim<2>> high, Array<const double, nb::ndim<2>> low, Doubles weights, Doubles pivot,
                    double scale, Matrix old, Array<nb::ndim<2>> now, bool given, Doubles2Out figures, size_t helpers) {
    const size_t k = high.shape(0), d = high.shape(1);
    const auto alike = [&](const auto &array) { return array.shape(0) == k && array.shape(1) == d; };
    require(alike(low) && alike(old) && alike(now) && old.dtype() == now.dtype(), "sums and centres must be of one shape");
    require(weights.shape(0) == k && pivot.shape(0) == d && figures.shape(0) == 4 && figures.shape(1) == k,
            "weights and figures per cluster, pivot per column");
    const bool single = old.dtype() == nb::dtype<float>();
    require(single || old.dtype() == nb::dtype<double>(), "expected float32 or float64 values");
    nb::gil_scoped_release released;
    fw::crew.each(k * d < fw::shared_values ? 0 : helpers, k, fw::rows_at_a_time(d), [&](size_t from, size_t end) {
        if (single)
            table<float>().update_centres(high.data(), low.data(), weights.data(), k, d, pivot.data(), scale,
                                          (const float *)old.data(), (float *)now.data(), given, figures.data(), from, end);
        else
            table<double>().update_centres(high.data(), low.data(), weights.data(), k, d, pivot.data(), scale,
                                           (const double *)old.data(), (double *)now.data(), given, figures.data(), from, end);
    });
}

}  // namespace

void register_sparse(nb::module_ &m) {
    const auto values = nb::arg("values").noconvert(), columns = nb::arg("columns").noconvert();
    const auto starts = nb::arg("starts").noconvert(), labels = nb::arg("labels").noconvert();
    const auto weights = nb::arg("weights").noconvert().none();
    nb::class_<SparseTargets>(m, "SparseTargets")
        .def(nb::init<Matrix, double>(), nb::arg("points").noconvert(), nb::arg("scale"))
        .def("nearest", &SparseTargets::nearest, values, columns, starts, labels,
             nb::arg("near").noconvert().none() = nb::none(), nb::arg("second").noconvert().none() = nb::none())
        .def("move_rows", &SparseTargets::move_rows, values, columns, starts, weights, nb::arg("weight_scale"),
             nb::arg("before").noconvert().none(), nb::arg("after").noconvert(), nb::arg("slots").noconvert(),
             nb::arg("coarse"), nb::arg("fine"), nb::arg("high").noconvert(), nb::arg("low").noconvert(),
             nb::arg("weight").noconvert())
        .def("residuals", &SparseTargets::residuals, values, columns, starts, weights, labels,
             nb::arg("total").noconvert(), nb::arg("each").noconvert().none() = nb::none())
        .def("update_closest", &SparseTargets::update_closest, values, columns, starts, weights, nb::arg("taken"),
             nb::arg("closest").noconvert(), nb::arg("potential").noconvert())
        .def("distances", &SparseTargets::distances, values, columns, starts, nb::arg("out").noconvert());
    m.def("unit_rows", &unit_rows, values, nb::arg("starts").noconvert().none(), nb::arg("columns"),
          nb::arg("out").noconvert());
    m.def("update_centres", &update_centres, nb::arg("high").noconvert(), nb::arg("low").noconvert(),
          nb::arg("weights").noconvert(), nb::arg("pivot").noconvert(), nb::arg("scale"), nb::arg("old").noconvert(),
          nb::arg("now").noconvert(), nb::arg("given"), nb::arg("figures").noconvert(), nb::arg("helpers") = 0);
}
