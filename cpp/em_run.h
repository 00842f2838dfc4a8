// Many steps of EM over rows in memory without returning to Python, which takes longer than a step over a few thousand
// rows. For the search among starts; the fit itself goes over blocks, step by step.
#pragma once

#include <chrono>
#include <cmath>
#include <cstring>
#include <vector>

#include <nanobind/nanobind.h>

#include "component_storage.h"
#include "isa.h"

namespace fw::em {

enum Status : int { going_on, settled, collapsed };

// Lets Ctrl-C through while the GIL is released; asked after every step, and looks now and then.
class Interrupts {
    using Clock = std::chrono::steady_clock;
    Clock::time_point last_ = Clock::now();

public:
    void check() {
        const auto now = Clock::now();
        if (now - last_ < std::chrono::milliseconds(100)) return;
        last_ = now;
        nanobind::gil_scoped_acquire held;
        if (PyErr_CheckSignals() != 0) throw nanobind::python_error();
    }
};

// U, upper triangular, with U U' the inverse of the covariance; false if there is none. Works on correlations, so that
// units do not matter.
inline bool inverse_factor(const double *covariance, size_t d, double *work, double *u) {
    std::vector<double> size(d);
    for (size_t f = 0; f < d; ++f) {
        const double variance = covariance[f * d + f];
        if (!(variance > 0) || !std::isfinite(variance)) return false;
        size[f] = std::sqrt(variance);
    }
    double *l = work;  // the Cholesky factor of the correlations, by rows
    for (size_t i = 0; i < d; ++i)
        for (size_t j = 0; j <= i; ++j) {
            double sum = covariance[i * d + j] / size[i] / size[j];
            for (size_t f = 0; f < j; ++f) sum -= l[i * d + f] * l[j * d + f];
            if (i == j) {
                if (!(sum > 1e-15)) return false;
                l[i * d + i] = std::sqrt(sum);
            } else
                l[i * d + j] = sum / l[j * d + j];
        }
    // Row g of the inverse of L is column g of U.
    std::memset(u, 0, d * d * sizeof(double));
    for (size_t g = 0; g < d; ++g) {
        u[g * d + g] = 1 / l[g * d + g];
        for (size_t f = 0; f < g; ++f) {
            double sum = 0;
            for (size_t i = f; i < g; ++i) sum += l[g * d + i] * u[f * d + i];
            u[f * d + g] = -sum / l[g * d + g];
        }
    }
    for (size_t f = 0; f < d; ++f)
        for (size_t g = f; g < d; ++g) u[f * d + g] /= size[f];
    return true;
}

struct Model {
    std::vector<double> weights, means, covariances;
};

constexpr double longest_first = 4, longest_most = 256;  // how far a jump may go beyond two steps

class Run {
    const fw::Shape shape_;
    const fw::Squares squares_;
    const size_t k_, d_, n_;
    const double *x_, *w_, *ridge_;
    const double least_, limit_, many_;
    double power_ = 1;
    double total_ = 0;
    fw::Storage<double> storage_;
    std::vector<double> whiten_, logs_, counts_, shift_, scatter_, work_, width_, zero_, a_, b_, c_;
    double mean_width_ = 0;

    size_t own() const { return shape_ == fw::Shape::full ? d_ * d_ : shape_ == fw::Shape::diag ? d_ : 1; }

    // What densities need of the covariances; false if there are none, or the ridge is too much of a variance in a component
    // that has not many rows.
    bool prepare(const Model &m) {
        const double constant = -0.5 * double(d_) * std::log(2 * M_PI);
        const bool tied = shape_ == fw::Shape::tied, matrix = tied || shape_ == fw::Shape::full;
        double logdet = 0, trace = 0;
        for (size_t j = 0; j < k_; ++j) {
            if (j == 0 || !tied) {
                logdet = trace = 0;
                if (matrix) {
                    double *u = whiten_.data() + (tied ? 0 : j * d_ * d_);
                    if (!inverse_factor(m.covariances.data() + (tied ? 0 : j * d_ * d_), d_, work_.data(), u)) return false;
                    for (size_t f = 0; f < d_; ++f) {
                        logdet += std::log(u[f * d_ + f]);
                        double sum = 0;
                        for (size_t g = f; g < d_; ++g) sum += u[f * d_ + g] * u[f * d_ + g];
                        trace += ridge_[f] * sum;
                    }
                } else
                    for (size_t f = 0; f < d_; ++f) {
                        const size_t at = shape_ == fw::Shape::diag ? j * d_ + f : j;
                        const double variance = m.covariances[at];
                        if (!(variance > 0) || !std::isfinite(variance)) return false;
                        whiten_[at] = 1 / std::sqrt(variance);
                        logdet += std::log(whiten_[at]);
                        trace += ridge_[f] / variance;
                    }
            }
            if (!std::isfinite(trace) || (trace >= limit_ && !(m.weights[j] * total_ >= many_))) return false;
            logs_[j] = power_ * (std::log(m.weights[j]) + logdet + constant - trace / 2);
        }
        if (power_ != 1)
            for (double &factor : whiten_) factor *= std::sqrt(power_);
        return true;
    }

public:
    Run(fw::Shape shape, fw::Squares squares, const double *x, const double *w, const double *ridge,
        size_t n, size_t k, size_t d, double least, double limit, double many)
        : shape_(shape), squares_(squares), k_(k), d_(d), n_(n), x_(x), w_(w), ridge_(ridge), least_(least),
          limit_(limit), many_(many), zero_(d) {
        for (size_t i = 0; i < n; ++i) total_ += w ? w[i] : 1.0;
        width_.assign(d, 0.0);
        for (size_t i = 0; i < n; ++i)
            for (size_t f = 0; f < d; ++f) width_[f] += (w ? w[i] : 1.0) * x[i * d + f] * x[i * d + f];
        for (double &width : width_) {
            width = width > 0 ? std::sqrt(width / total_) : 1.0;
            mean_width_ += width / double(d);
        }
        const size_t matrices = shape == fw::Shape::tied ? d * d : k * own();
        whiten_.resize(matrices);
        logs_.resize(k), counts_.resize(k), shift_.resize(k * d), work_.resize(d * d);
        scatter_.resize(squares == fw::Squares::full ? k * d * d : squares == fw::Squares::tied ? d * d : k * d);
    }

    // Densities and weights are taken to this power before rows are shared out.
    void set_power(double power) { power_ = power; }

    fw::Shape shape() const { return shape_; }
    size_t rows() const { return n_; }
    size_t components() const { return k_; }
    size_t columns() const { return d_; }
    const double *row(size_t i) const { return x_ + i * d_; }
    double weight(size_t i) const { return w_ ? w_[i] : 1.0; }
    double ridge(size_t f) const { return ridge_[f]; }

    // For each row the log density, and the logs of its shares; false if the model has collapsed.
    bool compare(const Model &m, double *total, double *each) {
        if (!prepare(m)) return false;
        storage_.fill(shape_, squares_, logs_.data(), m.means.data(), whiten_.data(), zero_.data(), k_, d_);
        fw::active_kernels().mixture_f64.logs(x_, n_, fw::Mixture{nullptr, &storage_.view}, total, each);
        return true;
    }

    // The E-step: the bound of the model, and the sums kept here; false if the model has collapsed.
    bool expect(const Model &m, double &bound) {
        if (!prepare(m)) return false;
        storage_.fill(shape_, squares_, logs_.data(), m.means.data(), whiten_.data(), zero_.data(), k_, d_);
        std::fill(counts_.begin(), counts_.end(), 0.0);
        std::fill(shift_.begin(), shift_.end(), 0.0);
        std::fill(scatter_.begin(), scatter_.end(), 0.0);
        const fw::Mixture mixture{nullptr, &storage_.view};
        const auto &kernels = fw::active_kernels().mixture_f64;
        bound = kernels.step(x_, w_, n_, mixture, counts_.data(), shift_.data(), scatter_.data()) / total_;
        return std::isfinite(bound);
    }

    // Weights, weighted means and weighted second moments, in which the parameters of EM are linear. Columns in units of their
    // width, so that distances between models make sense.
    void moments(const Model &m, std::vector<double> &out) const {
        out.clear();
        const bool full = shape_ == fw::Shape::full;
        for (size_t j = 0; j < k_; ++j) {
            const double weight = m.weights[j], *mean = m.means.data() + j * d_;
            out.push_back(weight);
            for (size_t f = 0; f < d_; ++f) out.push_back(weight * mean[f] / width_[f]);
            if (full) {
                for (size_t f = 0; f < d_; ++f)
                    for (size_t g = 0; g <= f; ++g) {
                        const double c = m.covariances[(j * d_ + f) * d_ + g] - (f == g ? ridge_[f] : 0);
                        out.push_back(weight * (c + mean[f] * mean[g]) / width_[f] / width_[g]);
                    }
            } else if (shape_ == fw::Shape::diag) {
                for (size_t f = 0; f < d_; ++f)
                    out.push_back(weight * (m.covariances[j * d_ + f] - ridge_[f] + mean[f] * mean[f]) / width_[f] / width_[f]);
            } else if (shape_ == fw::Shape::spherical) {
                double sum = double(d_) * m.covariances[j];
                for (size_t f = 0; f < d_; ++f) sum += mean[f] * mean[f] - ridge_[f];
                out.push_back(weight * sum / mean_width_ / mean_width_);
            }
        }
        if (shape_ == fw::Shape::tied)
            for (size_t f = 0; f < d_; ++f)
                for (size_t g = 0; g <= f; ++g) {
                    double sum = m.covariances[f * d_ + g] - (f == g ? ridge_[f] : 0);
                    for (size_t j = 0; j < k_; ++j) sum += m.weights[j] * m.means[j * d_ + f] * m.means[j * d_ + g];
                    out.push_back(sum / width_[f] / width_[g]);
                }
    }

    // The model with these moments; false if there is none.
    bool from_moments(const std::vector<double> &from, Model &m) const {
        const double *at = from.data();
        double all = 0;
        for (size_t j = 0; j < k_; ++j) {
            const double weight = *at++;
            if (!(weight * total_ >= least_)) return false;
            m.weights[j] = weight;
            all += weight;
            double *mean = m.means.data() + j * d_;
            for (size_t f = 0; f < d_; ++f) mean[f] = *at++ / weight * width_[f];
            if (shape_ == fw::Shape::full) {
                double *c = m.covariances.data() + j * d_ * d_;
                for (size_t f = 0; f < d_; ++f)
                    for (size_t g = 0; g <= f; ++g)
                        c[f * d_ + g] = c[g * d_ + f] =
                            *at++ / weight * width_[f] * width_[g] - mean[f] * mean[g] + (f == g ? ridge_[f] : 0);
            } else if (shape_ == fw::Shape::diag) {
                for (size_t f = 0; f < d_; ++f)
                    m.covariances[j * d_ + f] = *at++ / weight * width_[f] * width_[f] - mean[f] * mean[f] + ridge_[f];
            } else if (shape_ == fw::Shape::spherical) {
                double sum = *at++ / weight * mean_width_ * mean_width_;
                for (size_t f = 0; f < d_; ++f) sum += ridge_[f] - mean[f] * mean[f];
                m.covariances[j] = sum / double(d_);
            }
        }
        for (double &weight : m.weights) weight /= all;
        if (shape_ == fw::Shape::tied)
            for (size_t f = 0; f < d_; ++f)
                for (size_t g = 0; g <= f; ++g) {
                    double sum = *at++ * width_[f] * width_[g] + (f == g ? ridge_[f] : 0);
                    for (size_t j = 0; j < k_; ++j) sum -= m.weights[j] * m.means[j * d_ + f] * m.means[j * d_ + g];
                    m.covariances[f * d_ + g] = m.covariances[g * d_ + f] = sum;
                }
        return true;
    }

    // Where two steps of EM point to (SQUAREM, Varadhan and Roland 2008); false if no further than they went.
    bool jump(const Model &before, const Model &middle, const Model &after, double longest, Model &to) {
        moments(before, a_);
        moments(middle, b_);
        moments(after, c_);
        double first = 0, change = 0;
        for (size_t i = 0; i < a_.size(); ++i) {
            const double r = b_[i] - a_[i], v = c_[i] - b_[i] - r;
            first += r * r;
            change += v * v;
        }
        const double far = std::min(std::sqrt(first / change), longest);
        if (!(far > 1.5)) return false;
        for (size_t i = 0; i < a_.size(); ++i) {
            const double r = b_[i] - a_[i], v = c_[i] - b_[i] - r;
            a_[i] += 2 * far * r + far * far * v;
        }
        return from_moments(a_, to);
    }

    // The M-step for the sums kept; false if a component has too little weight to have a shape.
    bool maximise(const Model &from, Model &to) const {
        double all = 0;
        for (const double count : counts_) all += count;
        for (const double count : counts_)
            if (!(count >= least_)) return false;
        std::vector<double> pooled;
        if (shape_ == fw::Shape::tied) pooled = scatter_;
        for (size_t j = 0; j < k_; ++j) {
            const double n = counts_[j];
            to.weights[j] = n / all;
            const double *shift = shift_.data() + j * d_;
            for (size_t f = 0; f < d_; ++f) to.means[j * d_ + f] = from.means[j * d_ + f] + shift[f] / n;
            if (shape_ == fw::Shape::full) {
                double *c = to.covariances.data() + j * d_ * d_;
                const double *s = scatter_.data() + j * d_ * d_;
                for (size_t f = 0; f < d_; ++f)
                    for (size_t g = 0; g <= f; ++g)
                        c[f * d_ + g] = c[g * d_ + f] = s[f * d_ + g] / n - shift[f] / n * (shift[g] / n) + (f == g ? ridge_[f] : 0);
            } else if (shape_ == fw::Shape::tied) {
                for (size_t f = 0; f < d_; ++f)
                    for (size_t g = 0; g < d_; ++g) pooled[f * d_ + g] -= shift[f] * shift[g] / n;
            } else {
                double sum = 0;
                for (size_t f = 0; f < d_; ++f) {
                    const double value = scatter_[j * d_ + f] / n - shift[f] / n * (shift[f] / n) + ridge_[f];
                    if (shape_ == fw::Shape::diag) to.covariances[j * d_ + f] = value;
                    sum += value;
                }
                if (shape_ == fw::Shape::spherical) to.covariances[j] = sum / double(d_);
            }
        }
        if (shape_ == fw::Shape::tied)
            for (size_t f = 0; f < d_; ++f)
                for (size_t g = 0; g < d_; ++g) to.covariances[f * d_ + g] = pooled[f * d_ + g] / all + (f == g ? ridge_[f] : 0);
        return true;
    }
};

struct Ended {
    double bound;  // of the model before the last step
    int done;
    Status status;
};

// At most so many steps from `now`, which becomes the model after them; with a power other than 1 exactly so many, unless it
// collapses.
inline Ended run_steps(Run &run, Model &now, int steps, double tol, double power, Interrupts &interrupts) {
    run.set_power(power);
    Model next = now, middle = now, earlier = now, far = now;
    double bound = -INFINITY, before = -INFINITY, longest = longest_first;
    int done = 0, small = 0, plain = 0;  // plain steps since the last jump
    Status status = going_on;
    while (done < steps && status == going_on) {
        interrupts.check();
        if (!run.expect(now, bound) || !run.maximise(now, next)) {
            status = collapsed;
            break;
        }
        ++done;
        small = power == 1 && bound - before < tol ? small + 1 : 0;
        if (small == 2) status = settled;
        before = bound;
        std::swap(earlier, middle);  // the models before the last two steps, and after them
        std::swap(middle, now);
        std::swap(now, next);
        if (++plain < 2 || power != 1 || status == settled || done + 1 >= steps) continue;
        plain = 0;
        if (!run.jump(earlier, middle, now, longest, far)) continue;
        double there;
        const bool lands = run.expect(far, there);
        ++done;
        if (lands && there > before && run.maximise(far, next)) {
            small = there - before < tol ? small + 1 : 0;
            if (small == 2) status = settled;
            before = there;
            longest = std::min(4 * longest, longest_most);
            std::swap(middle, far);
            std::swap(now, next);
            plain = 1;
        } else
            longest = std::max(longest / 4, longest_first);
    }
    return {before, done, status};
}

}  // namespace fw::em
