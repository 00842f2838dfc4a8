// Python bindings of the mixture kernels for rows with missing cells.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "component_storage.h"
#include "isa.h"

namespace nb = nanobind;

namespace {

template <class... Extra> using Array = nb::ndarray<nb::c_contig, nb::device::cpu, Extra...>;
using Matrix = Array<nb::ro, nb::ndim<2>>;
using Doubles = Array<const double, nb::ndim<1>>;
using Doubles2 = Array<const double, nb::ndim<2>>;
using Doubles3 = Array<const double, nb::ndim<3>>;
using DoublesOut = Array<double, nb::ndim<1>>;
using Doubles2Out = Array<double, nb::ndim<2>>;
using DoublesAnyOut = Array<double>;
using Ints = Array<const int, nb::ndim<1>>;
using IntsOut = Array<int, nb::ndim<1>>;

void require(bool condition, const char *message) {
    if (!condition) throw nb::value_error(message);
}

template <class F> auto with_rows(const Matrix &x, F f) {
    if (x.dtype() == nb::dtype<float>()) return f((const float *)x.data(), fw::active_kernels().mixture_f32);
    if (x.dtype() == nb::dtype<double>()) return f((const double *)x.data(), fw::active_kernels().mixture_f64);
    throw nb::type_error("rows must be float32 or float64");
}

// Numbers of the complete rows, in order, then those of the others, sorted by which cells are missing if asked for; how many
// are complete.
template <class T> size_t sort_by_gaps(const T *x, size_t n, size_t d, bool sorted, int *order) {
    const size_t words = (d + 63) / 64;
    std::vector<std::uint64_t> masks;
    std::vector<int> others, place;
    size_t complete = 0;
    for (size_t i = 0; i < n; ++i) {
        const T *row = x + i * d;
        bool any = false;
        for (size_t f = 0; f < d; ++f) any |= row[f] != row[f];
        if (!any) {
            order[complete++] = int(i);
            continue;
        }
        others.push_back(int(i));
        if (!sorted) continue;
        place.push_back(int(place.size()));
        for (size_t w = 0; w < words; ++w) {
            std::uint64_t mask = 0;
            for (size_t f = w * 64; f < std::min(d, w * 64 + 64); ++f) mask |= std::uint64_t(row[f] != row[f]) << (f - w * 64);
            masks.push_back(mask);
        }
    }
    if (!sorted) std::copy(others.begin(), others.end(), order + complete);
    std::sort(place.begin(), place.end(), [&](int a, int b) {
        const std::uint64_t *left = masks.data() + size_t(a) * words, *right = masks.data() + size_t(b) * words;
        for (size_t w = 0; w < words; ++w)
            if (left[w] != right[w]) return left[w] < right[w];
        return a < b;
    });
    for (size_t i = 0; i < place.size(); ++i) order[complete + i] = others[size_t(place[i])];
    return complete;
}

size_t gap_order(Matrix x, bool sorted, IntsOut order) {
    require(order.shape(0) == x.shape(0), "order must have one entry per row");
    return with_rows(x, [&](auto *values, const auto &) {
        nb::gil_scoped_release released;
        return sort_by_gaps(values, x.shape(0), x.shape(1), sorted, order.data());
    });
}

class GapComponents {
    size_t k_, d_;
    fw::Squares squares_;
    fw::Storage<double> f64_;
    std::vector<double> factors_, lengths_, inverse_lengths_, log_lengths_, precisions_, correlations_, deviations_, log_deviations_, log_det_;
    fw::Gaps gaps_{};

    void check(const Matrix &x, const Ints &which) const {
        require(x.shape(1) == d_, "rows must have as many columns as the means");
        const int n = int(x.shape(0));
        for (size_t i = 0; i < which.shape(0); ++i) require(which.data()[i] >= 0 && which.data()[i] < n, "no such row");
    }

    // Lines of d values padded with zeros.
    std::vector<double> padded(const Doubles3 &from) const {
        std::vector<double> out(from.shape(0) * d_ * gaps_.columns, 0.0);
        for (size_t i = 0; i < from.shape(0) * d_; ++i)
            std::copy_n(from.data() + i * d_, d_, out.data() + i * gaps_.columns);
        return out;
    }

    static std::vector<double> logs(const std::vector<double> &from) {
        std::vector<double> out(from.size());
        for (size_t i = 0; i < from.size(); ++i) out[i] = std::log(from[i]);
        return out;
    }

public:
    // Independent columns: `lengths` are k x d inverse standard deviations. Otherwise `whiten` is k x d x d, or 1 x d x d if
    // all share it, and the other matrices and vectors are as fw::Gaps says.
    GapComponents(int squares, Doubles log_weights, Doubles2 means, Doubles pivot, Doubles2 lengths, Doubles3 whiten,
                  Doubles3 factors, Doubles3 precisions, Doubles3 correlations, Doubles2 deviations, Doubles log_determinants)
        : k_(means.shape(0)), d_(means.shape(1)), squares_(fw::Squares(squares)) {
        require(squares >= 0 && squares < 4 && k_ > 0 && d_ > 0, "there must be a component and a column");
        require(log_weights.shape(0) == k_ && pivot.shape(0) == d_, "a weight per component, a pivot per column");
        const size_t own = lengths.shape(0);
        require((own == 1 || own == k_) && lengths.shape(1) == d_, "lengths do not fit the means");
        gaps_.columns = (d_ + 15) / 16 * 16;
        gaps_.line = own == k_ && k_ > 1 ? d_ : 0;
        lengths_.assign(lengths.data(), lengths.data() + lengths.size());
        log_lengths_ = logs(lengths_);
        gaps_.lengths = lengths_.data();
        gaps_.log_lengths = log_lengths_.data();
        for (const double length : lengths_) inverse_lengths_.push_back(1 / length);
        gaps_.inverse_lengths = inverse_lengths_.data();
        if (!whiten.is_valid()) {
            require(squares_ == fw::Squares::diag || squares_ == fw::Squares::none, "squares do not fit the components");
            const std::vector<double> one(k_, 1.0);
            f64_.fill(fw::Shape::spherical, squares_, log_weights.data(), means.data(), one.data(), pivot.data(), k_, d_);
            return;
        }
        require(squares_ != fw::Squares::diag, "squares do not fit the components");
        for (const Doubles3 *each : {&whiten, &factors, &precisions, &correlations})
            require(each->is_valid() && each->shape(0) == own && each->shape(1) == d_ && each->shape(2) == d_,
                    "matrices do not fit the means");
        require(deviations.is_valid() && deviations.shape(0) == own && deviations.shape(1) == d_ && log_determinants.is_valid() &&
                    log_determinants.shape(0) == k_,
                "deviations do not fit the means");
        const auto shape = gaps_.line ? fw::Shape::full : k_ == 1 ? fw::Shape::full : fw::Shape::tied;
        f64_.fill(shape, squares_, log_weights.data(), means.data(), whiten.data(), pivot.data(), k_, d_);
        gaps_.step = gaps_.line ? d_ * gaps_.columns : 0;
        factors_ = padded(factors);
        precisions_ = padded(precisions);
        correlations_ = padded(correlations);
        deviations_.assign(deviations.data(), deviations.data() + deviations.size());
        log_deviations_ = logs(deviations_);
        log_det_.assign(log_determinants.data(), log_determinants.data() + k_);
        gaps_.factors = factors_.data();
        gaps_.precisions = precisions_.data();
        gaps_.correlations = correlations_.data();
        gaps_.deviations = deviations_.data();
        gaps_.log_deviations = log_deviations_.data();
        gaps_.log_determinants = log_det_.data();
    }

    double step(Matrix x, Doubles weights, Ints which, DoublesOut counts, Doubles2Out shift, DoublesAnyOut scatter) const {
        check(x, which);
        require(!weights.is_valid() || weights.shape(0) == x.shape(0), "weights must have one entry per row");
        require(counts.shape(0) == k_, "counts must have one entry per component");
        require(shift.shape(0) == k_ && shift.shape(1) == d_, "shift must be components by columns");
        const size_t sizes[] = {k_ * d_ * d_, d_ * d_, k_ * d_, 0};
        require(squares_ != fw::Squares::none && scatter.size() == sizes[int(squares_)], "scatter has the wrong size");
        return with_rows(x, [&](auto *values, const auto &kernels) {
            nb::gil_scoped_release released;
            const double found = kernels.step_gaps(values, weights.is_valid() ? weights.data() : nullptr, which.data(),
                                                   which.shape(0), f64_.view, gaps_, counts.data(), shift.data(), scatter.data());
            fw::trim_scratch();
            return found;
        });
    }

    void logs_of(Matrix x, Ints which, DoublesOut total, Doubles2Out each) const {
        check(x, which);
        require(total.shape(0) == x.shape(0), "total must have one entry per row");
        require(!each.is_valid() || (each.shape(0) == x.shape(0) && each.shape(1) == k_), "each must be rows by components");
        with_rows(x, [&](auto *values, const auto &kernels) {
            nb::gil_scoped_release released;
            kernels.logs_gaps(values, which.data(), which.shape(0), f64_.view, gaps_, total.data(),
                              each.is_valid() ? each.data() : nullptr, {nullptr, nullptr, nullptr, nullptr});
            fw::trim_scratch();
        });
    }

    void complete(Matrix x, Ints which, Doubles2Out completed, Doubles2Out deviations, Doubles2 noise,
                  Ints chosen) const {
        check(x, which);
        require(completed.shape(0) == x.shape(0) && completed.shape(1) == d_, "completed must be like the rows");
        require(!deviations.is_valid() || deviations.size() == completed.size(), "deviations must be like the rows");
        require(!noise.is_valid() || (noise.size() == completed.size() && chosen.is_valid() && chosen.shape(0) == x.shape(0)),
                "noise must be like the rows, with a component chosen for each");
        with_rows(x, [&](auto *values, const auto &kernels) {
            nb::gil_scoped_release released;
            const fw::Completed out{completed.data(), deviations.is_valid() ? deviations.data() : nullptr,
                                    noise.is_valid() ? noise.data() : nullptr,
                                    noise.is_valid() ? chosen.data() : nullptr};
            kernels.logs_gaps(values, which.data(), which.shape(0), f64_.view, gaps_, nullptr, nullptr, out);
            fw::trim_scratch();
        });
    }
};

}  // namespace

void register_mixture_gaps(nb::module_ &m) {
    const auto x = nb::arg("x").noconvert(), which = nb::arg("which").noconvert();
    m.def("gap_order", &gap_order, x, nb::arg("sorted"), nb::arg("order").noconvert());
    nb::class_<GapComponents>(m, "GapComponents")
        .def(nb::init<int, Doubles, Doubles2, Doubles, Doubles2, Doubles3, Doubles3, Doubles3, Doubles3, Doubles2, Doubles>(),
             nb::arg("squares"), nb::arg("log_weights").noconvert(), nb::arg("means").noconvert(), nb::arg("pivot").noconvert(),
             nb::arg("lengths").noconvert(), nb::arg("whiten").noconvert().none(), nb::arg("factors").noconvert().none(),
             nb::arg("precisions").noconvert().none(), nb::arg("correlations").noconvert().none(),
             nb::arg("deviations").noconvert().none(), nb::arg("log_determinants").noconvert().none())
        .def("step", &GapComponents::step, x, nb::arg("weights").noconvert().none(), which, nb::arg("counts").noconvert(),
             nb::arg("shift").noconvert(), nb::arg("scatter").noconvert())
        .def("logs", &GapComponents::logs_of, x, which, nb::arg("total").noconvert(), nb::arg("each").noconvert().none())
        .def("complete", &GapComponents::complete, x, which, nb::arg("completed").noconvert(),
             nb::arg("deviations").noconvert().none(), nb::arg("noise").noconvert().none(), nb::arg("chosen").noconvert().none());
}
