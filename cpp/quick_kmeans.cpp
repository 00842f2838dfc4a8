// Seeds and Lloyd steps over a few thousand rows in memory, and the moments of the rows of each label: where the search
// for a mixture begins. The k-means of users goes over blocks, with bounds and exact sums; here a start is all that is needed.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace nb = nanobind;

namespace {

template <class... Extra> using Array = nb::ndarray<nb::c_contig, nb::device::cpu, Extra...>;
using Doubles = Array<const double, nb::ndim<1>>;
using Doubles2 = Array<const double, nb::ndim<2>>;
using DoublesOut = Array<double, nb::ndim<1>>;
using Doubles2Out = Array<double, nb::ndim<2>>;
using DoublesAnyOut = Array<double>;
using Ints = Array<const int, nb::ndim<1>>;
using IntsOut = Array<int, nb::ndim<1>>;

constexpr size_t chunk = 256;

void require(bool condition, const char *message) {
    if (!condition) throw nb::value_error(message);
}

// Squared distances of rows `from` to `from + here` of the transposed rows to one point.
void distances(const double *xt, size_t n, size_t d, const double *point, size_t from, size_t here, double *out) {
    for (size_t i = 0; i < here; ++i) out[i] = 0;
    for (size_t f = 0; f < d; ++f) {
        const double *column = xt + f * n + from, at = point[f];
        for (size_t i = 0; i < here; ++i) {
            const double away = column[i] - at;
            out[i] += away * away;
        }
    }
}

// Greedy k-means++: of each group of candidates, drawn by their distance to what is chosen, the one that lowers the sum most.
void kmeans_seed(Doubles2 xt, Doubles w, Doubles2 uniforms, IntsOut chosen) {
    const size_t d = xt.shape(0), n = xt.shape(1), k = chosen.shape(0), trials = uniforms.shape(1);
    require(n > 0 && uniforms.shape(0) == k && trials > 0, "uniform numbers for each seed");
    const double *x = xt.data(), *weight = w.is_valid() ? w.data() : nullptr;
    nb::gil_scoped_release released;
    std::vector<double> closest(n, std::numeric_limits<double>::infinity()), now(n), best(n), point(d), running(n);
    for (size_t j = 0; j < k; ++j) {
        double sum = 0;
        for (size_t i = 0; i < n; ++i) {
            const double share = j == 0 ? 1.0 : closest[i];
            sum += weight ? weight[i] * share : share;
            running[i] = sum;
        }
        double least = std::numeric_limits<double>::infinity();
        for (size_t t = 0; t < (j == 0 ? 1 : trials); ++t) {
            const double mark = uniforms.data()[j * trials + t] * sum;
            size_t row = size_t(std::upper_bound(running.begin(), running.end(), mark) - running.begin());
            row = std::min(row, n - 1);
            for (size_t f = 0; f < d; ++f) point[f] = x[f * n + row];
            distances(x, n, d, point.data(), 0, n, now.data());
            double total = 0;
            for (size_t i = 0; i < n; ++i) {
                now[i] = std::min(now[i], closest[i]);
                total += weight ? weight[i] * now[i] : now[i];
            }
            if (total < least) {
                least = total;
                chosen.data()[j] = int(row);
                std::swap(now, best);
            }
        }
        std::swap(closest, best);
    }
}

// Lloyd steps until no label changes, or so many; returns the inertia of the last assignment. Empty clusters get the row
// that is furthest from its centre.
double kmeans_run(Doubles2 xt, Doubles w, Doubles2Out centres, IntsOut labels, int steps) {
    const size_t d = xt.shape(0), n = xt.shape(1), k = centres.shape(0);
    require(n > 0 && centres.shape(1) == d && labels.shape(0) == n, "rows, centres and labels do not fit each other");
    const double *x = xt.data(), *weight = w.is_valid() ? w.data() : nullptr;
    double *c = centres.data();
    int *label = labels.data();
    nb::gil_scoped_release released;
    std::vector<double> closest(n), now(chunk), sums(k * d), counts(k);
    double inertia = 0;
    for (int step = 0; step < steps; ++step) {
        bool moved = step == 0;
        inertia = 0;
        for (size_t from = 0; from < n; from += chunk) {
            const size_t here = std::min(chunk, n - from);
            int nearest[chunk];
            double least[chunk];
            for (size_t i = 0; i < here; ++i) least[i] = std::numeric_limits<double>::infinity(), nearest[i] = 0;
            for (size_t j = 0; j < k; ++j) {
                distances(x, n, d, c + j * d, from, here, now.data());
                for (size_t i = 0; i < here; ++i) {
                    const bool closer = now[i] < least[i];
                    least[i] = closer ? now[i] : least[i];
                    nearest[i] = closer ? int(j) : nearest[i];
                }
            }
            for (size_t i = 0; i < here; ++i) {
                moved |= label[from + i] != nearest[i];
                label[from + i] = nearest[i];
                closest[from + i] = least[i];
                inertia += (weight ? weight[from + i] : 1.0) * least[i];
            }
        }
        if (!moved) break;
        std::fill(sums.begin(), sums.end(), 0.0);
        std::fill(counts.begin(), counts.end(), 0.0);
        for (size_t i = 0; i < n; ++i) counts[size_t(label[i])] += weight ? weight[i] : 1.0;
        for (size_t f = 0; f < d; ++f)
            for (size_t i = 0; i < n; ++i) sums[size_t(label[i]) * d + f] += (weight ? weight[i] : 1.0) * x[f * n + i];
        for (size_t j = 0; j < k; ++j) {
            if (counts[j] > 0) {
                for (size_t f = 0; f < d; ++f) c[j * d + f] = sums[j * d + f] / counts[j];
                continue;
            }
            const size_t row = size_t(std::max_element(closest.begin(), closest.end()) - closest.begin());
            closest[row] = 0;
            for (size_t f = 0; f < d; ++f) c[j * d + f] = x[f * n + row];
        }
    }
    return inertia;
}

// Weight, mean and scatter (k x d x d) of the rows of each label, about its mean.
void label_moments(Doubles2 rows, Doubles w, Ints labels, DoublesOut counts, Doubles2Out means, DoublesAnyOut scatter) {
    const size_t n = rows.shape(0), d = rows.shape(1), k = counts.shape(0);
    require(labels.shape(0) == n && means.shape(0) == k && means.shape(1) == d && scatter.size() == k * d * d,
            "rows, labels and moments do not fit each other");
    const double *x = rows.data(), *weight = w.is_valid() ? w.data() : nullptr;
    double *count = counts.data(), *mean = means.data(), *out = scatter.data();
    nb::gil_scoped_release released;
    std::fill(count, count + k, 0.0);
    std::fill(mean, mean + k * d, 0.0);
    std::fill(out, out + k * d * d, 0.0);
    for (size_t i = 0; i < n; ++i) {
        const size_t j = size_t(labels.data()[i]);
        const double share = weight ? weight[i] : 1.0;
        count[j] += share;
        for (size_t f = 0; f < d; ++f) mean[j * d + f] += share * x[i * d + f];
    }
    for (size_t j = 0; j < k; ++j)
        for (size_t f = 0; f < d; ++f) mean[j * d + f] /= count[j] > 0 ? count[j] : 1.0;
    std::vector<double> away(d);
    for (size_t i = 0; i < n; ++i) {
        const size_t j = size_t(labels.data()[i]);
        const double share = weight ? weight[i] : 1.0;
        double *to = out + j * d * d;
        for (size_t f = 0; f < d; ++f) away[f] = x[i * d + f] - mean[j * d + f];
        for (size_t f = 0; f < d; ++f) {
            const double part = share * away[f];
            for (size_t g = 0; g <= f; ++g) to[f * d + g] += part * away[g];
        }
    }
    for (size_t j = 0; j < k; ++j)
        for (size_t f = 0; f < d; ++f)
            for (size_t g = 0; g < f; ++g) out[j * d * d + g * d + f] = out[j * d * d + f * d + g];
}

}  // namespace

void register_quick_kmeans(nb::module_ &m) {
    const auto xt = nb::arg("xt").noconvert(), w = nb::arg("row_weights").noconvert().none();
    m.def("kmeans_seed", &kmeans_seed, xt, w, nb::arg("uniforms").noconvert(), nb::arg("chosen").noconvert());
    m.def("kmeans_run", &kmeans_run, xt, w, nb::arg("centres").noconvert(), nb::arg("labels").noconvert(), nb::arg("steps"));
    m.def("label_moments", &label_moments, nb::arg("rows").noconvert(), w, nb::arg("labels").noconvert(),
          nb::arg("counts").noconvert(), nb::arg("means").noconvert(), nb::arg("scatter").noconvert());
}
