// Several starts of k-means on rows in memory: greedy k-means++ and a few Lloyd steps each, of which the best goes on.
//
// For tables too large for the search of small_table.cpp, and samples of large ones. The result is only a set of initial
// centres, so rows are kept in float32, less their mean, and compared by products. Products are not fused and sums have a fixed
// order (see CMakeLists.txt): the same bits on every processor, with one thread and with two.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>

#include <algorithm>
#include <cmath>
#include <future>
#include <limits>
#include <memory>
#include <numeric>
#include <optional>
#include <vector>

#include "brief_kernels.h"
#include "random.h"

namespace nb = nanobind;

namespace {

using std::size_t;

constexpr double kSettled = 1e-6;  // a step that lowers the inertia by a smaller share is the last; exact steps follow
constexpr size_t kThreadsPay = 200'000;  // values compared in one step, below which a second thread costs more than it gains

// The distinct rows in lexicographic order, less their mean, with their weights: neither repetition nor order matters. Rows of
// weight 0 are left out.
struct Table {
    size_t n = 0, d = 0, blocks = 0;
    double total = 0;                            // weight
    std::vector<double> mean;                    // in the units of the data
    std::vector<float> weight, square;           // zeros fill the last block, as those of the rows
    std::unique_ptr<float[]> rows;
    std::unique_ptr<float[]> columns;            // the rows again in blocks, each stored by columns

    template <class T>
    Table(const T *x, const double *w, size_t count, size_t d, double scale, size_t threads) : d(d), mean(d, 0.0) {
        struct Key {  // the first value beside the number: most comparisons look no further
            T first;
            uint32_t row;
        };
        std::vector<Key> order;
        order.reserve(count);
        for (size_t i = 0; i < count; ++i)
            if (!w || w[i] > 0) order.push_back({x[i * d], uint32_t(i)});
        const auto compare = [&](const Key &a, const Key &b) {
            if (a.first != b.first) return a.first < b.first ? -1 : 1;
            const T *one = x + a.row * d, *other = x + b.row * d;
            for (size_t c = 1; c < d; ++c)
                if (one[c] != other[c]) return one[c] < other[c] ? -1 : 1;
            return 0;
        };
        std::sort(order.begin(), order.end(), [&](const Key &a, const Key &b) {
            const int sign = compare(a, b);
            return sign ? sign < 0 : (w && w[a.row] < w[b.row]);  // so that the weights of equal rows are added in order
        });
        std::vector<double> mass;
        std::vector<uint32_t> kept;
        mass.reserve(order.size());
        kept.reserve(order.size());
        for (size_t i = 0; i < order.size(); ++i) {
            const double own = w ? w[order[i].row] : 1.0;
            if (i && !compare(order[i - 1], order[i])) {
                mass.back() += own;
                continue;
            }
            kept.push_back(order[i].row);
            mass.push_back(own);
        }
        n = kept.size();
        std::vector<double> share(n);
        for (size_t i = 0; i < n; ++i) {
            total += mass[i];  // a running mean: sums of huge weights could leave the range of numbers
            share[i] = mass[i] / total;
        }
        shared(threads, d, [&](size_t from, size_t to) {  // by columns, so that the order of the rows stays
            double *__restrict middle = mean.data();
            for (size_t i = 0; i < n; ++i) {
                const T *__restrict row = x + kept[i] * d;
                const double own = share[i];
                for (size_t c = from; c < to; ++c) middle[c] += (double(row[c]) - middle[c]) * own;
            }
        });
        const double heaviest = n ? *std::max_element(mass.begin(), mass.end()) : 1.0;
        blocks = (n + kBlock - 1) / kBlock;
        rows.reset(new float[blocks * d * kBlock]);  // not cleared: all is written below
        columns.reset(new float[blocks * d * kBlock]);
        weight.assign(blocks * kBlock, 0.0f);
        square.assign(blocks * kBlock, 0.0f);
        shared(threads, blocks, [&](size_t from, size_t to) {
            for (size_t b = from; b < to; ++b) fill_block(b, x, kept, scale);
        });
        total = 0;
        for (size_t i = 0; i < n; ++i) {
            weight[i] = float(mass[i] / heaviest);
            total += double(weight[i]);
        }
    }

    const float *row(size_t i) const { return rows.get() + i * d; }
    const float *block(size_t b) const { return columns.get() + b * d * kBlock; }

  private:
    // Calls work(from, to) for the parts of a range: two at the same time if that pays.
    template <class Work> void shared(size_t threads, size_t end, const Work &work) const {
        if (threads < 2 || n * d < kThreadsPay) return work(0, end);
        auto other = std::async(std::launch::async, [&] { work(end / 2, end); });
        work(0, end / 2);
        other.get();
    }

    // The rows of a block, the same by columns, and their squared lengths: in one go, while they are in the cache.
    template <class T> void fill_block(size_t b, const T *x, const std::vector<uint32_t> &kept, double scale) {
        const size_t first = b * kBlock, here = std::min(kBlock, n - first);
        float *own = rows.get() + first * d, *turned = columns.get() + first * d;
        for (size_t r = 0; r < here; ++r) {
            const T *__restrict row = x + size_t(kept[first + r]) * d;
            const double *__restrict middle = mean.data();
            float *__restrict to = own + r * d;
            for (size_t c = 0; c < d; ++c) to[c] = float((double(row[c]) - middle[c]) * scale);
        }
        std::fill(own + here * d, own + kBlock * d, 0.0f);
        for (size_t some = 0; some < d; some += kLanes)  // a few columns at a time: lines stay in the cache
            for (size_t r = 0; r < kBlock; ++r)
                for (size_t c = some; c < std::min(some + kLanes, d); ++c) turned[c * kBlock + r] = own[r * d + c];
        double sums[kBlock] = {};
        for (size_t c = 0; c < d; ++c)
            for (size_t r = 0; r < kBlock; ++r) sums[r] += double(turned[c * kBlock + r]) * double(turned[c * kBlock + r]);
        for (size_t r = 0; r < here; ++r) square[first + r] = float(sums[r]);
    }
};

struct Clustering {
    double value = std::numeric_limits<double>::infinity();
    std::vector<float> centres, label;
};

class Maker {
  public:
    Maker(const Table &table, size_t k)
        : t_(table), k_(k), trials_(2 + size_t(std::log(double(k)))), half_(std::max(k, trials_)),
          product_(std::max(k, trials_) * kBlock), sums_(k * table.d), mass_(k), far_(k), far_row_(k) {}

    // A greedy k-means++ start (Arthur and Vassilvitskii 2007) and at most so many steps from it.
    Clustering start(uint64_t seed, size_t steps) {
        fw::Random random(seed);
        Clustering now;
        seeds(now, random);
        descend(now, steps);
        return now;
    }

    // Lloyd steps until they gain next to nothing, at most so many; centres, labels and value then belong together.
    void descend(Clustering &now, size_t steps) {
        std::fill(sums_.begin(), sums_.end(), 0.0);
        std::fill(mass_.begin(), mass_.end(), 0.0);
        now.label.assign(t_.blocks * kBlock, -1.0f);
        assign(now);
        for (size_t step = 0; step < steps; ++step) {
            move_centres(now);
            const double before = now.value;
            assign(now);
            if (!(before - now.value > kSettled * before)) break;
        }
    }

  private:
    // Centres become the means of their rows.
    void move_centres(Clustering &now) {
        size_t empty = 0;
        for (size_t j = 0; j < k_; ++j) {
            if (mass_[j] > kNothing)
                for (size_t c = 0; c < t_.d; ++c) now.centres[j * t_.d + c] = float(sums_[j * t_.d + c] / mass_[j]);
            else if (empty < kept())  // the row farthest from its centre, then the next
                std::copy_n(t_.row(far_row_[kept() - ++empty]), t_.d, &now.centres[j * t_.d]);
        }
    }

    void halve(const float *points, size_t count) {
        for (size_t j = 0; j < count; ++j) {
            double sum = 0;
            for (size_t c = 0; c < t_.d; ++c) sum += double(points[j * t_.d + c]) * double(points[j * t_.d + c]);
            half_[j] = float(sum / 2);
        }
    }

    void assign(Clustering &now) {
        halve(now.centres.data(), k_);
        now.value = 0;
        std::fill(far_.begin(), far_.end(), -1.0f);
        float best[kBlock], label[kBlock], away[kBlock];
        for (size_t b = 0; b < t_.blocks; ++b) {
            products(t_.block(b), t_.d, now.centres.data(), half_.data(), k_, product_.data());
            largest(product_.data(), k_, best, label);
            const size_t first = b * kBlock, here = std::min(kBlock, t_.n - first);
            const Glance seen = distances(best, &t_.square[first], &now.label[first], label, away);
            double sum = 0;
            for (size_t r = 0; r < here; ++r) sum += double(t_.weight[first + r]) * double(away[r]);
            now.value += sum;
            if (seen.farthest > far_[0])  // after the first blocks and steps, few have such a row, or one that moves
                for (size_t r = 0; r < here; ++r)
                    if (away[r] > far_[0]) remember(away[r], first + r);
            if (seen.moved)
                for (size_t r = 0; r < here; ++r) move(now.label[first + r], label[r], first + r);
        }
    }

    void move(float &known, float label, size_t row) {
        if (known == label) return;
        const double w = double(t_.weight[row]);
        if (known >= 0) add(row, size_t(known), -w);
        add(row, size_t(label), w);
        known = label;
    }

    void add(size_t i, size_t cluster, double w) {
        mass_[cluster] += w;
        add_row(t_.row(i), t_.d, w, &sums_[cluster * t_.d]);
    }

    size_t kept() const { return std::min(kFar, k_); }

    // The few rows farthest from their centres, the farthest last: for clusters that lose all rows.
    void remember(float away, size_t row) {
        size_t at = 0;
        while (at + 1 < kept() && away > far_[at + 1]) ++at;
        for (size_t i = 0; i < at; ++i) far_[i] = far_[i + 1], far_row_[i] = far_row_[i + 1];
        far_[at] = away;
        far_row_[at] = row;
    }

    void seeds(Clustering &now, fw::Random &random) {
        const size_t d = t_.d, padded = t_.blocks * kBlock;
        now.centres.assign(k_ * d, 0.0f);
        std::vector<float> closest(padded, std::numeric_limits<float>::max()), points(trials_ * d);
        std::vector<std::vector<float>> with(trials_, std::vector<float>(padded));
        std::vector<double> masses(t_.blocks), totals(trials_);
        std::vector<std::vector<double>> masses_with(trials_, std::vector<double>(t_.blocks));
        for (size_t b = 0; b < t_.blocks; ++b)
            masses[b] = std::accumulate(&t_.weight[b * kBlock], &t_.weight[b * kBlock] + kBlock, 0.0);
        for (size_t j = 0; j < k_; ++j) {
            const size_t trials = j ? trials_ : 1;
            for (size_t t = 0; t < trials; ++t)
                std::copy_n(t_.row(draw(j ? closest.data() : nullptr, masses, random)), d, &points[t * d]);
            halve(points.data(), trials);
            for (size_t b = 0; b < t_.blocks; ++b) {
                products(t_.block(b), d, points.data(), half_.data(), trials, product_.data());
                const size_t first = b * kBlock;
                for (size_t t = 0; t < trials; ++t)
                    masses_with[t][b] = closer(&product_[t * kBlock], &t_.square[first], &closest[first], &t_.weight[first], &with[t][first]);
            }
            for (size_t t = 0; t < trials; ++t) totals[t] = std::accumulate(masses_with[t].begin(), masses_with[t].end(), 0.0);
            const size_t best = size_t(std::min_element(totals.begin(), totals.begin() + ptrdiff_t(trials)) - totals.begin());
            std::copy(&points[best * d], &points[best * d] + d, &now.centres[j * d]);
            closest.swap(with[best]);
            masses.swap(masses_with[best]);
        }
    }

    // A row drawn in proportion to weight times squared distance, or to weight alone.
    size_t draw(const float *closest, const std::vector<double> &masses, fw::Random &random) const {
        double left = random.uniform() * std::accumulate(masses.begin(), masses.end(), 0.0);
        size_t b = 0;
        for (; b + 1 < t_.blocks && left >= masses[b]; ++b) left -= masses[b];
        const size_t end = std::min(t_.n, (b + 1) * kBlock);
        size_t last = b * kBlock;
        for (size_t i = b * kBlock; i < end; ++i) {
            const double mass = double(t_.weight[i]) * (closest ? double(closest[i]) : 1.0);
            if (!(mass > 0)) continue;
            last = i;
            left -= mass;
            if (left < 0) break;
        }
        return last;
    }

    static constexpr size_t kFar = 8;
    static constexpr double kNothing = 1e-9;  // what rounding may leave of the weight of an empty cluster

    const Table &t_;
    size_t k_, trials_;
    std::vector<float> half_, product_;
    std::vector<double> sums_, mass_;
    std::vector<float> far_;
    std::vector<size_t> far_row_;
};

using Rows32 = nb::ndarray<const float, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Rows64 = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Line = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Out = nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

// Writes the centres found into `out` (k x d), the largest cluster first, and returns the mean squared distance of the rows,
// times `scale` squared. Each of the starts takes `steps` steps, and the best at most `further` more.
template <class Rows>
double brief_starts(Rows x, std::optional<Line> weights, double scale, uint64_t seed, size_t starts, size_t steps,
                    size_t further, size_t threads, Out out) {
    const size_t k = out.shape(0), d = out.shape(1);
    if (x.shape(1) != d || k == 0 || starts == 0 || x.shape(0) == 0 || (weights && weights->shape(0) != x.shape(0)))
        throw nb::value_error("rows, weights and centres do not fit each other");
    nb::gil_scoped_release released;
    const Table table(x.data(), weights ? weights->data() : nullptr, x.shape(0), d, scale, threads);
    if (table.n == 0) throw nb::value_error("no row has weight");
    Maker makers[2] = {Maker(table, k), Maker(table, k)};
    fw::Random random(seed);
    const bool two = threads > 1 && table.n * k * d >= kThreadsPay;
    Clustering best;
    for (size_t i = 0; i < starts; i += 2) {
        // Two at a time, each from its own random stream, so that the number of threads does not matter.
        const uint64_t seeds[2] = {random.next(), random.next()};
        const size_t count = std::min(starts - i, size_t(2));
        Clustering made[2];
        const auto run = [&](size_t which) { made[which] = makers[which].start(seeds[which], steps); };
        if (two && count == 2) {
            auto other = std::async(std::launch::async, run, 1);
            run(0);
            other.get();
        } else
            for (size_t which = 0; which < count; ++which) run(which);
        for (size_t which = 0; which < count; ++which)
            if (made[which].value < best.value || best.centres.empty()) best = std::move(made[which]);
    }
    if (further) makers[0].descend(best, further);
    std::vector<double> size_of(k, 0.0);
    for (size_t i = 0; i < table.n; ++i) size_of[size_t(best.label[i])] += double(table.weight[i]);
    std::vector<size_t> order(k);
    std::iota(order.begin(), order.end(), size_t(0));
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return size_of[a] > size_of[b]; });
    for (size_t j = 0; j < k; ++j)
        for (size_t f = 0; f < d; ++f) out.data()[j * d + f] = double(best.centres[order[j] * d + f]) / scale + table.mean[f];
    return best.value / table.total;
}

template <class Rows> void define(nb::module_ &m) {
    m.def("brief_starts", &brief_starts<Rows>, nb::arg("x").noconvert(), nb::arg("weights").noconvert().none(), nb::arg("scale"),
          nb::arg("seed"), nb::arg("starts"), nb::arg("steps"), nb::arg("further"), nb::arg("threads"),
          nb::arg("out").noconvert());
}

}  // namespace

void register_brief_starts(nb::module_ &m) {
    define<Rows32>(m);
    define<Rows64>(m);
}
