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

// Two versions where the linker can choose between them; neither fuses multiplications and additions, so both give the same
// bits.
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__)
#define FW_WIDER __attribute__((target_clones("avx2", "default")))
#else
#define FW_WIDER
#endif

// Squared distances of rows `from` to `from + here` of the transposed rows to one point.
FW_WIDER void distances(const double *xt, size_t n, size_t d, const double *point, size_t from, size_t here, double *out) {
    for (size_t i = 0; i < here; ++i) out[i] = 0;
    for (size_t f = 0; f < d; ++f) {
        const double *column = xt + f * n + from, at = point[f];
        for (size_t i = 0; i < here; ++i) {
            const double away = column[i] - at;
            out[i] += away * away;
        }
    }
}

FW_WIDER void keep_nearest(const double *now, double number, size_t here, double *least, double *next, double *nearest) {
    for (size_t i = 0; i < here; ++i) {
        const double far = now[i] > least[i] ? now[i] : least[i];
        next[i] = far < next[i] ? far : next[i];
        nearest[i] = now[i] < least[i] ? number : nearest[i];
        least[i] = now[i] < least[i] ? now[i] : least[i];
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

class Lloyd {
    const double *x_, *weight_;
    size_t n_, d_, k_;
    std::vector<double> now_, sums_, counts_;

    double weight(size_t i) const { return weight_ ? weight_[i] : 1.0; }

public:
    std::vector<double> centres, closest, second;
    std::vector<int> labels;

    Lloyd(const double *x, const double *weight, size_t n, size_t d, size_t k)
        : x_(x), weight_(weight), n_(n), d_(d), k_(k), now_(chunk), sums_(k * d), counts_(k), centres(k * d), closest(n),
          second(n), labels(n, -1) {}

    // The nearest centre of each row, and the distances to it and to the next; returns the inertia.
    double assign(bool &moved) {
        double inertia = 0;
        moved = false;
        for (size_t from = 0; from < n_; from += chunk) {
            const size_t here = std::min(chunk, n_ - from);
            double nearest[chunk], least[chunk], next[chunk];  // numbers as doubles: the loop below then vectorises
            for (size_t i = 0; i < here; ++i)
                least[i] = next[i] = std::numeric_limits<double>::infinity(), nearest[i] = 0;
            for (size_t j = 0; j < k_; ++j) {
                distances(x_, n_, d_, centres.data() + j * d_, from, here, now_.data());
                keep_nearest(now_.data(), double(j), here, least, next, nearest);
            }
            for (size_t i = 0; i < here; ++i) {
                const int label = int(nearest[i]);
                moved |= labels[from + i] != label;
                labels[from + i] = label;
                closest[from + i] = least[i];
                second[from + i] = next[i];
                inertia += weight(from + i) * least[i];
            }
        }
        return inertia;
    }

    // Centres become the means of their rows; empty ones go to the row that is furthest from its centre.
    void update() {
        std::fill(sums_.begin(), sums_.end(), 0.0);
        std::fill(counts_.begin(), counts_.end(), 0.0);
        for (size_t i = 0; i < n_; ++i) counts_[size_t(labels[i])] += weight(i);
        for (size_t f = 0; f < d_; ++f)
            for (size_t i = 0; i < n_; ++i) sums_[size_t(labels[i]) * d_ + f] += weight(i) * x_[f * n_ + i];
        for (size_t j = 0; j < k_; ++j) {
            if (counts_[j] > 0) {
                for (size_t f = 0; f < d_; ++f) centres[j * d_ + f] = sums_[j * d_ + f] / counts_[j];
                continue;
            }
            const size_t row = size_t(std::max_element(closest.begin(), closest.end()) - closest.begin());
            closest[row] = 0;
            for (size_t f = 0; f < d_; ++f) centres[j * d_ + f] = x_[f * n_ + row];
        }
    }

    // Steps until no label changes, or so many; labels and distances then belong to the centres.
    double run(int steps) {
        bool moved;
        double inertia = assign(moved);
        for (int step = 0; step < steps && moved; ++step) {
            update();
            inertia = assign(moved);
        }
        return inertia;
    }

    // One centre that costs little to remove goes to the cluster with a large inertia, which is cut in two along its widest
    // column; `attempt` says which of the best candidates. False if there are none left.
    bool swap(int attempt) {
        static const int ranks[][2] = {{0, 0}, {0, 1}, {1, 0}, {1, 1}, {0, 2}, {2, 0}, {1, 2}, {2, 1}, {2, 2}, {0, 3}, {3, 0}};
        if (k_ < 3 || attempt >= int(sizeof ranks / sizeof *ranks)) return false;
        std::vector<double> cost(k_, 0.0), inertia(k_, 0.0);
        for (size_t i = 0; i < n_; ++i) {
            cost[size_t(labels[i])] += weight(i) * (second[i] - closest[i]);
            inertia[size_t(labels[i])] += weight(i) * closest[i];
        }
        std::vector<size_t> cheap(k_), wide(k_);
        for (size_t j = 0; j < k_; ++j) cheap[j] = wide[j] = j;
        std::stable_sort(cheap.begin(), cheap.end(), [&](size_t a, size_t b) { return cost[a] < cost[b]; });
        std::stable_sort(wide.begin(), wide.end(), [&](size_t a, size_t b) { return inertia[a] > inertia[b]; });
        const size_t to = wide[std::min(size_t(ranks[attempt][0]), k_ - 1)];
        cheap.erase(std::find(cheap.begin(), cheap.end(), to));
        const size_t gone = cheap[std::min(size_t(ranks[attempt][1]), k_ - 2)];
        double most = 0, mass = 0;
        size_t along = 0;
        for (size_t i = 0; i < n_; ++i) mass += labels[i] == int(to) ? weight(i) : 0.0;
        for (size_t f = 0; f < d_; ++f) {
            double sum = 0;
            for (size_t i = 0; i < n_; ++i)
                if (labels[i] == int(to)) {
                    const double away = x_[f * n_ + i] - centres[to * d_ + f];
                    sum += weight(i) * away * away;
                }
            if (sum > most) most = sum, along = f;
        }
        if (!(most > 0)) return false;
        for (size_t f = 0; f < d_; ++f) centres[gone * d_ + f] = centres[to * d_ + f];
        const double step = 0.8 * std::sqrt(most / mass);
        centres[gone * d_ + along] += step;
        centres[to * d_ + along] -= step;
        return true;
    }
};

// Lloyd steps from these centres, then swaps of centres until `swaps` of them in a row did not lower the inertia, each
// judged after four steps; returns the inertia.
double kmeans_run(Doubles2 xt, Doubles w, Doubles2Out centres, IntsOut labels, int steps, int swaps) {
    const size_t d = xt.shape(0), n = xt.shape(1), k = centres.shape(0);
    require(n > 0 && centres.shape(1) == d && labels.shape(0) == n, "rows, centres and labels do not fit each other");
    nb::gil_scoped_release released;
    Lloyd best(xt.data(), w.is_valid() ? w.data() : nullptr, n, d, k);
    std::copy(centres.data(), centres.data() + k * d, best.centres.begin());
    double inertia = best.run(steps);
    for (int failed = 0, tried = 0; failed < swaps && tried < 10 * swaps; ++tried) {
        Lloyd other = best;
        if (!other.swap(failed)) break;
        const double after = other.run(4);
        const bool better = after < inertia * (1 - 1e-4);
        failed = better ? 0 : failed + 1;
        if (better) {
            inertia = after;
            std::swap(best, other);
        }
    }
    if (swaps > 0) inertia = best.run(steps);
    std::copy(best.centres.begin(), best.centres.end(), centres.data());
    std::copy(best.labels.begin(), best.labels.end(), labels.data());
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
    const auto xt = nb::arg("xt").noconvert();
    const auto w = nb::arg("row_weights").noconvert().none();
    m.def("kmeans_seed", &kmeans_seed, xt, w, nb::arg("uniforms").noconvert(), nb::arg("chosen").noconvert());
    m.def("kmeans_run", &kmeans_run, xt, w, nb::arg("centres").noconvert(), nb::arg("labels").noconvert(), nb::arg("steps"),
          nb::arg("swaps"));
    m.def("label_moments", &label_moments, nb::arg("rows").noconvert(), w, nb::arg("labels").noconvert(),
          nb::arg("counts").noconvert(), nb::arg("means").noconvert(), nb::arg("scatter").noconvert());
}
