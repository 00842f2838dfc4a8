// The subset of k columns that explains most of the variance of all columns, by branch and bound.
//
// A node is a pair of sets of columns: those `chosen`, and those that are `open`; the others are out. The columns explain
// the sum of what each adds by elimination (Gauss-Jordan pivots of the scatter matrix). No subset below a node explains more
// than chosen and open columns together, nor more than the chosen ones and as many directions as columns are still to come: the
// largest eigenvalues of what the open columns explain beyond the chosen ones. A column without which the first bound falls below
// the best subset known is taken at once. Nodes are worked out from the matrix anew, so that a search can be stopped and resumed
// anywhere, and rounding errors do not add up.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <tuple>
#include <vector>

namespace nb = nanobind;

namespace {

using Matrix = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Line = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Nodes = nb::ndarray<const uint64_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Set = uint64_t;

constexpr int MOST = 64;

bool in(Set set, int j) { return set >> j & 1; }
int size(Set set) { return __builtin_popcountll(set); }

// The sum of the `m` largest eigenvalues of the symmetric n x n matrix `a`, which is overwritten: Householder reduction to a
// tridiagonal matrix, then implicit QL steps.
double largest_eigenvalues(double a[][MOST], int n, int m) {
    double diagonal[MOST], beside[MOST], v[MOST], p[MOST];
    for (int i = 0; i < n; ++i) beside[i] = 0.0;
    for (int c = 0; c + 2 < n; ++c) {
        double norm = 0.0;
        for (int i = c + 1; i < n; ++i) norm += a[i][c] * a[i][c];
        norm = std::sqrt(norm);
        const double head = a[c + 1][c];
        beside[c] = norm == 0.0 ? 0.0 : (head > 0.0 ? -norm : norm);
        if (norm == 0.0) continue;
        for (int i = c + 1; i < n; ++i) v[i] = a[i][c];
        v[c + 1] -= beside[c];
        double square = 0.0;
        for (int i = c + 1; i < n; ++i) square += v[i] * v[i];
        if (square == 0.0) continue;
        double along = 0.0;
        for (int i = c + 1; i < n; ++i) {
            double sum = 0.0;
            for (int j = c + 1; j < n; ++j) sum += a[i][j] * v[j];
            p[i] = 2.0 * sum / square;
            along += p[i] * v[i];
        }
        along /= square;
        for (int i = c + 1; i < n; ++i) p[i] -= along * v[i];
        for (int i = c + 1; i < n; ++i)
            for (int j = c + 1; j < n; ++j) a[i][j] -= v[i] * p[j] + p[i] * v[j];
    }
    if (n > 1) beside[n - 2] = a[n - 1][n - 2];
    for (int i = 0; i < n; ++i) diagonal[i] = a[i][i];
    for (int l = 0; l < n; ++l)
        for (int step = 0; step < 60; ++step) {
            int end = l;
            for (; end + 1 < n; ++end) {
                const double sum = std::fabs(diagonal[end]) + std::fabs(diagonal[end + 1]);
                if (std::fabs(beside[end]) <= 1e-16 * sum) break;
            }
            if (end == l) break;
            double g = (diagonal[l + 1] - diagonal[l]) / (2.0 * beside[l]);
            double r = std::hypot(g, 1.0);
            g = diagonal[end] - diagonal[l] + beside[l] / (g + (g >= 0.0 ? r : -r));
            double s = 1.0, c = 1.0, shift = 0.0;
            int i = end - 1;
            for (; i >= l; --i) {
                const double f = s * beside[i], b = c * beside[i];
                r = std::hypot(f, g);
                beside[i + 1] = r;
                if (r == 0.0) {
                    diagonal[i + 1] -= shift;
                    beside[end] = 0.0;
                    break;
                }
                s = f / r, c = g / r;
                g = diagonal[i + 1] - shift;
                r = (diagonal[i] - g) * s + 2.0 * c * b;
                shift = s * r;
                diagonal[i + 1] = g + shift;
                g = c * r - b;
            }
            if (r == 0.0 && i >= l) continue;
            diagonal[l] -= shift, beside[l] = g, beside[end] = 0.0;
        }
    std::sort(diagonal, diagonal + n, [](double x, double y) { return x > y; });
    double sum = 0.0;
    for (int i = 0; i < std::min(m, n); ++i) sum += std::max(diagonal[i], 0.0);
    return sum;
}

struct Search {
    const double *scatter, *floor;
    int d, k;
    double best, slack;
    Set best_set;
    int64_t compared = 0;  // subsets of k columns
    std::vector<Set> stack;  // pairs of chosen and open sets

    double w[MOST][MOST], rest[MOST][MOST], by_open[MOST][MOST];

    // Take a column out of `w` by elimination; what it explains, 0 if the columns before it explain it itself.
    double eliminate(int c) {
        const double pivot = w[c][c];
        if (pivot <= floor[c]) {
            for (int i = 0; i < d; ++i) w[i][c] = w[c][i] = 0.0;
            return 0.0;
        }
        double row[MOST], sum = 0.0;
        for (int i = 0; i < d; ++i) row[i] = w[c][i], sum += row[i] * row[i];
        for (int i = 0; i < d; ++i) {
            const double by = row[i] / pivot;
            for (int j = 0; j < d; ++j) w[i][j] -= by * row[j];
        }
        for (int i = 0; i < d; ++i) w[i][c] = w[c][i] = 0.0;
        return sum / pivot;
    }

    // The Gauss-Jordan pivot: afterwards the rows and columns swept hold the inverse of their part and the coefficients.
    bool sweep(int c) {
        const double pivot = w[c][c];
        if (pivot <= floor[c]) return false;
        double row[MOST], column[MOST];
        for (int j = 0; j < d; ++j) row[j] = w[c][j] / pivot, column[j] = w[j][c];
        for (int i = 0; i < d; ++i)
            if (i != c)
                for (int j = 0; j < d; ++j) w[i][j] -= column[i] * row[j];
        for (int i = 0; i < d; ++i) w[c][i] = row[i], w[i][c] = -column[i] / pivot;
        w[c][c] = 1.0 / pivot;
        return true;
    }

    void compare(double value, Set set) {
        ++compared;
        if (value > best + slack) best = value, best_set = set;
    }

    void visit(Set chosen, Set open) {
        const int missing = k - size(chosen);
        if (missing < 0 || size(open) < missing) return;
        for (int i = 0; i < d; ++i) std::copy(scatter + i * d, scatter + (i + 1) * d, w[i]);
        double value = 0.0;
        for (int c = 0; c < d; ++c)
            if (in(chosen, c)) value += eliminate(c);
        if (missing == 0 || size(open) == missing) {
            if (missing > 0)
                for (int c = 0; c < d; ++c)
                    if (in(open, c)) value += eliminate(c);
            compare(value, missing == 0 ? chosen : chosen | open);
            return;
        }
        for (int i = 0; i < d; ++i) std::copy(w[i], w[i] + d, rest[i]);
        Set swept = 0;
        for (int c = 0; c < d; ++c)
            if (in(open, c) && sweep(c)) swept |= Set(1) << c;
        double more = 0.0, squares = 0.0;  // trace and squared norm of what the open columns explain
        for (int i = 0; i < d; ++i)
            for (int j = 0; j < d; ++j) {
                by_open[i][j] = rest[i][j] - (in(swept, i) || in(swept, j) ? 0.0 : w[i][j]);
                squares += by_open[i][j] * by_open[i][j];
                if (i == j) more += by_open[i][i];
            }
        if (value + more <= best + slack) return;
        // With this sum and this sum of squares, the m largest of n eigenvalues add up to no more than this.
        const int n = d - size(chosen);
        const double mean = more / n, spread = std::max(squares - mean * more, 0.0);
        if (value + missing * mean + std::sqrt(double(missing) * (n - missing) / n * spread) <= best + slack) return;
        int place = 0;
        for (int i = 0; i < d; ++i)
            if (!in(chosen, i)) {
                int across = 0;
                for (int j = 0; j < d; ++j)
                    if (!in(chosen, j)) by_open[place][across++] = by_open[i][j];
                ++place;
            }
        if (value + largest_eigenvalues(by_open, n, missing) <= best + slack) return;
        int most = -1;
        double largest = -1.0;
        Set needed = 0;
        for (int c = 0; c < d; ++c) {
            if (!in(open, c)) continue;
            double loss = 0.0;
            if (in(swept, c)) {
                double sum = 1.0;
                bool replaceable = false;  // by an open column that the others determine, as long as c is among them
                for (int i = 0; i < d; ++i) {
                    if (in(swept, i)) continue;
                    const double square = w[i][c] * w[i][c];
                    replaceable |= in(open, i) && square / w[c][c] > floor[i];
                    sum += square;
                }
                loss = replaceable ? 0.0 : sum / w[c][c];
            }
            if (value + more - loss <= best + slack) needed |= Set(1) << c;
            if (loss > largest) largest = loss, most = c;
        }
        if (needed) {
            push(chosen | needed, open & ~needed);
            return;
        }
        const Set one = Set(1) << most;
        push(chosen, open & ~one);
        push(chosen | one, open & ~one);
    }

    void push(Set chosen, Set open) { stack.push_back(chosen), stack.push_back(open); }
};

std::tuple<double, uint64_t, int64_t, int64_t, std::vector<uint64_t>> best_subset(
    Matrix scatter, Line floor, int k, double best, uint64_t best_set, double slack, Nodes nodes, int64_t most) {
    nb::gil_scoped_release released;
    std::vector<Search> memory(1);  // too large for the stack of a thread
    Search &search = memory[0];
    search.scatter = scatter.data(), search.floor = floor.data();
    search.d = int(scatter.shape(0)), search.k = k;
    search.best = best, search.best_set = best_set, search.slack = slack;
    for (size_t i = 0; i < nodes.shape(0); ++i) search.push(nodes.data()[2 * i], nodes.data()[2 * i + 1]);
    int64_t visited = 0;
    while (!search.stack.empty() && visited < most) {
        const Set open = search.stack.back();
        search.stack.pop_back();
        const Set chosen = search.stack.back();
        search.stack.pop_back();
        search.visit(chosen, open);
        ++visited;
    }
    return {search.best, search.best_set, search.compared, visited, search.stack};
}

}  // namespace

void register_subsets(nb::module_ &m) {
    m.def("best_subset", &best_subset, nb::arg("scatter").noconvert(), nb::arg("floor").noconvert(), nb::arg("k"), nb::arg("best"),
          nb::arg("best_set"), nb::arg("slack"), nb::arg("nodes").noconvert(), nb::arg("most"));
}
