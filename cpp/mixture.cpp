// Python bindings of the mixture kernels. An object holds the components, packed once per pass; its methods take
// blocks of rows.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cmath>
#include <vector>

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

std::vector<unsigned char> even_widths(size_t count) {
    const size_t most = fw::active_kernels().panel_targets, parts = (count + most - 1) / most;
    std::vector<unsigned char> widths(parts);
    for (size_t p = 0; p < parts; ++p) widths[p] = (unsigned char)(count / parts + (p < count % parts));
    return widths;
}

// Owns the memory that a fw::Components points to.
template <class T> struct Storage {
    std::vector<double> pivot, rounded, log_weights;
    std::vector<T> means, factors, starts, near, scales;
    std::vector<unsigned char> widths, group_widths;
    fw::Components<T> view{};

    // Packs an upper triangle in the order in which density.h reads it.
    void pack_triangle(const double *u, size_t d, T *to) const {
        size_t before = 0;
        for (const size_t width : widths) {
            for (size_t f = 0; f < before; ++f)
                for (size_t i = 0; i < width; ++i) *to++ = T(u[f * d + before + i]);
            for (size_t t = 0; t < width; ++t)
                for (size_t i = t; i < width; ++i) *to++ = T(u[(before + t) * d + before + i]);
            before += width;
        }
    }

    // Packs value(j, f) for all components j and features f, by groups of components.
    template <class F> void pack_groups(size_t k, size_t d, std::vector<T> &out, F value) const {
        out.resize(k * d);
        size_t first = 0;
        for (const size_t width : group_widths) {
            for (size_t f = 0; f < d; ++f)
                for (size_t i = 0; i < width; ++i) out[first * d + f * width + i] = T(value(first + i, f));
            first += width;
        }
    }

    void fill(fw::Shape shape, fw::Squares squares, const double *weights, const double *mu, const double *whiten,
              const double *middle, size_t k, size_t d) {
        const size_t columns = (d + 15) / 16 * 16, size = d * (d + 1) / 2;
        pivot.resize(d);
        for (size_t f = 0; f < d; ++f) pivot[f] = double(T(middle[f]));
        log_weights.assign(weights, weights + k);
        means.assign(k * columns, T(0));
        rounded.resize(k * d);
        for (size_t j = 0; j < k; ++j)
            for (size_t f = 0; f < d; ++f) {
                const double mean = mu[j * d + f] - pivot[f];
                means[j * columns + f] = T(mean);
                rounded[j * d + f] = double(T(mean)) - mean;
            }
        widths = even_widths(d);
        group_widths = even_widths(k);
        if (shape == fw::Shape::full) {
            factors.resize(k * size);
            for (size_t j = 0; j < k; ++j) pack_triangle(whiten + j * d * d, d, factors.data() + j * size);
            if (sizeof(T) < sizeof(double)) {
                starts.resize(k * d);
                for (size_t j = 0; j < k; ++j)
                    for (size_t g = 0; g < d; ++g) {
                        double sum = 0;
                        for (size_t f = 0; f <= g; ++f) sum += whiten[(j * d + f) * d + g] * rounded[j * d + f];
                        starts[j * d + g] = T(sum);
                    }
            }
        } else if (shape == fw::Shape::tied) {
            factors.resize(size);
            pack_triangle(whiten, d, factors.data());
            pack_groups(k, d, near, [&](size_t j, size_t g) {
                double sum = 0;
                for (size_t f = 0; f <= g; ++f) sum += double(T(whiten[f * d + g])) * (mu[j * d + f] - pivot[f]);
                return sum;
            });
        } else {
            pack_groups(k, d, near, [&](size_t j, size_t f) { return mu[j * d + f] - pivot[f]; });
            if (shape == fw::Shape::diag)
                pack_groups(k, d, scales, [&](size_t j, size_t f) { return whiten[j * d + f]; });
            else
                scales.assign(whiten, whiten + k);
        }
        view = {k, d, shape, squares, columns, pivot.data(), means.data(), rounded.data(), log_weights.data(), factors.data(),
                starts.empty() ? nullptr : starts.data(), near.data(), scales.data(), widths.data(), widths.size(),
                group_widths.data(), group_widths.size(), 2.0 * double(d) + 64.0};
    }
};

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
    Storage<float> f32_;
    Storage<double> f64_;

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
