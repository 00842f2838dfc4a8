// K-means on a table that fits in the cache: many descents from different starts, and recombination of the best.
//
// On such tables a descent takes microseconds, so the poor optima of single starts can be avoided by brute force. The
// result is only a set of initial centres: the labels, sums and inertia that a fit reports come from the exact kernels.
// Sums are formed in a fixed order and products are not fused (see CMakeLists.txt), so that the centres have the same
// bits on every processor.
//
// Cells may be missing (NaN). Distances are then over the observed cells of a row, and a centre is the mean of the observed
// cells of its rows; a coordinate of which there are none stays where it was.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <future>
#include <limits>
#include <numeric>
#include <optional>
#include <vector>

#include "random.h"

namespace nb = nanobind;

#if defined(FW_X86) && defined(__GNUC__) && !defined(__clang__) && defined(__GLIBC__)
#define FW_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define FW_CLONES
#endif

namespace {

using fw::Random;
using std::size_t;
using Doubles = std::vector<double>;

typedef double Lanes __attribute__((vector_size(64)));
typedef double Unaligned __attribute__((vector_size(64), aligned(8), may_alias));
constexpr size_t kLanes = 8, kGroups = 4, kBlock = kLanes * kGroups;  // rows that are compared together
constexpr double kFar = std::numeric_limits<double>::infinity();

// ---------------------------------------------------------------- distances

#define loaded(from) (*reinterpret_cast<const Unaligned *>(from))
#define FW_INLINE __attribute__((always_inline)) inline

template <bool observed> FW_INLINE Lanes squared(Lanes gap) {
    if (observed) gap = gap == gap ? gap : Lanes{};
    return gap * gap;
}

// Compares a block of rows, stored by columns, with `m` points; those nearer than `best` replace it and `label`.
template <bool observed>
FW_INLINE void nearer(const double *block, size_t d, const double *points, const double *names, size_t m, double *best,
                      double *label) {
    Lanes near[kGroups], name[kGroups];
    std::memcpy(near, best, sizeof near);
    std::memcpy(name, label, sizeof name);
    for (size_t j = 0; j < m; ++j) {
        const double *point = points + j * d;
        Lanes sum[kGroups] = {};
        for (size_t c = 0; c < d; ++c) {
            for (size_t g = 0; g < kGroups; ++g) {
                sum[g] += squared<observed>(loaded(block + c * kBlock + g * kLanes) - point[c]);
            }
        }
        for (size_t g = 0; g < kGroups; ++g) {
            const auto less = sum[g] < near[g];
            near[g] = less ? sum[g] : near[g];
            name[g] = less ? names[j] - Lanes{} : name[g];
        }
    }
    std::memcpy(best, near, sizeof near);
    std::memcpy(label, name, sizeof name);
}
FW_CLONES void nearer_complete(const double *block, size_t d, const double *points, const double *names, size_t m, double *best,
                               double *label) {
    nearer<false>(block, d, points, names, m, best, label);
}
FW_CLONES void nearer_observed(const double *block, size_t d, const double *points, const double *names, size_t m, double *best,
                               double *label) {
    nearer<true>(block, d, points, names, m, best, label);
}

// For a block of rows and all `m` centres: the squared distance to the row's own one, which `label` names, and the least of
// those to the others. Rows in lanes do not wait for one another's sums, as they do in `row_distances`; the bits are the same.
FW_CLONES void own_and_other(const double *block, size_t d, const double *points, size_t m, const double *label, double *own,
                             double *other) {
    Lanes mine[kGroups], others[kGroups];
    for (size_t g = 0; g < kGroups; ++g) mine[g] = others[g] = kFar - Lanes{};
    for (size_t j = 0; j < m; ++j) {
        const double *point = points + j * d;
        Lanes sum[kGroups] = {};
        for (size_t c = 0; c < d; ++c)
            for (size_t g = 0; g < kGroups; ++g) {
                sum[g] += squared<false>(loaded(block + c * kBlock + g * kLanes) - point[c]);
            }
        for (size_t g = 0; g < kGroups; ++g) {
            const auto is_own = loaded(label + g * kLanes) == double(j) - Lanes{};
            mine[g] = is_own ? sum[g] : mine[g];
            const Lanes away = is_own ? kFar - Lanes{} : sum[g];
            others[g] = away < others[g] ? away : others[g];
        }
    }
    std::memcpy(own, mine, sizeof mine);
    std::memcpy(other, others, sizeof others);
}

// Squared distances of one row to `m` points stored by columns, `m` a multiple of kLanes.
template <bool observed>
FW_INLINE void row_distances(const double *row, size_t d, const double *panel, size_t m, double *out) {
    for (size_t j = 0; j < m; j += kLanes) {
        Lanes sum = {};
        for (size_t c = 0; c < d; ++c) {
            sum += squared<observed>(row[c] - loaded(panel + c * m + j));
        }
        std::memcpy(out + j, &sum, sizeof sum);
    }
}
FW_CLONES void row_distances_complete(const double *row, size_t d, const double *panel, size_t m, double *out) {
    row_distances<false>(row, d, panel, m, out);
}
FW_CLONES void row_distances_observed(const double *row, size_t d, const double *panel, size_t m, double *out) {
    row_distances<true>(row, d, panel, m, out);
}

// The least of `m` values, a multiple of kLanes.
FW_CLONES double least_of(const double *values, size_t m) {
    Lanes least = kFar - Lanes{};
    for (size_t j = 0; j < m; j += kLanes) {
        const Lanes value = loaded(values + j);
        least = value < least ? value : least;
    }
    double out = kFar;
    for (size_t l = 0; l < kLanes; ++l) out = std::min(out, least[l]);
    return out;
}

// The least of mass / (mass + w) * away over `m` entries, a multiple of kLanes.
FW_CLONES double least_to_join(const double *away, const double *mass, double w, size_t m) {
    Lanes least = kFar - Lanes{};
    for (size_t j = 0; j < m; j += kLanes) {
        const Lanes size = loaded(mass + j), joins = size / (size + w) * loaded(away + j);
        least = joins < least ? joins : least;
    }
    double out = kFar;
    for (size_t l = 0; l < kLanes; ++l) out = std::min(out, least[l]);
    return out;
}

// The sum of weight times distance over each of `count` blocks of rows.
FW_CLONES void block_masses(const double *weight, const double *closest, size_t count, double *out) {
    for (size_t b = 0; b < count; ++b, weight += kBlock, closest += kBlock) {
        Lanes sum = {};
        for (size_t g = 0; g < kGroups; ++g) sum += loaded(weight + g * kLanes) * loaded(closest + g * kLanes);
        out[b] = ((sum[0] + sum[4]) + (sum[2] + sum[6])) + ((sum[1] + sum[5]) + (sum[3] + sum[7]));
    }
}

// The same if `point` were one more centre.
template <bool observed>
FW_INLINE void masses_with(const double *columns, size_t d, const double *point, const double *weight, const double *closest,
                           size_t count, double *out) {
    for (size_t b = 0; b < count; ++b, columns += d * kBlock, weight += kBlock, closest += kBlock) {
        Lanes away[kGroups] = {};
        for (size_t c = 0; c < d; ++c)
            for (size_t g = 0; g < kGroups; ++g) {
                away[g] += squared<observed>(loaded(columns + c * kBlock + g * kLanes) - point[c]);
            }
        Lanes sum = {};
        for (size_t g = 0; g < kGroups; ++g) {
            const Lanes known = loaded(closest + g * kLanes);
            sum += loaded(weight + g * kLanes) * (away[g] < known ? away[g] : known);
        }
        out[b] = ((sum[0] + sum[4]) + (sum[2] + sum[6])) + ((sum[1] + sum[5]) + (sum[3] + sum[7]));
    }
}

FW_CLONES void masses_with_complete(const double *columns, size_t d, const double *point, const double *weight,
                                    const double *closest, size_t count, double *out) {
    masses_with<false>(columns, d, point, weight, closest, count, out);
}
FW_CLONES void masses_with_observed(const double *columns, size_t d, const double *point, const double *weight,
                                    const double *closest, size_t count, double *out) {
    masses_with<true>(columns, d, point, weight, closest, count, out);
}

double total_of(const Doubles &parts) { return std::accumulate(parts.begin(), parts.end(), 0.0); }

double apart(const double *a, const double *b, size_t d) {
    double sum = 0;
    for (size_t c = 0; c < d; ++c) sum += (a[c] - b[c]) * (a[c] - b[c]);
    return sum;
}

// ---------------------------------------------------------------- the table

// The distinct rows in lexicographic order, less their mean, with their weights: repeated rows, weights and the order of
// the rows make no difference. Rows of weight 0 and rows with nothing observed are left out.
struct Table {
    size_t n = 0, d = 0, blocks = 0;
    bool observed = false;  // whether cells are missing
    double total = 0;  // weight
    Doubles mean;  // 0 if rows are compared by direction
    Doubles rows, weight;
    Doubles filled;  // if cells are missing: the rows with zeros, the means of the columns, in their place
    Doubles columns;  // the rows again in blocks, each stored by columns; zeros fill the last block

    Table(const double *x, const double *w, size_t count, size_t d, bool unit) : d(d), mean(d, 0.0) {
        std::vector<uint32_t> order;
        order.reserve(count);
        for (size_t i = 0; i < count; ++i)
            if ((!w || w[i] > 0) && some_observed(x + i * d)) order.push_back(uint32_t(i));
        const auto compare = [&](uint32_t a, uint32_t b) {
            for (size_t c = 0; c < d; ++c) {
                const double one = x[a * d + c], other = x[b * d + c];
                if (one == other || (one != one && other != other)) continue;
                return one < other || other != other ? -1 : 1;  // a missing cell comes last
            }
            return 0;
        };
        std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
            const int sign = compare(a, b);
            return sign ? sign < 0 : (w && w[a] < w[b]);  // so that the weights of equal rows are added in order
        });
        rows.reserve(order.size() * d);
        for (size_t i = 0; i < order.size(); ++i) {
            const double mass = w ? w[order[i]] : 1.0;
            if (i && !compare(order[i - 1], order[i])) {
                weight.back() += mass;
                continue;
            }
            rows.insert(rows.end(), x + order[i] * d, x + order[i] * d + d);
            weight.push_back(mass);
        }
        n = weight.size();
        total = total_of(weight);
        for (const double value : rows) observed |= value != value;
        if (!unit) subtract_mean();
        if (observed) {
            filled = rows;
            for (double &value : filled) value = value == value ? value : 0.0;
        }
        blocks = (n + kBlock - 1) / kBlock;
        weight.resize(blocks * kBlock, 0.0);
        columns.assign(blocks * d * kBlock, 0.0);
        for (size_t i = 0; i < n; ++i)
            for (size_t c = 0; c < d; ++c) columns[(i / kBlock * d + c) * kBlock + i % kBlock] = rows[i * d + c];
    }

    bool some_observed(const double *row) const {
        return std::any_of(row, row + d, [](double value) { return value == value; });
    }

    void subtract_mean() {
        if (observed) return subtract_observed_means();
        double total = 0;
        for (size_t i = 0; i < n; ++i) {
            total += weight[i];  // a running mean: sums of huge weights could leave the range of numbers
            for (size_t c = 0; c < d; ++c) mean[c] += (rows[i * d + c] - mean[c]) * (weight[i] / total);
        }
        for (size_t i = 0; i < n; ++i)
            for (size_t c = 0; c < d; ++c) rows[i * d + c] -= mean[c];
    }

    void subtract_observed_means() {
        Doubles total(d, 0.0);
        for (size_t i = 0; i < n; ++i)
            for (size_t c = 0; c < d; ++c) {
                if (rows[i * d + c] != rows[i * d + c]) continue;
                total[c] += weight[i];
                mean[c] += (rows[i * d + c] - mean[c]) * (weight[i] / total[c]);
            }
        for (size_t i = 0; i < n; ++i)
            for (size_t c = 0; c < d; ++c) rows[i * d + c] -= mean[c];
    }

    const double *row(size_t i) const { return rows.data() + i * d; }
    // The row as a centre.
    const double *point(size_t i) const { return (observed ? filled : rows).data() + i * d; }
    double apart_from(size_t i, const double *centre) const {
        if (!observed) return apart(row(i), centre, d);
        double sum = 0;
        for (size_t c = 0; c < d; ++c) {
            const double gap = row(i)[c] - centre[c];
            if (gap == gap) sum += gap * gap;
        }
        return sum;
    }
    void nearer_in_block(size_t b, const double *points, const double *names, size_t m, double *best, double *label) const {
        nearer_of_rows(b, points, names, m, best + b * kBlock, label + b * kBlock);
    }
    // The same with `best` and `label` of the rows of this block alone.
    void nearer_of_rows(size_t b, const double *points, const double *names, size_t m, double *best, double *label) const {
        (observed ? nearer_observed : nearer_complete)(block(b), d, points, names, m, best, label);
    }
    void distances_of_row(size_t i, const double *panel, size_t m, double *out) const {
        (observed ? row_distances_observed : row_distances_complete)(row(i), d, panel, m, out);
    }
    void block_masses_with(size_t i, const double *closest, double *out) const {
        const auto run = observed ? masses_with_observed : masses_with_complete;
        run(columns.data(), d, point(i), weight.data(), closest, blocks, out);
    }
    const double *block(size_t b) const { return columns.data() + b * d * kBlock; }
};

// ---------------------------------------------------------------- one clustering

struct Clustering {
    double value = kFar;
    Doubles centres;        // k x d
    Doubles label, closest; // of every row: its centre, and the squared distance to it
};

// Lloyd's and Hartigan's steps from given centres. Rows are compared only with centres that moved, where that is enough
// (Kaukoranta, Franti and Nevalainen 2000).
class Steps {
  public:
    Steps(const Table &table, size_t k, bool unit)
        : t_(table), k_(k), wide_((k + kLanes - 1) / kLanes * kLanes), unit_(unit), sums_(k * table.d),
          cells_(table.observed ? k * table.d : 0), mass_(wide_, 1.0),
          moved_(k), panel_(wide_ * table.d, kFar), away_(wide_), names_(k), some_(k * table.d), some_names_(k) {
        std::iota(names_.begin(), names_.end(), 0.0);
    }

    // Assigns every row to its nearest centre.
    void assign(Clustering &now) {
        const size_t padded = t_.blocks * kBlock;
        now.closest.assign(padded, kFar);
        now.label.assign(padded, 0.0);
        for (size_t b = 0; b < t_.blocks; ++b)
            t_.nearer_in_block(b, now.centres.data(), names_.data(), k_, now.closest.data(), now.label.data());
        add_up(now);
    }

    // Sums and value of the labels as they are.
    void add_up(Clustering &now) {
        std::fill(sums_.begin(), sums_.end(), 0.0);
        std::fill(cells_.begin(), cells_.end(), 0.0);
        std::fill(mass_.begin(), mass_.begin() + ptrdiff_t(k_), 0.0);
        for (size_t i = 0; i < t_.n; ++i) add(i, size_t(now.label[i]), t_.weight[i]);
        now.value = value_of(now);
        std::fill(moved_.begin(), moved_.end(), 1);
    }

    // Descends until no label changes, until the value is not likely to come below `goal`, or until the centres are back
    // near those of a known clustering, whose optimum would be found again.
    void descend(Clustering &now, double goal, const std::vector<Clustering> &known, size_t max_steps = 300) {
        double last = kFar;
        for (size_t step = 0; step < max_steps; ++step) {
            if (!move_centres(now)) return;
            const double before = now.value;
            if (!reassign(now)) return;
            const double gain = before - now.value;
            if (gain <= 1e-12 * now.value) return;
            // Gains shrink by nearly constant ratios; twice their sum is a generous guess of what is still to come.
            const double ratio = std::min(std::max(gain / last, 0.85), 0.97);
            if (step >= 3 && now.value - 2 * gain * ratio / (1 - ratio) > goal) return;
            last = gain;
            if (now.value > goal)
                for (const Clustering &other : known)
                    if (is_near(now, other)) return;
        }
    }

    // Whether every centre is near one of the other clustering, compared with the distances of rows to their centres.
    bool is_near(const Clustering &now, const Clustering &other) const {
        const double near = kNear * now.value / t_.total;
        for (size_t i = 0; i < k_; ++i) {
            bool found = false;
            for (size_t j = 0; j < k_ && !found; ++j)
                found = apart(&now.centres[(i) * t_.d], &other.centres[(i + j) % k_ * t_.d], t_.d) < near;
            if (!found) return false;
        }
        return true;
    }

    // Hartigan's method: moves single rows while that lowers the inertia. Its optima are optima of Lloyd's method, too,
    // but not the other way round.
    bool move_rows(Clustering &now) {
        if (unit_) return false;
        if (t_.observed) return move_observed_rows(now);
        fill_panel(now);
        bool any = false;
        for (int round = 0; round < 20; ++round) {
            size_t changed = 0;
            const double smallest = *std::min_element(mass_.begin(), mass_.begin() + ptrdiff_t(k_)) / 2;
            bool known = false;  // whether the centres are those that the block was compared with
            double own[kBlock], other[kBlock];
            for (size_t i = 0; i < t_.n; ++i) {
                const size_t place = i % kBlock;
                if (place == 0) {
                    own_and_other(t_.block(i / kBlock), t_.d, now.centres.data(), k_, &now.label[i], own, other);
                    known = true;
                }
                const size_t from = size_t(now.label[i]);
                const double w = t_.weight[i];
                if (mass_[from] <= w * (1 + 1e-9)) continue;
                if (!known) t_.distances_of_row(i, panel_.data(), wide_, away_.data());
                const double least = mass_[from] / (mass_[from] - w) * (known ? own[place] : away_[from]) * (1 - 1e-12);
                away_[from] = kFar;
                // Most rows are far from every other centre: a bound by the smallest cluster saves the divisions.
                const double nearest = known ? other[place] : least_of(away_.data(), wide_);
                if (nearest * (smallest / (smallest + w)) >= least) continue;
                if (known) t_.distances_of_row(i, panel_.data(), wide_, away_.data());
                away_[from] = kFar;
                const double joins = least_to_join(away_.data(), mass_.data(), w, wide_);
                if (!(joins < least)) continue;
                size_t to = 0;
                while (mass_[to] / (mass_[to] + w) * away_[to] != joins) ++to;
                now.label[i] = double(to);
                add(i, from, -w);
                add(i, to, w);
                for (const size_t j : {from, to})
                    for (size_t c = 0; c < t_.d; ++c)
                        panel_[c * wide_ + j] = now.centres[j * t_.d + c] = sums_[j * t_.d + c] / mass_[j];
                known = false;
                ++changed;
            }
            any |= changed > 0;
            if (!changed) break;
        }
        if (any) assign(now);
        return any;
    }

    // The same where cells are missing: each column of a cluster has its own weight.
    bool move_observed_rows(Clustering &now) {
        bool any = false;
        for (int round = 0; round < 20; ++round) {
            size_t changed = 0;
            for (size_t i = 0; i < t_.n; ++i) {
                const size_t from = size_t(now.label[i]);
                const double w = t_.weight[i];
                if (mass_[from] <= w * (1 + 1e-9)) continue;
                double least = change(now, i, from, -w) * (1 - 1e-12);
                size_t to = from;
                for (size_t j = 0; j < k_; ++j) {
                    if (j == from) continue;
                    const double joins = change(now, i, j, w);
                    if (joins < least) least = joins, to = j;
                }
                if (to == from) continue;
                now.label[i] = double(to);
                add(i, from, -w);
                add(i, to, w);
                for (const size_t j : {from, to}) move_observed_centre(j, &now.centres[j * t_.d]);
                ++changed;
            }
            any |= changed > 0;
            if (!changed) break;
        }
        if (any) assign(now);
        return any;
    }

    // By how much, relative to its weight, the inertia of a cluster changes if a row joins it, or leaves it (w < 0).
    double change(const Clustering &now, size_t i, size_t cluster, double w) const {
        const double *row = t_.row(i), *centre = &now.centres[cluster * t_.d], *cells = &cells_[cluster * t_.d];
        double sum = 0;
        for (size_t c = 0; c < t_.d; ++c) {
            const double gap = row[c] - centre[c], after = cells[c] + w;
            // Without other cells in its column, a cell costs nothing: the coordinate goes where it is.
            if (gap == gap && after > 1e-9 * std::abs(w) && !few(cells[c], cluster)) sum += cells[c] / after * (gap * gap);
        }
        return sum;
    }

    // Rows of a removed centre go to the nearest remaining one; then the new centre at `row` takes the rows near it.
    void replace(Clustering &now, size_t removed, size_t row) {
        const double *point = t_.point(row);
        std::copy(point, point + t_.d, &now.centres[removed * t_.d]);
        before_ = now.label;
        fill_panel(now);
        const double name = double(removed);
        for (size_t b = 0; b < t_.blocks; ++b) {
            const size_t first = b * kBlock, end = std::min(t_.n, first + kBlock);
            if (many_in_block(now, b, name)) {
                double best[kBlock], label[kBlock] = {};
                std::fill(best, best + kBlock, kFar);
                t_.nearer_of_rows(b, now.centres.data(), names_.data(), k_, best, label);
                for (size_t i = first; i < end; ++i)
                    if (now.label[i] == name) now.closest[i] = best[i - first], now.label[i] = label[i - first];
                continue;
            }
            for (size_t i = first; i < end; ++i)
                if (now.label[i] == name) scan(now, i);
        }
        for (size_t b = 0; b < t_.blocks; ++b)
            t_.nearer_in_block(b, point, &name, 1, now.closest.data(), now.label.data());
        std::fill(moved_.begin(), moved_.end(), 0);
        moved_[removed] = 1;
        follow(now);
    }

    // The distance of every row to the nearest centre other than `left_out`.
    void without(const Clustering &now, size_t left_out, Doubles &closest) {
        closest = now.closest;
        fill_panel(now);
        for (size_t c = 0; c < t_.d; ++c) panel_[c * wide_ + left_out] = kFar;
        const double name = double(left_out);
        double own[kBlock], other[kBlock];
        for (size_t b = 0; b < t_.blocks; ++b) {
            const size_t first = b * kBlock, end = std::min(t_.n, first + kBlock);
            const bool many = !t_.observed && many_in_block(now, b, name);
            if (many) own_and_other(t_.block(b), t_.d, now.centres.data(), k_, &now.label[first], own, other);
            for (size_t i = first; i < end; ++i) {
                if (now.label[i] != name) continue;
                if (!many) t_.distances_of_row(i, panel_.data(), wide_, away_.data());
                closest[i] = many ? other[i - first] : *std::min_element(away_.begin(), away_.begin() + ptrdiff_t(k_));
            }
        }
    }

    // Centres that have the least to say: for each, the increase in inertia if its rows joined the nearest centre.
    void costs(const Clustering &now, Doubles &cost) {
        cost.assign(k_, kFar);
        for (size_t a = 0; a < k_; ++a)
            for (size_t b = 0; b < a; ++b) {
                const double both = mass_[a] + mass_[b];
                const double merge =
                    both > 0 ? mass_[a] * mass_[b] / both * apart(&now.centres[a * t_.d], &now.centres[b * t_.d], t_.d) : 0;
                cost[a] = std::min(cost[a], merge);
                cost[b] = std::min(cost[b], merge);
            }
    }

  private:
    static constexpr double kNear = 1e-3;
    static constexpr size_t kCompareAll = 128;  // numbers in all centres: up to here, sorting out rows takes longer

    void add(size_t i, size_t cluster, double w) {
        const double *row = t_.row(i);
        double *sum = &sums_[cluster * t_.d];
        mass_[cluster] += w;
        if (t_.observed) {
            double *cells = &cells_[cluster * t_.d];
            for (size_t c = 0; c < t_.d; ++c) {
                if (row[c] != row[c]) continue;
                sum[c] += w * row[c];
                cells[c] += w;
            }
            return;
        }
        for (size_t c = 0; c < t_.d; ++c) sum[c] += w * row[c];
    }

    // Whether so many rows of a block are in the cluster that comparing all of them at once takes less time than one by one.
    bool many_in_block(const Clustering &now, size_t b, double name) const {
        const double *label = &now.label[b * kBlock];
        return size_t(std::count(label, label + std::min(kBlock, t_.n - b * kBlock), name)) >= 2 * k_;
    }

    // Whether the weight of a cluster's cells in a column is no more than what rounding leaves.
    bool few(double cells, size_t cluster) const { return cells <= 1e-12 * mass_[cluster]; }

    // Moves a centre to the means of its observed cells; returns whether it was there.
    bool move_observed_centre(size_t j, double *centre) {
        bool same = true;
        for (size_t c = 0; c < t_.d; ++c) {
            if (few(cells_[j * t_.d + c], j)) continue;
            const double mean = sums_[j * t_.d + c] / cells_[j * t_.d + c];
            same &= mean == centre[c];
            centre[c] = mean;
        }
        return same;
    }

    // Centres of changed clusters become the means of their rows; an empty cluster takes the row farthest from its own
    // centre. Returns whether any centre moved.
    bool move_centres(Clustering &now) {
        bool any = false;
        for (size_t j = 0; j < k_; ++j) {
            if (!moved_[j]) continue;
            double *centre = &now.centres[j * t_.d];
            if (mass_[j] <= 1e-300) {
                const size_t far = size_t(std::max_element(now.closest.begin(), now.closest.begin() + ptrdiff_t(t_.n)) -
                                          now.closest.begin());
                if (!(now.closest[far] > 0)) {
                    moved_[j] = 0;
                    continue;
                }
                std::copy(t_.point(far), t_.point(far) + t_.d, centre);
                now.closest[far] = 0;  // not for the next empty cluster
                any = true;
                continue;
            }
            double length = 0;
            bool same = true;
            if (t_.observed) {
                same = move_observed_centre(j, centre);
                moved_[j] = !same;
                any |= !same;
                continue;
            }
            if (unit_) {
                for (size_t c = 0; c < t_.d; ++c) length += sums_[j * t_.d + c] * sums_[j * t_.d + c];
                if (length == 0) {
                    moved_[j] = 0;
                    continue;
                }
            }
            const double by = unit_ ? std::sqrt(length) : mass_[j];
            for (size_t c = 0; c < t_.d; ++c) {
                const double mean = sums_[j * t_.d + c] / by;
                same &= mean == centre[c];
                centre[c] = mean;
            }
            moved_[j] = !same;
            any |= !same;
        }
        return any;
    }

    // Assigns rows again after some centres moved; returns whether any label changed.
    bool reassign(Clustering &now) {
        size_t m = 0;
        for (size_t j = 0; j < k_; ++j) {
            if (!moved_[j]) continue;
            std::copy(&now.centres[j * t_.d], &now.centres[j * t_.d] + t_.d, &some_[m * t_.d]);
            some_names_[m++] = double(j);
        }
        before_ = now.label;
        if (3 * m >= 2 * k_ || k_ * t_.d <= kCompareAll) {
            std::fill(now.closest.begin(), now.closest.end(), kFar);
            for (size_t b = 0; b < t_.blocks; ++b)
                t_.nearer_in_block(b, now.centres.data(), names_.data(), k_, now.closest.data(), now.label.data());
        } else {
            fill_panel(now);
            for (size_t b = 0; b < t_.blocks; ++b) {
                const size_t end = std::min(t_.n, (b + 1) * kBlock);
                for (size_t i = b * kBlock; i < end; ++i) {
                    const size_t own = size_t(now.label[i]);
                    if (!moved_[own]) continue;
                    const double old = now.closest[i];
                    now.closest[i] = t_.apart_from(i, &now.centres[own * t_.d]);
                    if (now.closest[i] > old) scan(now, i);
                }
                t_.nearer_in_block(b, some_.data(), some_names_.data(), m, now.closest.data(), now.label.data());
            }
        }
        std::fill(moved_.begin(), moved_.end(), 0);
        return follow(now);
    }

    // Brings the sums and the value up to date with labels that were before_; returns whether any changed.
    bool follow(Clustering &now) {
        bool any = false;
        now.value = value_of(now);
        for (size_t b = 0; b < t_.blocks; ++b) {
            const size_t first = b * kBlock, end = std::min(t_.n, first + kBlock);
            if (!std::memcmp(&now.label[first], &before_[first], kBlock * sizeof(double))) continue;
            for (size_t i = first; i < end; ++i) {
                if (now.label[i] == before_[i]) continue;
                const size_t from = size_t(before_[i]), to = size_t(now.label[i]);
                add(i, from, -t_.weight[i]);
                add(i, to, t_.weight[i]);
                moved_[from] = moved_[to] = 1;
                any = true;
            }
        }
        return any;
    }

    double value_of(const Clustering &now) {
        masses_.resize(t_.blocks);
        block_masses(t_.weight.data(), now.closest.data(), t_.blocks, masses_.data());
        return total_of(masses_);
    }

    void fill_panel(const Clustering &now) {
        for (size_t j = 0; j < k_; ++j)
            for (size_t c = 0; c < t_.d; ++c) panel_[c * wide_ + j] = now.centres[j * t_.d + c];
    }

    void scan(Clustering &now, size_t i) {
        t_.distances_of_row(i, panel_.data(), wide_, away_.data());
        const auto least = std::min_element(away_.begin(), away_.begin() + ptrdiff_t(k_));
        now.closest[i] = *least;
        now.label[i] = double(least - away_.begin());
    }

    const Table &t_;
    size_t k_, wide_;
    bool unit_;
    Doubles sums_;
    Doubles cells_;  // k x d, if cells are missing: the weight of the observed ones
    Doubles mass_;
    std::vector<char> moved_;
    Doubles panel_, away_, names_, some_, some_names_, before_, masses_;
};

// ---------------------------------------------------------------- starts and recombination

// Makes clusterings: from scratch, or as children of others.
class Maker {
  public:
    Maker(const Table &table, size_t k, bool unit)
        : t_(table), k_(k), trials_(2 + size_t(std::log(double(k)))),
          promising_(1 + 0.1 / std::sqrt(double(table.n))), steps_(table, k, unit), random_(0) {}

    // A descent from given centres (k x d), or from a greedy k-means++ start.
    Clustering start(const double *given, double best, uint64_t seed) {
        random_ = Random(seed);
        Clustering now;
        if (given) {
            now.centres.assign(given, given + k_ * t_.d);
            steps_.assign(now);
        } else {
            plusplus(now);
        }
        finish(now, best, {});
        return now;
    }

    // A descent from a changed copy of one parent, or from centres of two.
    Clustering child(const std::vector<Clustering> &parents, bool crossing, uint64_t seed) {
        random_ = Random(seed);
        Clustering now = crossing && parents.size() > 1 ? crossed(parents) : parents[tournament(parents)];
        mutate(now, random_.uniform() < 0.5);
        finish(now, parents[0].value, parents);
        return now;
    }

  private:
    static constexpr double kNext = 0.6;  // the chance to pass over a centre and remove the next

    void finish(Clustering &now, double best, const std::vector<Clustering> &known) {
        steps_.descend(now, best, known);
        // Rows are moved one by one only where that may give a new best.
        while (now.value < best * promising_ || best == kFar) {
            for (const Clustering &other : known)
                if (now.value >= best && steps_.is_near(now, other)) return;
            const double before = now.value;
            if (!steps_.move_rows(now)) break;
            steps_.descend(now, best, known);
            if (now.value >= before * (1 - 1e-12)) break;
        }
    }

    size_t tournament(const std::vector<Clustering> &of) {
        const size_t one = random_.below(of.size()), other = random_.below(of.size());
        return std::min(one, other);
    }

    // Each centre of one parent is matched with the nearest free one of the other, and one of the two is taken.
    Clustering crossed(const std::vector<Clustering> &parents) {
        const size_t a = tournament(parents);
        size_t b = random_.below(parents.size() - 1);
        b += b >= a;
        const Clustering &one = parents[a], &other = parents[b];
        Clustering child;
        child.centres = one.centres;
        std::vector<char> used(k_, 0);
        for (size_t i = 0; i < k_; ++i) {
            size_t match = k_;
            double least = kFar;
            for (size_t j = 0; j < k_; ++j) {
                if (used[j]) continue;
                const double gap = apart(&one.centres[i * t_.d], &other.centres[j * t_.d], t_.d);
                if (match == k_ || gap < least) least = gap, match = j;
            }
            used[match] = 1;
            if (random_.uniform() < 0.5)
                std::copy(&other.centres[match * t_.d], &other.centres[match * t_.d] + t_.d, &child.centres[i * t_.d]);
        }
        steps_.assign(child);
        return child;
    }

    // Moves one centre to a row drawn by squared distance to the others. `guided` removes one that is little missed, and
    // draws several rows to choose from.
    void mutate(Clustering &now, bool guided) {
        size_t gone = random_.below(k_);
        steps_.add_up(now);
        if (guided) {
            steps_.costs(now, cost_);
            order_.resize(k_);
            std::iota(order_.begin(), order_.end(), size_t(0));
            std::stable_sort(order_.begin(), order_.end(), [&](size_t a, size_t b) { return cost_[a] < cost_[b]; });
            size_t rank = 0;
            while (rank + 1 < k_ && random_.uniform() < kNext) ++rank;
            gone = order_[rank];
        }
        steps_.without(now, gone, closest_);
        masses_.resize(t_.blocks);
        block_masses(t_.weight.data(), closest_.data(), t_.blocks, masses_.data());
        steps_.replace(now, gone, best_of_draws(closest_, guided ? trials_ : 1 + random_.below(trials_)));
    }

    // Greedy k-means++ (Arthur and Vassilvitskii 2007).
    void plusplus(Clustering &now) {
        const size_t padded = t_.blocks * kBlock;
        now.centres.resize(k_ * t_.d);
        now.label.assign(padded, 0.0);
        now.closest.assign(padded, 1.0);
        masses_.resize(t_.blocks);
        for (size_t j = 0; j < k_; ++j) {
            if (j < 2) block_masses(t_.weight.data(), now.closest.data(), t_.blocks, masses_.data());
            const size_t row = j ? best_of_draws(now.closest, trials_) : draw(now.closest);
            if (j) masses_.swap(best_);
            else std::fill(now.closest.begin(), now.closest.end(), kFar);
            std::copy(t_.point(row), t_.point(row) + t_.d, &now.centres[j * t_.d]);
            const double name = double(j);
            for (size_t b = 0; b < t_.blocks; ++b)
                t_.nearer_in_block(b, t_.point(row), &name, 1, now.closest.data(), now.label.data());
        }
        steps_.add_up(now);
    }

    // Of a few rows drawn, the one that as a new centre lowers the inertia most; leaves the sums by block in best_.
    size_t best_of_draws(const Doubles &closest, size_t trials) {
        double least = kFar;
        size_t row = 0;
        with_.resize(t_.blocks);
        best_.resize(t_.blocks);
        for (size_t turn = 0; turn < trials; ++turn) {
            const size_t candidate = draw(closest);
            t_.block_masses_with(candidate, closest.data(), with_.data());
            const double total = total_of(with_);
            if (total < least) least = total, row = candidate, best_.swap(with_);
        }
        return row;
    }

    // A row drawn in proportion to weight times squared distance; masses_ has their sums by block.
    size_t draw(const Doubles &closest) {
        double left = random_.uniform() * total_of(masses_);
        size_t b = 0;
        for (; b + 1 < t_.blocks && left >= masses_[b]; ++b) left -= masses_[b];
        const size_t end = std::min(t_.n, (b + 1) * kBlock);
        size_t last = b * kBlock;
        for (size_t i = b * kBlock; i < end; ++i) {
            const double mass = t_.weight[i] * closest[i];
            if (!(mass > 0)) continue;
            last = i;
            left -= mass;
            if (left < 0) break;
        }
        return last;
    }

    const Table &t_;
    size_t k_, trials_;
    double promising_;
    Steps steps_;
    Random random_;
    Doubles closest_, cost_, masses_, with_, best_;
    std::vector<size_t> order_;
};

// The best clusterings found so far. They are made two at a time, each from its own random stream, so that the result
// is the same with one thread and with two.
class Search {
  public:
    Search(const Table &table, size_t k, bool unit, uint64_t seed, bool threads)
        : makers_{Maker(table, k, unit), Maker(table, k, unit)}, random_(seed), threads_(threads) {}

    void start(const double *given, size_t count) {
        for (size_t i = 0; i < count;) {
            const size_t now = i ? std::min(count - i, size_t(2)) : 1;  // the first is a measure for the others
            make(now, [&](Maker &maker, size_t which, uint64_t seed) {
                return maker.start(i + which ? nullptr : given, best_value(), seed);
            });
            i += now;
        }
    }

    // Children of the best clusterings until `patience` of them in a row found nothing better.
    void breed(size_t patience) {
        for (size_t failed = 0, turn = 0; failed < patience;) {
            const double before = best_value();
            if (before == 0) return;
            // Now and then a fresh start: children alone come to be all alike.
            const bool fresh = turn++ % kFresh == kFresh - 1;
            make(2, [&](Maker &maker, size_t which, uint64_t seed) {
                return which == 1 && fresh ? maker.start(nullptr, before, seed) : maker.child(kept_, which == 1, seed);
            });
            failed = best_value() < before * (1 - kGain) ? 0 : failed + 2;
        }
    }

    const Clustering &best() const { return kept_[0]; }
    double best_value() const { return kept_.empty() ? kFar : kept_[0].value; }

  private:
    static constexpr size_t kKept = 10;
    static constexpr size_t kFresh = 3;
    static constexpr double kGain = 1e-4;  // an attempt that gains less has failed
    static constexpr double kSame = 1e-9;  // values nearer than this are the same clustering

    template <class Make> void make(size_t count, const Make &one) {
        uint64_t seeds[2] = {random_.next(), random_.next()};
        Clustering made[2];
        const auto run = [&](size_t which) { made[which] = one(makers_[which], which, seeds[which]); };
        if (count == 2 && threads_) {
            auto other = std::async(std::launch::async, run, 1);
            run(0);
            other.get();
        } else {
            for (size_t which = 0; which < count; ++which) run(which);
        }
        for (size_t which = 0; which < count; ++which) enter(std::move(made[which]));
    }

    // Keeps the best few, in order, each value once.
    void enter(Clustering now) {
        const auto at = std::find_if(kept_.begin(), kept_.end(), [&](const Clustering &other) {
            return now.value < other.value * (1 + kSame);
        });
        if (at != kept_.end() && now.value > at->value * (1 - kSame)) return;
        kept_.insert(at, std::move(now));
        if (kept_.size() > kKept) kept_.pop_back();
    }

    Maker makers_[2];
    Random random_;
    bool threads_;
    std::vector<Clustering> kept_;  // the best first
};

using Rows = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Line = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Out = nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

constexpr size_t kMost = 200;
constexpr double kEven = 2e4;
constexpr size_t kThreadsPay = 30'000;  // values compared in one pass, below which a second thread costs more than it gains

// Writes the centres found into `out` (k x d). The search for better ones ends after `patience` failures in a row, and
// `spare` / (values in the table) more, but at most kMost more.
void search_small_table(Rows x, std::optional<Line> weights, std::optional<Rows> given, bool unit, uint64_t seed,
                        size_t starts, size_t patience, size_t spare, size_t threads, Out out) {
    nb::gil_scoped_release released;
    const size_t k = out.shape(0), d = out.shape(1);
    const Table table(x.data(), weights ? weights->data() : nullptr, x.shape(0), d, unit);
    Doubles begin;
    for (size_t i = 0; given && i < k * d; ++i) begin.push_back(given->data()[i] - table.mean[i % d]);
    Search search(table, k, unit, seed, threads > 1 && table.n * k * d >= kThreadsPay);
    search.start(given ? begin.data() : nullptr, starts);
    const double size = double(table.n * d * k), share = std::min(1.0, std::sqrt(kEven / size));
    if (table.n > k && k > 1) search.breed(size_t(share * double(patience)) + std::min(spare / (table.n * d), kMost));
    // The largest cluster first, as the fit numbers them in the end, so that it need not.
    const Clustering &best = search.best();
    Doubles size_of(k, 0.0);
    for (size_t i = 0; i < table.n; ++i) size_of[size_t(best.label[i])] += table.weight[i];
    std::vector<size_t> order(k);
    std::iota(order.begin(), order.end(), size_t(0));
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return size_of[a] > size_of[b]; });
    for (size_t j = 0; j < k; ++j)
        for (size_t f = 0; f < d; ++f) out.data()[j * d + f] = best.centres[order[j] * d + f] + table.mean[f];
}

}  // namespace

void register_small_table(nb::module_ &m) {
    m.def("search_small_table", &search_small_table, nb::arg("x").noconvert(), nb::arg("weights").noconvert().none(),
          nb::arg("given").noconvert().none(), nb::arg("unit"), nb::arg("seed"), nb::arg("starts"),
          nb::arg("patience"), nb::arg("spare"), nb::arg("threads"), nb::arg("out").noconvert());
}
