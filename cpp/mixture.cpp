// Python bindings of the mixture kernels. An object holds the components, packed once per pass; its methods take
// blocks of rows.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cmath>
#include <vector>

#include "component_storage.h"
#include "isa.h"

namespace nb = nanobind;

namespace {

template <class... Extra> using Array = nb::ndarray<nb::c_contig, nb::device::cpu, Extra...>;
using Matrix = Array<nb::ro, nb::ndim<2>>;
using Doubles = Array<const double, nb::ndim<1>>;
using Doubles2 = Array<const double, nb::ndim<2>>;
using DoublesAny = Array<const double>;
using DoublesOut = Array<double, nb::ndim<1>>;
using Doubles2Out = Array<double, nb::ndim<2>>;
using DoublesAnyOut = Array<double>;

void require(bool condition, const char *message) {
    if (!condition) throw nb::value_error(message);
}

// Limits within which float32 is accurate enough for float32 rows. The error of U'(x - mean) grows with the size of
// the terms that cancel in it (estimated for rows one standard deviation away), with the distance of the mean from
// the pivot and with the number of columns. Within these limits, measured errors were about 1e-6 per row in sums of
// log densities, and 1e-6 of a standard deviation in the other sums.
constexpr size_t most_columns = 64;
constexpr double most_cancelled = 32, widest = 1e12;

bool in_range(double sigma) { return sigma < widest && sigma > 1 / widest; }

bool float32_suffices_for(const double *u, const double *mu, const double *pivot, size_t k, size_t d,
                          std::vector<double> &inverse) {
    // The lengths of the columns of the inverse are the standard deviations.
    inverse.assign(d * d, 0.0);
    std::vector<double> sigma(d, 0.0);
    for (size_t i = d; i-- > 0;) {
        double *row = inverse.data() + i * d;
        row[i] = 1;
        for (size_t g = i + 1; g < d; ++g)
            for (size_t f = g; f < d; ++f) row[f] -= u[i * d + g] * inverse[g * d + f];
        for (size_t f = i; f < d; ++f) {
            row[f] /= u[i * d + i];
            sigma[f] += row[f] * row[f];
        }
    }
    std::vector<double> terms(d, 0.0);
    for (size_t f = 0; f < d; ++f) {
        if (!in_range(std::sqrt(sigma[f]))) return false;
        for (size_t j = 0; j < k; ++j)
            if (!(std::fabs(mu[j * d + f] - pivot[f]) < most_cancelled * std::sqrt(sigma[f]))) return false;
        for (size_t g = f; g < d; ++g) terms[g] += u[f * d + g] * u[f * d + g] * sigma[f];
    }
    for (const double term : terms)
        if (!(term < most_cancelled * most_cancelled)) return false;
    return true;
}

bool float32_suffices(fw::Shape shape, const double *mu, const double *whiten, const double *pivot, size_t k, size_t d) {
    if (d > most_columns) return false;
    std::vector<double> work;
    if (shape == fw::Shape::full) {
        for (size_t j = 0; j < k; ++j)
            if (!float32_suffices_for(whiten + j * d * d, mu + j * d, pivot, 1, d, work)) return false;
    } else if (shape == fw::Shape::tied) {
        if (!float32_suffices_for(whiten, mu, pivot, k, d, work)) return false;
        // Rows and means are whitened separately, so the distance between them is subject to cancellation as well.
        for (size_t j = 0; j < k; ++j)
            for (size_t g = 0; g < d; ++g) {
                double sum = 0;
                for (size_t f = 0; f <= g; ++f) sum += whiten[f * d + g] * (mu[j * d + f] - pivot[f]);
                if (!(std::fabs(sum) < most_cancelled)) return false;
            }
    } else {
        for (size_t i = 0; i < k * d; ++i) {
            const double u = shape == fw::Shape::diag ? whiten[i] : whiten[i / d];
            if (!in_range(u) || !(std::fabs(mu[i] - pivot[i % d]) * u < most_cancelled)) return false;
        }
    }
    return true;
}

class Components {
    bool single_, narrow_ = false;
    size_t k_, d_;
    fw::Squares squares_;
    fw::Storage<float> f32_;
    fw::Storage<double> f64_;

    size_t rows(const Matrix &x) const {
        require(x.shape(1) == d_, "rows must have as many columns as the means");
        return x.shape(0);
    }

    fw::Mixture mixture() const { return {narrow_ ? &f32_.view : nullptr, &f64_.view}; }

    template <class F> auto with(const Matrix &x, F f) const {
        if (single_) {
            if (x.dtype() != nb::dtype<float>()) throw nb::type_error("rows must have the components' dtype, float32");
            return f((const float *)x.data(), fw::active_kernels().mixture_f32);
        }
        if (x.dtype() != nb::dtype<double>()) throw nb::type_error("rows must have the components' dtype, float64");
        return f((const double *)x.data(), fw::active_kernels().mixture_f64);
    }

public:
    bool narrow() const { return narrow_; }

    Components(int shape, int squares, Doubles log_weights, Doubles2 means, DoublesAny whiten, Doubles pivot, bool single,
               bool narrow)
        : single_(single), k_(means.shape(0)), d_(means.shape(1)), squares_(fw::Squares(squares)) {
        const auto kind = fw::Shape(shape);
        require(shape >= 0 && shape < 4 && squares >= 0 && squares < 4, "unknown kind of components");
        require(k_ > 0 && d_ > 0, "there must be a component and a column");
        require(log_weights.shape(0) == k_ && pivot.shape(0) == d_, "a weight per component, a pivot per column");
        const size_t sizes[] = {k_ * d_ * d_, d_ * d_, k_ * d_, k_};
        require(whiten.size() == sizes[shape], "whiten does not fit the means");
        f64_.fill(kind, squares_, log_weights.data(), means.data(), whiten.data(), pivot.data(), k_, d_);
        narrow_ = narrow && single && float32_suffices(kind, means.data(), whiten.data(), pivot.data(), k_, d_);
        if (narrow_) f32_.fill(kind, squares_, log_weights.data(), means.data(), whiten.data(), pivot.data(), k_, d_);
    }

    double step(Matrix x, Doubles weights, DoublesOut counts, Doubles2Out shift, DoublesAnyOut scatter) const {
        const size_t n = rows(x);
        require(!weights.is_valid() || weights.shape(0) == n, "weights must have one entry per row");
        require(counts.shape(0) == k_, "counts must have one entry per component");
        require(shift.shape(0) == k_ && shift.shape(1) == d_, "shift must be components by columns");
        const size_t sizes[] = {k_ * d_ * d_, d_ * d_, k_ * d_, 0};
        require((scatter.is_valid() ? scatter.size() : 0) == sizes[int(squares_)], "scatter has the wrong size");
        const double *w = weights.is_valid() ? weights.data() : nullptr;
        double *out = scatter.is_valid() ? scatter.data() : nullptr;
        if (n == 0) return 0;
        return with(x, [&](auto *values, const auto &kernels) {
            nb::gil_scoped_release released;
            const double likelihood = kernels.step(values, w, n, mixture(), counts.data(), shift.data(), out);
            fw::trim_scratch();
            return likelihood;
        });
    }

    void logs(Matrix x, DoublesOut total, Doubles2Out each) const {
        const size_t n = rows(x);
        require(total.shape(0) == n, "total must have one entry per row");
        require(!each.is_valid() || (each.shape(0) == n && each.shape(1) == k_), "each must be rows by components");
        with(x, [&](auto *values, const auto &kernels) {
            nb::gil_scoped_release released;
            kernels.logs(values, n, mixture(), total.data(), each.is_valid() ? each.data() : nullptr);
            fw::trim_scratch();
        });
    }
};

}  // namespace

void register_mixture(nb::module_ &m) {
    const auto x = nb::arg("x").noconvert();
    nb::class_<Components>(m, "Components")
        .def(nb::init<int, int, Doubles, Doubles2, DoublesAny, Doubles, bool, bool>(), nb::arg("kind"), nb::arg("squares"),
             nb::arg("log_weights").noconvert(), nb::arg("means").noconvert(), nb::arg("whiten").noconvert(),
             nb::arg("pivot").noconvert(), nb::arg("single"), nb::arg("narrow"))
        .def_prop_ro("narrow", &Components::narrow)
        .def("step", &Components::step, x, nb::arg("weights").noconvert().none(), nb::arg("counts").noconvert(),
             nb::arg("shift").noconvert(), nb::arg("scatter").noconvert().none())
        .def("logs", &Components::logs, x, nb::arg("total").noconvert(), nb::arg("each").noconvert().none());
}
