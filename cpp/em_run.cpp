// Runs of EM in memory, and the search for a better optimum by moves away from one.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/tuple.h>

#include <algorithm>
#include <array>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "em_run.h"

namespace nb = nanobind;

namespace {

using fw::Shape;
using namespace fw::em;

template <class... Extra> using Array = nb::ndarray<nb::c_contig, nb::device::cpu, Extra...>;
using Doubles = Array<const double, nb::ndim<1>>;
using Doubles2 = Array<const double, nb::ndim<2>>;
using Ints = Array<const int64_t, nb::ndim<1>>;
using DoublesOut = Array<double, nb::ndim<1>>;
using Doubles2Out = Array<double, nb::ndim<2>>;
using DoublesAnyOut = Array<double>;

constexpr size_t most_splits = 5, most_merges = 4;
constexpr double apart = 0.8;                // of a standard deviation: halves of a component are moved so far to either side
constexpr double narrow = 0.3, wide = 1.7;   // of the covariance: a core and what is around it
constexpr double no_share = 1e-9;            // of a row: not counted
constexpr int first_steps = 5;               // of each move
constexpr int power_steps = 60;              // of the iteration that finds an axis

// Two components are merged, and another is split along its longest axis (0), the next (1), or into core and surroundings (-1).
struct Move {
    size_t first, second, split;
    int how;
};

// A covariance matrix and its two longest axes, each as long as the standard deviation along it.
struct Axes {
    std::vector<double> covariance;
    std::array<std::vector<double>, 2> along;
};

void longest_axis(std::vector<double> c, size_t d, std::vector<double> &along) {
    size_t start = 0;
    for (size_t f = 1; f < d; ++f)
        if (c[f * d + f] > c[start * d + start]) start = f;
    along.assign(c.begin() + long(start * d), c.begin() + long((start + 1) * d));
    double length = 0;
    std::vector<double> next(d);
    for (int step = 0; step <= power_steps; ++step) {
        length = 0;
        for (const double a : along) length += a * a;
        length = std::sqrt(length);
        if (!(length > 0)) return;
        for (double &a : along) a /= length;
        if (step == power_steps) break;
        for (size_t f = 0; f < d; ++f) {
            double sum = 0;
            for (size_t g = 0; g < d; ++g) sum += c[f * d + g] * along[g];
            next[f] = sum;
        }
        std::swap(along, next);
    }
    // The length of the last product is the variance along the axis. Whichever way round it was found, it points one way.
    size_t largest = 0;
    for (size_t f = 1; f < d; ++f)
        if (std::abs(along[f]) > std::abs(along[largest])) largest = f;
    const double scale = std::copysign(std::sqrt(length), along[largest]);
    for (double &a : along) a *= scale;
}

// What can be tried from one model.
class Moves {
    const Run &run_;
    const Model &from_;
    const size_t n_, k_, d_;
    std::vector<double> shares_, counts_;
    std::map<size_t, Axes> axes_;

public:
    std::vector<Move> list;  // the most promising first: components whose rows look least like them, pairs that share most rows

    Moves(Run &run, const Model &from, size_t most)
        : run_(run), from_(from), n_(run.rows()), k_(run.components()), d_(run.columns()) {
        std::vector<double> total(n_);
        shares_.resize(n_ * k_);
        run.set_power(1);
        if (k_ < 3 || !run.compare(from, total.data(), shares_.data())) return;
        counts_.assign(k_, 1e-300);
        std::vector<double> misfit(k_), together(k_ * k_);
        std::vector<size_t> some(k_);
        for (size_t i = 0; i < n_; ++i) {
            double *share = shares_.data() + i * k_;
            size_t found = 0;
            for (size_t j = 0; j < k_; ++j) {
                share[j] = std::exp(share[j]) * run.weight(i);
                if (share[j] > no_share * run.weight(i)) some[found++] = j;
            }
            for (size_t a = 0; a < found; ++a) {
                counts_[some[a]] += share[some[a]];
                misfit[some[a]] -= share[some[a]] * total[i];
                for (size_t b = 0; b <= a; ++b) together[some[b] * k_ + some[a]] += share[some[a]] * share[some[b]];
            }
        }
        // The divergence of the rows of a component, as weighted points, from its density.
        for (size_t j = 0; j < k_; ++j) misfit[j] = misfit[j] / counts_[j] + std::log(from.weights[j] / counts_[j]);
        std::vector<std::pair<double, std::pair<size_t, size_t>>> pairs;
        for (size_t a = 0; a < k_; ++a)
            for (size_t b = a + 1; b < k_; ++b) {
                const double sizes = std::max(together[a * k_ + a] * together[b * k_ + b], 1e-300);
                pairs.push_back({-together[a * k_ + b] / std::sqrt(sizes), {a, b}});
            }
        std::sort(pairs.begin(), pairs.end());
        if (pairs.size() > 4 * most_merges) pairs.resize(4 * most_merges);
        std::vector<size_t> splits(k_);
        for (size_t j = 0; j < k_; ++j) splits[j] = j;
        std::stable_sort(splits.begin(), splits.end(), [&](size_t a, size_t b) { return misfit[a] > misfit[b]; });
        splits.resize(std::min(k_, most_splits));
        std::vector<int> ways{0};
        if (run.shape() != Shape::tied) ways.push_back(-1);
        if (d_ > 1) ways.push_back(1);
        std::vector<std::pair<std::array<size_t, 4>, Move>> ranked;
        for (size_t s = 0; s < splits.size(); ++s) {
            size_t m = 0;
            for (const auto &[_, pair] : pairs) {
                if (splits[s] == pair.first || splits[s] == pair.second) continue;
                for (size_t w = 0; w < ways.size(); ++w)
                    ranked.push_back({{s + m + w, w, s, m}, {pair.first, pair.second, splits[s], ways[w]}});
                if (++m == most_merges) break;
            }
        }
        std::sort(ranked.begin(), ranked.end(), [](const auto &a, const auto &b) { return a.first < b.first; });
        for (size_t i = 0; i < ranked.size() && i < most; ++i) list.push_back(ranked[i].second);
    }

    // The model after a move: a start for a run.
    void apply(const Move &move, Model &to) {
        to = from_;
        const auto [a, b, split, how] = move;
        const double both = from_.weights[a] + from_.weights[b], share = from_.weights[a] / both;
        const Axes &axes = axes_of(split);
        to.weights[a] = both;
        to.weights[b] = to.weights[split] = from_.weights[split] / 2;
        std::vector<double> away(d_), along(d_);
        for (size_t f = 0; f < d_; ++f) {
            away[f] = from_.means[a * d_ + f] - from_.means[b * d_ + f];
            if (how >= 0) along[f] = apart * axes.along[size_t(how)][f];
            to.means[a * d_ + f] = from_.means[b * d_ + f] + share * away[f];
            to.means[b * d_ + f] = from_.means[split * d_ + f] - along[f];
            to.means[split * d_ + f] = from_.means[split * d_ + f] + along[f];
        }
        const double first = how < 0 ? narrow : 1, second = how < 0 ? wide : 1;
        const auto old = [&](size_t j, size_t f, size_t g) {
            return run_.shape() == Shape::full   ? from_.covariances[(j * d_ + f) * d_ + g]
                   : run_.shape() == Shape::diag ? from_.covariances[j * d_ + f]
                                                 : from_.covariances[j];
        };
        const auto merged = [&](size_t f, size_t g) {
            return share * old(a, f, g) + (1 - share) * old(b, f, g) + share * (1 - share) * away[f] * away[g];
        };
        const auto half = [&](double factor, size_t f, size_t g) {
            return factor * axes.covariance[f * d_ + g] - along[f] * along[g] + (f == g ? run_.ridge(f) : 0);
        };
        if (run_.shape() == Shape::full) {
            for (size_t f = 0; f < d_; ++f)
                for (size_t g = 0; g < d_; ++g) {
                    to.covariances[(a * d_ + f) * d_ + g] = merged(f, g);
                    to.covariances[(b * d_ + f) * d_ + g] = half(second, f, g);
                    to.covariances[(split * d_ + f) * d_ + g] = half(first, f, g);
                }
        } else if (run_.shape() == Shape::diag) {
            for (size_t f = 0; f < d_; ++f) {
                to.covariances[a * d_ + f] = merged(f, f);
                to.covariances[b * d_ + f] = half(second, f, f);
                to.covariances[split * d_ + f] = half(first, f, f);
            }
        } else if (run_.shape() == Shape::spherical) {
            double of_a = 0, of_b = 0, of_split = 0;
            for (size_t f = 0; f < d_; ++f) of_a += merged(f, f), of_b += half(second, f, f), of_split += half(first, f, f);
            to.covariances[a] = of_a / double(d_);
            to.covariances[b] = of_b / double(d_);
            to.covariances[split] = of_split / double(d_);
        }
    }

private:
    // Of a component's rows, whatever shape its type allows.
    const Axes &axes_of(size_t j) {
        const auto [at, fresh] = axes_.try_emplace(j);
        Axes &axes = at->second;
        if (!fresh) return axes;
        std::vector<double> &c = axes.covariance, away(d_);
        c.assign(d_ * d_, 0.0);
        const double *mean = from_.means.data() + j * d_;
        for (size_t i = 0; i < n_; ++i) {
            const double share = shares_[i * k_ + j] / counts_[j];
            if (!(share * counts_[j] > no_share * run_.weight(i))) continue;
            for (size_t f = 0; f < d_; ++f) away[f] = run_.row(i)[f] - mean[f];
            for (size_t f = 0; f < d_; ++f) {
                const double by = share * away[f];
                for (size_t g = 0; g <= f; ++g) c[f * d_ + g] += by * away[g];
            }
        }
        for (size_t f = 0; f < d_; ++f)
            for (size_t g = 0; g < f; ++g) c[g * d_ + f] = c[f * d_ + g];
        longest_axis(c, d_, axes.along[0]);
        if (d_ > 1) {
            std::vector<double> less = c;
            for (size_t f = 0; f < d_; ++f)
                for (size_t g = 0; g < d_; ++g) less[f * d_ + g] -= axes.along[0][f] * axes.along[0][g];
            longest_axis(std::move(less), d_, axes.along[1]);
        }
        return axes;
    }
};

// Moves from one best model to the next.
class Improving {
    Run &run_;
    const double tol_, gain_, ahead_, each_, until_;
    const int64_t *judged_;
    const size_t judgements_;
    Interrupts interrupts_;

public:
    double steps = 0;  // taken

    Improving(Run &run, double tol, double gain, double ahead, double each, double until, const int64_t *judged, size_t judgements)
        : run_(run), tol_(tol), gain_(gain), ahead_(ahead), each_(each), until_(until), judged_(judged),
          judgements_(judgements) {}

    double from(Model &best, double bound, size_t patience, const double *powers, size_t n_powers) {
        Model other = best;
        size_t power = 0;
        for (bool better = true; better;) {
            better = false;
            Moves moves(run_, best, patience);
            for (size_t turn = 0; !better && (turn < moves.list.size() || turn < n_powers); ++turn) {
                for (const bool soft : {false, true}) {
                    if (better || turn >= (soft ? n_powers : moves.list.size())) continue;
                    if (steps >= until_) return bound;
                    steps += each_;
                    if (soft) {
                        other = best;
                        const double *with = powers + 2 * (power++ % n_powers);
                        if (go(other, int(with[1]), with[0]) == -INFINITY) continue;
                    } else
                        moves.apply(moves.list[turn], other);
                    const double found = judge(other, bound);
                    if (!(found > bound + gain_)) continue;
                    bound = found;
                    std::swap(best, other);
                    better = true;
                }
            }
        }
        return bound;
    }

private:
    double go(Model &model, int most, double power) {
        const Ended ended = run_steps(run_, model, most, tol_, power, interrupts_);
        steps += ended.done;
        return ended.status == collapsed ? -INFINITY : ended.bound;
    }

    // The bound after a run for as long as it may still reach the aim.
    double judge(Model &model, double aim) {
        double bound = go(model, first_steps, 1);
        for (size_t i = 0; i < judgements_; ++i) {
            if (bound == -INFINITY || bound > aim + gain_) break;
            const double before = bound;
            bound = go(model, int(judged_[i]), 1);
            if (bound + (bound - before) / double(judged_[i]) * ahead_ < aim) break;
        }
        return bound;
    }
};

// A run and a model in arrays that fit each other.
struct Given {
    Run run;
    Model model;
    double *weights, *means, *covariances;

    Given(int kind, int squares, const Doubles2 &x, const Doubles &w, const Doubles &ridge, DoublesOut &weights_,
          Doubles2Out &means_, DoublesAnyOut &covariances_, double least, double limit, double many)
        : run(Shape(kind), fw::Squares(squares), x.data(), w.is_valid() ? w.data() : nullptr, ridge.data(), x.shape(0),
              means_.shape(0), x.shape(1), least, limit, many),
          model{{weights_.data(), weights_.data() + weights_.size()}, {means_.data(), means_.data() + means_.size()},
                {covariances_.data(), covariances_.data() + covariances_.size()}},
          weights(weights_.data()), means(means_.data()), covariances(covariances_.data()) {}

    void give_back() const {
        std::copy(model.weights.begin(), model.weights.end(), weights);
        std::copy(model.means.begin(), model.means.end(), means);
        std::copy(model.covariances.begin(), model.covariances.end(), covariances);
        fw::trim_scratch();
    }
};

void check(int kind, const Doubles2 &x, const Doubles &w, const Doubles &ridge, const DoublesOut &weights,
           const Doubles2Out &means, const DoublesAnyOut &covariances) {
    const size_t n = x.shape(0), d = x.shape(1), k = means.shape(0);
    const size_t sizes[] = {k * d * d, d * d, k * d, k};
    if (kind < 0 || kind > 3 || n == 0 || k == 0 || means.shape(1) != d || weights.shape(0) != k || ridge.shape(0) != d ||
        covariances.size() != sizes[kind] || (w.is_valid() && w.shape(0) != n))
        throw nb::value_error("rows and components do not fit each other");
}

std::tuple<double, int, int> em_run(int kind, int squares, Doubles2 x, Doubles w, Doubles ridge, DoublesOut weights,
                                    Doubles2Out means, DoublesAnyOut covariances, int steps, double tol, double least,
                                    double limit, double many, double power) {
    check(kind, x, w, ridge, weights, means, covariances);
    nb::gil_scoped_release released;
    Given given(kind, squares, x, w, ridge, weights, means, covariances, least, limit, many);
    Interrupts interrupts;
    const Ended ended = run_steps(given.run, given.model, steps, tol, power, interrupts);
    given.give_back();
    return {ended.bound, ended.done, int(ended.status)};
}

std::tuple<double, double> em_improve(int kind, int squares, Doubles2 x, Doubles w, Doubles ridge, DoublesOut weights,
                                      Doubles2Out means, DoublesAnyOut covariances, double bound, double until, double each,
                                      int patience, Doubles2 powers, Ints judged, double ahead, double gain, double tol,
                                      double least, double limit, double many) {
    check(kind, x, w, ridge, weights, means, covariances);
    if (patience < 0 || powers.shape(1) != 2) throw nb::value_error("a power comes with its steps");
    nb::gil_scoped_release released;
    Given given(kind, squares, x, w, ridge, weights, means, covariances, least, limit, many);
    Improving improving(given.run, tol, gain, ahead, each, until, judged.data(), judged.shape(0));
    bound = improving.from(given.model, bound, size_t(patience), powers.data(), powers.shape(0));
    given.give_back();
    return {bound, improving.steps};
}

}  // namespace

void register_em_run(nb::module_ &m) {
    m.def("em_run", &em_run, nb::arg("kind"), nb::arg("squares"), nb::arg("x").noconvert(),
          nb::arg("row_weights").noconvert().none(), nb::arg("ridge").noconvert(), nb::arg("weights").noconvert(),
          nb::arg("means").noconvert(), nb::arg("covariances").noconvert(), nb::arg("steps"), nb::arg("tol"), nb::arg("least"),
          nb::arg("limit"), nb::arg("many"), nb::arg("power"));
    m.def("em_improve", &em_improve, nb::arg("kind"), nb::arg("squares"), nb::arg("x").noconvert(),
          nb::arg("row_weights").noconvert().none(), nb::arg("ridge").noconvert(), nb::arg("weights").noconvert(),
          nb::arg("means").noconvert(), nb::arg("covariances").noconvert(), nb::arg("bound"), nb::arg("until"), nb::arg("each"),
          nb::arg("patience"), nb::arg("powers").noconvert(), nb::arg("judged").noconvert(), nb::arg("ahead"), nb::arg("gain"),
          nb::arg("tol"), nb::arg("least"), nb::arg("limit"), nb::arg("many"));
}
