// Rows with missing cells under a normal distribution: conditional means and spreads, errors of cells left out, and the EM
// algorithm for a table that fits in the cache. All arithmetic is plain float64, so that results do not depend on the
// processor. `reference.py` has the NumPy form.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "isa.h"

namespace nb = nanobind;

namespace {

using std::size_t;
using Values = nb::ndarray<nb::ro, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Line = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Square = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Cube = nb::ndarray<const double, nb::ndim<3>, nb::c_contig, nb::device::cpu>;
using LineOut = nb::ndarray<double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using SquareOut = nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

constexpr double tiny_share = 1e-15;  // of a diagonal entry: pivots below are rounding

void require(bool condition, const char *message) {
    if (!condition) throw nb::value_error(message);
}

template <class F> auto by_dtype(const Values &x, F f) {
    if (x.dtype() == nb::dtype<float>()) return f((const float *)x.data());
    if (x.dtype() == nb::dtype<double>()) return f((const double *)x.data());
    throw nb::type_error("expected float32 or float64 values");
}

// The order of additions is fixed, in four strands that the compiler can keep in vector registers.
double dot(const double *a, const double *b, size_t n) {
    double s[4] = {0, 0, 0, 0};
    size_t j = 0;
    for (; j + 4 <= n; j += 4)
        for (size_t k = 0; k < 4; ++k) s[k] += a[j + k] * b[j + k];
    for (; j < n; ++j) s[0] += a[j] * b[j];
    return (s[0] + s[1]) + (s[2] + s[3]);
}

// The lower Cholesky factor in place (row-major, stride m); returns the log determinant.
double cholesky(double *a, size_t m) {
    double logs = 0;
    for (size_t i = 0; i < m; ++i) {
        double *row = a + i * m;
        const double before = row[i];
        for (size_t j = 0; j < i; ++j) row[j] = (row[j] - dot(row, a + j * m, j)) / a[j * m + j];
        double pivot = before - dot(row, row, i);
        const double least = before > 0 ? before * tiny_share : 1e-300;
        if (!(pivot > least)) pivot = least;
        logs += std::log(pivot);
        row[i] = std::sqrt(pivot);
    }
    return logs;
}

// The inverse of a lower triangular matrix, written as its transpose (row i of `out` is column i of the inverse).
void inverse_of_lower(const double *lower, size_t m, double *out) {
    for (size_t i = 0; i < m; ++i) {
        double *column = out + i * m;
        for (size_t j = 0; j < i; ++j) column[j] = 0;
        column[i] = 1 / lower[i * m + i];
        for (size_t j = i + 1; j < m; ++j)
            column[j] = -dot(lower + j * m + i, column + i, j - i) / lower[j * m + j];
    }
}

// One row in working units, and what the normal distribution says of its missing cells.
struct Row {
    size_t d, m = 0, varying = 0;  // columns, missing cells, columns that are not constant
    std::vector<size_t> missing;
    std::vector<double> r;  // from the mean, missing cells filled by their conditional means
    std::vector<double> factor, upper;  // Cholesky factor of the precision of the missing cells; transposed inverse of it
    double log_determinant = 0;

    explicit Row(size_t columns) : d(columns), missing(columns), r(columns), factor(columns * columns), upper(columns * columns) {}

    bool nothing() const { return m && m == varying; }  // observed, other than constants

    template <class T> void load(const T *x, const double *centre, const double *inverse, const double *mean) {
        m = varying = 0;
        for (size_t j = 0; j < d; ++j) {
            const double value = x[j];
            varying += inverse[j] != 0;
            if (inverse[j] == 0) {  // a column without variance: nothing is unknown
                r[j] = 0;
            } else if (std::isnan(value)) {
                missing[m++] = j;
                r[j] = 0;
            } else {
                r[j] = (value - centre[j]) * inverse[j] - mean[j];
            }
        }
    }

    void from_standard(const double *z, const double *mean) {
        m = 0;
        for (size_t j = 0; j < d; ++j) {
            if (std::isnan(z[j])) {
                missing[m++] = j;
                r[j] = 0;
            } else {
                r[j] = z[j] - mean[j];
            }
        }
    }

    void complete(const double *precision) {
        log_determinant = 0;
        if (!m) return;
        std::vector<double> &b = work;
        b.resize(d);
        for (size_t a = 0; a < m; ++a) {
            const double *row = precision + missing[a] * d;
            for (size_t c = 0; c <= a; ++c) factor[a * m + c] = row[missing[c]];
            b[a] = -dot(row, r.data(), d);
        }
        log_determinant = cholesky(factor.data(), m);
        inverse_of_lower(factor.data(), m, upper.data());
        // x = L^-T L^-1 b, with `upper` the transpose of L^-1
        half.resize(d);
        for (size_t a = 0; a < m; ++a) {
            double sum = 0;
            for (size_t c = 0; c <= a; ++c) sum += upper[c * m + a] * b[c];
            half[a] = sum;
        }
        for (size_t a = 0; a < m; ++a) r[missing[a]] = dot(upper.data() + a * m + a, half.data() + a, m - a);
    }

    // The conditional covariance of missing cells a and c (c <= a).
    double covariance(size_t a, size_t c) const { return dot(upper.data() + a * m + a, upper.data() + c * m + a, m - a); }

    void add_spread(double w, double *spread) const {
        for (size_t a = 0; a < m; ++a)
            for (size_t c = 0; c <= a; ++c) spread[missing[c] * d + missing[a]] += w * covariance(a, c);
    }

  private:
    std::vector<double> work, half;
};

template <class T>
nb::tuple complete_rows(const T *x, size_t n, size_t d, const double *w, const double *centre, const double *inverse,
                        const double *mean, const double *precision, double *out, double *used, double *spread,
                        double *deviations, double *each_log) {
    double logs = 0, total = 0;
    {
        nb::gil_scoped_release released;
        Row row(d);
        for (size_t i = 0; i < n; ++i) {
            row.load(x + i * d, centre, inverse, mean);
            row.complete(precision);
            const double weight = row.nothing() ? 0 : (w ? w[i] : 1);
            for (size_t j = 0; j < d; ++j) out[i * d + j] = row.r[j];
            if (used) used[i] = weight;
            if (each_log) each_log[i] = row.log_determinant;
            total += weight;
            if (row.m && weight > 0) {
                logs += weight * row.log_determinant;
                if (spread) row.add_spread(weight, spread);
            }
            if (deviations) {
                for (size_t j = 0; j < d; ++j) deviations[i * d + j] = 0;
                for (size_t a = 0; a < row.m; ++a)
                    deviations[i * d + row.missing[a]] = std::sqrt(row.covariance(a, a)) / inverse[row.missing[a]];
            }
        }
    }
    return nb::make_tuple(total, logs);
}

nb::tuple complete(Values x, Line weights, Line centre, Line inverse, Line mean, Square precision, SquareOut out, LineOut used,
                   SquareOut spread, SquareOut deviations, LineOut each_log) {
    const size_t n = x.shape(0), d = x.shape(1);
    require(centre.shape(0) == d && inverse.shape(0) == d && mean.shape(0) == d, "one entry per column is needed");
    require(precision.shape(0) == d && precision.shape(1) == d, "precision must be square, as wide as x");
    require(out.shape(0) == n && out.shape(1) == d, "out must be like x");
    require(!weights.is_valid() || weights.shape(0) == n, "weights must have one entry per row");
    require(!used.is_valid() || used.shape(0) == n, "used must have one entry per row");
    require(!spread.is_valid() || (spread.shape(0) == d && spread.shape(1) == d), "spread must be square, as wide as x");
    require(!deviations.is_valid() || (deviations.shape(0) == n && deviations.shape(1) == d), "deviations must be like x");
    require(!each_log.is_valid() || each_log.shape(0) == n, "each_log must have one entry per row");
    return by_dtype(x, [&](auto *values) {
        return complete_rows(values, n, d, weights.is_valid() ? weights.data() : nullptr, centre.data(), inverse.data(),
                             mean.data(), precision.data(), out.data(), used.is_valid() ? used.data() : nullptr,
                             spread.is_valid() ? spread.data() : nullptr,
                             deviations.is_valid() ? deviations.data() : nullptr,
                             each_log.is_valid() ? each_log.data() : nullptr);
    });
}

constexpr double most_removed = 0.95;  // of a row's leverage: a matrix without the row must stay positive
constexpr double largest_error = 9;  // squared, in standard deviations: a few wild cells must not decide

// Squared errors of each observed cell, predicted from the others of its row by a model without that row. `inverses` are
// inverses of (scatter + prior); taking `removed` r r' out of the scatter changes them by rank one.
template <class T>
void errors_left_out(const T *x, size_t n, size_t d, const double *w, const double *centre, const double *inverse,
                     const double *mean, const double *inverses, size_t count, double removed, double *out) {
    Row row(d);
    std::vector<double> v(d), own(d), between(d);
    std::vector<char> unknown(d);
    for (size_t i = 0; i < n; ++i) {
        const double weight = w ? w[i] : 1;
        if (!(weight > 0)) continue;
        for (size_t k = 0; k < count; ++k) {
            const double *q = inverses + k * d * d;
            row.load(x + i * d, centre, inverse, mean);
            if (row.nothing()) break;
            row.complete(q);
            double along = 0;  // r' Q r over what is observed
            std::fill(unknown.begin(), unknown.end(), 0);
            for (size_t a = 0; a < row.m; ++a) unknown[row.missing[a]] = 1;
            size_t cells = 0;
            for (size_t j = 0; j < d; ++j) {
                if (unknown[j] || inverse[j] == 0) continue;
                ++cells;
                const double *line = q + j * d;
                v[j] = dot(line, row.r.data(), d);
                along += v[j] * row.r[j];
            }
            if (!cells) break;
            // The diagonal of the inverse of what is observed: Q_jj less the squares of L^-1 Q_mj.
            for (size_t j = 0; j < d; ++j) own[j] = q[j * d + j];
            for (size_t a = 0; a < row.m; ++a) {
                std::fill(between.begin(), between.end(), 0.0);
                for (size_t c = 0; c <= a; ++c) {
                    const double by = row.upper[c * row.m + a], *line = q + row.missing[c] * d;
                    for (size_t j = 0; j < d; ++j) between[j] += by * line[j];
                }
                for (size_t j = 0; j < d; ++j) own[j] -= between[j] * between[j];
            }
            const double gone = along > 0 ? std::fmin(removed, most_removed / along) : removed;
            const double rest = 1 - gone * along;
            double squares = 0;
            for (size_t j = 0; j < d; ++j) {
                if (unknown[j] || inverse[j] == 0) continue;
                const double e = v[j] / (own[j] * rest + gone * v[j] * v[j]);
                squares += std::fmin(e * e, largest_error);
            }
            out[k] += weight * squares;
            if (k == 0) out[count] += weight * (double)cells;
        }
    }
}

void left_out(Values x, Line weights, Line centre, Line inverse, Line mean, Cube inverses, double removed, LineOut out) {
    const size_t n = x.shape(0), d = x.shape(1), count = inverses.shape(0);
    require(centre.shape(0) == d && inverse.shape(0) == d && mean.shape(0) == d, "one entry per column is needed");
    require(inverses.shape(1) == d && inverses.shape(2) == d, "inverses must be square, as wide as x");
    require(out.shape(0) == count + 1, "out must have one entry per matrix, and one for the number of cells");
    require(!weights.is_valid() || weights.shape(0) == n, "weights must have one entry per row");
    by_dtype(x, [&](auto *values) {
        nb::gil_scoped_release released;
        errors_left_out(values, n, d, weights.is_valid() ? weights.data() : nullptr, centre.data(), inverse.data(),
                        mean.data(), inverses.data(), count, removed, out.data());
    });
}

// EM for one normal distribution with a prior worth `strength` rows of diagonal covariance `prior`, over a small table.
struct NormalEM {
    size_t d, packed;
    double strength, weight = 0;
    const double *prior;
    std::vector<double> complete_sum, complete_scatter;  // of the rows without missing cells, about zero in working units
    double complete_weight = 0;
    std::vector<double> rows, row_weights;  // those with missing cells
    Row row;
    std::vector<double> precision, factor, upper, scatter, spread, shift, expected;

    NormalEM(size_t columns, double strength, const double *prior)
        : d(columns), packed(columns + columns * (columns + 1) / 2), strength(strength), prior(prior), complete_sum(d, 0.0),
          complete_scatter(d * d, 0.0), row(d), precision(d * d), factor(d * d), upper(d * d), scatter(d * d), spread(d * d),
          shift(d), expected(d * d, 0.0) {}

    template <class T> void take(const T *x, size_t n, const double *w, const double *centre, const double *inverse) {
        const std::vector<double> zero(d, 0.0);
        for (size_t i = 0; i < n; ++i) {
            const double u = w ? w[i] : 1;
            row.load(x + i * d, centre, inverse, zero.data());
            if (!(u > 0) || row.nothing()) continue;
            weight += u;
            if (!row.m) {
                complete_weight += u;
                add_row(u, row.r.data(), complete_sum.data(), complete_scatter.data());
                continue;
            }
            for (size_t a = 0; a < row.m; ++a) row.r[row.missing[a]] = NAN;
            rows.insert(rows.end(), row.r.begin(), row.r.end());
            row_weights.push_back(u);
        }
    }

    void add_row(double u, const double *r, double *sum, double *matrix) const {
        for (size_t j = 0; j < d; ++j) {
            const double wr = u * r[j];
            sum[j] += wr;
            double *line = matrix + j * d;
            for (size_t k = j; k < d; ++k) line[k] += wr * r[k];
        }
    }

    // Replaces packed parameters (mean, upper triangle of the covariance) by those after a step. Returns the objective before
    // it: the log-likelihood of the observed cells, without its constant, and the prior. NaN if the matrix is not positive.
    double step(std::vector<double> &at) {
        double *mean = at.data(), *cells = at.data() + d;
        for (size_t j = 0, k = 0; j < d; ++j)
            for (size_t i = j; i < d; ++i, ++k) factor[i * d + j] = cells[k];
        for (size_t j = 0; j < d; ++j)
            if (!(factor[j * d + j] > 0)) return NAN;
        const double logs_of_all = cholesky(factor.data(), d);
        for (size_t j = 0, k = 0; j < d; k += d - j, ++j)
            if (!(factor[j * d + j] * factor[j * d + j] > 4 * tiny_share * cells[k])) return NAN;
        inverse_of_lower(factor.data(), d, upper.data());
        for (size_t i = 0; i < d; ++i)
            for (size_t j = 0; j <= i; ++j)
                precision[i * d + j] = precision[j * d + i] = dot(upper.data() + i * d + i, upper.data() + j * d + i, d - i);
        for (size_t j = 0; j < d; ++j) {
            shift[j] = complete_sum[j] - complete_weight * mean[j];
            for (size_t k = j; k < d; ++k) {
                scatter[j * d + k] = complete_scatter[j * d + k] - mean[j] * complete_sum[k] - complete_sum[j] * mean[k] +
                                     complete_weight * mean[j] * mean[k];
                spread[j * d + k] = 0;
            }
        }
        double logs = 0;
        for (size_t i = 0; i < row_weights.size(); ++i) {
            row.from_standard(rows.data() + i * d, mean);
            row.complete(precision.data());
            logs += row_weights[i] * row.log_determinant;
            add_row(row_weights[i], row.r.data(), shift.data(), scatter.data());
            row.add_spread(row_weights[i], spread.data());
        }
        double squares = 0, beyond = 0;
        for (size_t j = 0; j < d; ++j) {
            squares += precision[j * d + j] * scatter[j * d + j];
            for (size_t k = j + 1; k < d; ++k) squares += 2 * precision[j * d + k] * scatter[j * d + k];
            beyond += prior[j] * precision[j * d + j];
            shift[j] /= weight;
        }
        for (size_t j = 0, c = 0; j < d; ++j) {
            mean[j] += shift[j];
            for (size_t k = j; k < d; ++k, ++c) {
                expected[j * d + k] = scatter[j * d + k] + spread[j * d + k] - weight * shift[j] * shift[k];
                cells[c] = (expected[j * d + k] + (j == k ? strength * prior[j] : 0)) / (weight + strength);
            }
        }
        return -((weight + strength) * logs_of_all + logs + squares + strength * beyond) / 2;
    }
};

// At most `steps` steps, accelerated by squared extrapolation (Varadhan and Roland 2008); an extrapolation that lowers the
// objective is taken back, so that it never falls. Returns the steps made, whether the last one changed no parameter by `tol`,
// and the objective.
nb::tuple em_normal(Values x, Line weights, Line centre, Line inverse, Line prior, double strength, size_t steps, double tol,
                    LineOut mean, SquareOut covariance, SquareOut expected) {
    const size_t n = x.shape(0), d = x.shape(1);
    require(centre.shape(0) == d && inverse.shape(0) == d && prior.shape(0) == d && mean.shape(0) == d,
            "one entry per column is needed");
    require(covariance.shape(0) == d && covariance.shape(1) == d && expected.shape(0) == d && expected.shape(1) == d,
            "matrices must be square, as wide as x");
    require(!weights.is_valid() || weights.shape(0) == n, "weights must have one entry per row");
    size_t done = 0;
    bool settled = false;
    double objective = 0;
    {
        nb::gil_scoped_release released;
        NormalEM em(d, strength, prior.data());
        by_dtype(x, [&](auto *values) {
            em.take(values, n, weights.is_valid() ? weights.data() : nullptr, centre.data(), inverse.data());
        });
        std::vector<double> at(em.packed);
        std::copy(mean.data(), mean.data() + d, at.begin());
        for (size_t j = 0, k = d; j < d; ++j)
            for (size_t i = j; i < d; ++i, ++k) at[k] = covariance.data()[j * d + i];
        double longest = 4;
        std::vector<double> first = at, second, before;
        const auto step = [&](std::vector<double> &from) {
            before = from;
            const double value = em.step(from);
            double change = 0;
            for (size_t k = 0; k < em.packed; ++k) change = std::fmax(change, std::fabs(from[k] - before[k]));
            if (!std::isnan(value)) {
                ++done;
                settled = change <= tol;
            }
            return value;
        };
        while (done < steps && !settled) {
            first = at;
            objective = step(at);
            if (settled || done >= steps || std::isnan(objective)) break;
            second = at;
            objective = step(at);
            if (settled || done >= steps || std::isnan(objective)) break;
            double r2 = 0, v2 = 0;
            for (size_t k = 0; k < em.packed; ++k) {
                const double r = second[k] - first[k], v = (at[k] - second[k]) - r;
                r2 += r * r;
                v2 += v * v;
            }
            const double far = v2 > 0 ? std::sqrt(r2 / v2) : 1;
            const double length = std::fmin(far, longest);
            if (!(length > 1)) continue;
            std::vector<double> tried(em.packed);
            for (size_t k = 0; k < em.packed; ++k) {
                const double r = second[k] - first[k], v = (at[k] - second[k]) - r;
                tried[k] = first[k] + 2 * length * r + length * length * v;
            }
            const std::vector<double> kept = em.expected;
            const double value = step(tried);
            if (value >= objective) {
                at = tried;
                objective = value;
                if (far >= longest) longest *= 4;
            } else {  // also if it is NaN
                em.expected = kept;
                settled = false;
                longest = std::fmax(2.0, longest / 4);
            }
        }
        std::copy(at.begin(), at.begin() + d, mean.data());
        for (size_t j = 0, k = d; j < d; ++j)
            for (size_t i = j; i < d; ++i, ++k) {
                covariance.data()[j * d + i] = covariance.data()[i * d + j] = at[k];
                expected.data()[j * d + i] = expected.data()[i * d + j] = em.expected[j * d + i];
            }
    }
    return nb::make_tuple(done, settled, objective);
}

}  // namespace

void register_missing_cells(nb::module_ &m) {
    const auto x = nb::arg("x").noconvert();
    const auto weights = nb::arg("weights").noconvert().none();
    const auto centre = nb::arg("centre").noconvert(), inverse = nb::arg("inverse").noconvert();
    const auto mean = nb::arg("mean").noconvert(), out = nb::arg("out").noconvert();
    m.def("complete", &complete, x, weights, centre, inverse, mean, nb::arg("precision").noconvert(), out,
          nb::arg("used").noconvert().none(), nb::arg("spread").noconvert().none(),
          nb::arg("deviations").noconvert().none(), nb::arg("each_log").noconvert().none());
    m.def("left_out", &left_out, x, weights, centre, inverse, mean, nb::arg("inverses").noconvert(), nb::arg("removed"), out);
    m.def("em_normal", &em_normal, x, weights, centre, inverse, nb::arg("prior").noconvert(), nb::arg("strength"),
          nb::arg("steps"), nb::arg("tol"), mean, nb::arg("covariance").noconvert(), nb::arg("expected").noconvert());
}
