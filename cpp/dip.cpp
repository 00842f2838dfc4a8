// Hartigan's dip: how far, at the farthest, the distribution of a sample is from the nearest unimodal one
// without atoms.
//
// A unimodal distribution function is convex up to its mode and concave beyond. The sample's function is a staircase; `below`
// and `above` are its heights before and after each step. Within an interval that must contain the mode, the greatest convex
// minorant of `below` and the least concave majorant of `above` lie farthest apart at a vertex of one of them. That vertex and
// the one facing it bound a smaller interval; outside, the staircase must follow the minorant or the majorant, and how far it
// does not is a lower bound of twice the dip. The interval shrinks until the two curves are no farther apart than that bound.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include <nanobind/stl/optional.h>

namespace nb = nanobind;

namespace {

using Values = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

struct Staircase {
    std::vector<double> x, below, above;  // distinct values, and the shares of the weight before and up to each

    Staircase(const double *values, const double *weights, size_t n) {
        double sum = 0.0;
        for (size_t i = 0; i < n; ++i) {
            const double w = weights ? weights[i] : 1.0;
            if (w == 0.0) continue;
            if (x.empty() || values[i] != x.back()) {
                x.push_back(values[i]);
                below.push_back(sum);
                above.push_back(sum);
            }
            sum += w;
            above.back() = sum;
        }
        for (size_t i = 0; i < x.size(); ++i) below[i] /= sum, above[i] /= sum;
    }

    size_t size() const { return x.size(); }

    // The line through (x[i], h[i]) and (x[j], h[j]), at x[at].
    double line(const std::vector<double> &h, size_t i, size_t j, size_t at) const {
        return h[i] + (h[j] - h[i]) * ((x[at] - x[i]) / (x[j] - x[i]));
    }
};

// The vertices, from `low` to `high`, of the hull of the points (x, h): from below (sign 1) or from above (sign -1).
void hull(const Staircase &s, const std::vector<double> &h, double sign, size_t low, size_t high, std::vector<size_t> &out) {
    out.clear();
    for (size_t i = low; i <= high; ++i) {
        while (out.size() > 1) {
            const size_t a = out[out.size() - 2], b = out.back();
            if (sign * (h[b] - h[a]) * (s.x[i] - s.x[b]) < sign * (h[i] - h[b]) * (s.x[b] - s.x[a])) break;
            out.pop_back();
        }
        out.push_back(i);
    }
}

// How far the staircase is, at the farthest, from the part of a hull between its vertices `first` and `last`.
double departure(const Staircase &s, const std::vector<size_t> &v, size_t first, size_t last, bool minorant) {
    double most = 0.0;
    for (size_t e = first; e < last; ++e)
        for (size_t i = v[e]; i <= v[e + 1]; ++i) {
            const double gap = minorant ? s.above[i] - s.line(s.below, v[e], v[e + 1], i)
                                        : s.line(s.above, v[e], v[e + 1], i) - s.below[i];
            most = std::max(most, gap);
        }
    return most;
}

double dip_of(const Staircase &s) {
    size_t low = 0, high = s.size() - 1;
    double bound = 0.0;  // of twice the dip: no continuous function follows a step more closely than by half of it
    for (size_t i = 0; i < s.size(); ++i) bound = std::max(bound, s.above[i] - s.below[i]);
    std::vector<size_t> minorant, majorant;
    while (high > low) {
        hull(s, s.below, 1.0, low, high, minorant);
        hull(s, s.above, -1.0, low, high, majorant);
        // The vertex at which the curves are farthest apart, and the ends of the edge of the other curve that faces it.
        double most = -1.0;
        size_t left = 0, right = majorant.size() - 1;  // places in the minorant and in the majorant
        for (size_t v = 0, e = 0; v < minorant.size(); ++v) {
            while (e + 2 < majorant.size() && majorant[e + 1] < minorant[v]) ++e;
            const double gap = s.line(s.above, majorant[e], majorant[e + 1], minorant[v]) - s.below[minorant[v]];
            if (gap > most) {
                most = gap, left = v;
                right = majorant[e] >= minorant[v] ? e : e + 1;
            }
        }
        for (size_t v = 0, e = 0; v < majorant.size(); ++v) {
            while (e + 2 < minorant.size() && minorant[e + 1] <= majorant[v]) ++e;
            const double gap = s.above[majorant[v]] - s.line(s.below, minorant[e], minorant[e + 1], majorant[v]);
            if (gap > most) {
                most = gap, right = v;
                left = minorant[e + 1] <= majorant[v] ? e + 1 : e;
            }
        }
        if (most <= bound) break;
        bound = std::max(bound, departure(s, minorant, 0, left, true));
        bound = std::max(bound, departure(s, majorant, right, majorant.size() - 1, false));
        const size_t new_low = minorant[left], new_high = majorant[right];
        if (new_low == low && new_high == high) break;
        low = new_low, high = new_high;
    }
    return bound / 2.0;
}

double dip(Values x, std::optional<Values> weights) {
    nb::gil_scoped_release released;
    const Staircase s(x.data(), weights ? weights->data() : nullptr, x.shape(0));
    return s.size() < 2 ? 0.0 : dip_of(s);
}

}  // namespace

void register_dip(nb::module_ &m) {
    m.def("dip", &dip, nb::arg("x").noconvert(), nb::arg("weights").noconvert().none());
}
