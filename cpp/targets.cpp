// Python bindings of the k-means kernels. An object holds the targets, packed once per pass; its methods take blocks
// of rows.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>

#include <cmath>
#include <mutex>
#include <optional>
#include <tuple>
#include <vector>

#include "crew.h"
#include "isa.h"
#include "parts.h"
#include "target_storage.h"

namespace nb = nanobind;

namespace {

template <class... Extra> using Array = nb::ndarray<nb::c_contig, nb::device::cpu, Extra...>;
using Matrix = Array<nb::ro, nb::ndim<2>>;
using Doubles = Array<const double, nb::ndim<1>>;
using Ints = Array<const int, nb::ndim<1>>;
using IntsOut = Array<int, nb::ndim<1>>;
using DoublesOut = Array<double, nb::ndim<1>>;
using Doubles2Out = Array<double, nb::ndim<2>>;
using Doubles3Out = Array<double, nb::ndim<3>>;
using AnyOut = Array<nb::ndim<1>>;
using Ints2Out = Array<int, nb::ndim<2>>;
using Any2Out = Array<nb::ndim<2>>;
using Any = Array<nb::ro, nb::ndim<1>>;
using AssignTuple = std::tuple<size_t, size_t, size_t, size_t>;

void require(bool condition, const char *message) {
    if (!condition) throw nb::value_error(message);
}

template <class T> const fw::RowKernels<T> &kernels(bool observed = false);
template <> const fw::RowKernels<float> &kernels<float>(bool observed) {
    return observed ? fw::active_kernels().observed_f32 : fw::active_kernels().f32;
}
template <> const fw::RowKernels<double> &kernels<double>(bool observed) {
    return observed ? fw::active_kernels().observed_f64 : fw::active_kernels().f64;
}

class Targets {
    bool single_, observed_;  // observed: rows may have missing cells
    size_t k_, d_;
    fw::TargetStorage<float> f32_;
    fw::TargetStorage<double> f64_;

    static constexpr size_t unknown = ~size_t(0);  // rows that moved, if one had a label that is no target

    static AssignTuple tuple(fw::AssignCounts a) {
        fw::trim_scratch();
        require(a.moved != unknown, "a label is not a target");
        return {a.moved, a.computed, a.near_ties, a.exact_ties};
    }

    static void add(fw::AssignCounts &all, const fw::AssignCounts &some) {
        all.moved = some.moved == unknown || all.moved == unknown ? unknown : all.moved + some.moved;
        all.computed += some.computed;
        all.near_ties += some.near_ties;
        all.exact_ties += some.exact_ties;
    }

    // The counts of all rows or, if threads share them out, of the parts that this thread takes and those that join it meanwhile.
    // prepare() gives each thread work(first, count), which does some rows.
    template <class Prepare> static AssignTuple shared_out(fw::Parts *parts, size_t n, Prepare prepare) {
        if (!parts) return tuple(prepare()(size_t(0), n));
        fw::AssignCounts all{0, 0, 0, 0};
        std::mutex adding;
        fw::crew.run(parts->helpers(), [&] {
            fw::AssignCounts own{0, 0, 0, 0};
            auto work = prepare();
            parts->share([&](size_t first, size_t end) {
                add(own, work(first, end - first));
                return own.moved != unknown;
            });
            fw::trim_scratch();
            const std::lock_guard<std::mutex> held(adding);
            add(all, own);
        });
        return tuple(all);
    }

    size_t rows(const Matrix &x) const {
        require(x.shape(1) == d_, "rows must have as many columns as the targets");
        return x.shape(0);
    }

    template <class F> auto with(const Matrix &x, F f) const {
        if (single_) {
            if (x.dtype() != nb::dtype<float>()) throw nb::type_error("rows must have the targets' dtype, float32");
            return f((const float *)x.data(), f32_.view);
        }
        if (x.dtype() != nb::dtype<double>()) throw nb::type_error("rows must have the targets' dtype, float64");
        return f((const double *)x.data(), f64_.view);
    }

    template <class T, class A> static T *optional(const A &array, size_t n) {
        if (!array.is_valid()) return nullptr;
        require(array.shape(0) == n && array.dtype() == nb::dtype<T>(), "one entry per row, in the rows' dtype");
        return (T *)array.data();
    }

    static const double *optional_weights(const Doubles &weights, size_t n) {
        if (!weights.is_valid()) return nullptr;
        require(weights.shape(0) == n, "weights must have one entry per row");
        return weights.data();
    }

    static fw::Changes changes(const IntsOut &changed, const IntsOut &before, size_t n) {
        if (!changed.is_valid()) return {nullptr, nullptr};
        require(before.is_valid() && changed.shape(0) >= n && before.shape(0) >= n, "changes need room for every row");
        return {changed.data(), before.data()};
    }

    // Sums that the kernel adds to in fixed point, if requested; null otherwise. The integers belong to the thread.
    template <class T>
    const fw::FixedSums *fixed_sums(const fw::Targets<T> &t, const Doubles2Out &high, const Doubles2Out &low,
                                    const Doubles2Out &weight, int bits, int coarse_bits, fw::FixedSums &view,
                                    const fw::Parts *parts = nullptr) const {
        if (!high.is_valid()) return nullptr;
        require(single_ && !observed_, "only complete float32 rows are summed in fixed point");
        require(low.is_valid() && weight.is_valid() && high.shape(0) == k_ && high.shape(1) == d_ && low.shape(0) == k_ &&
                low.shape(1) == d_ && weight.shape(0) == 2 && weight.shape(1) == k_,
                "sums must be targets by columns");
        require(bits > 0 && bits < 50 && coarse_bits > 0 && bits <= 2 * coarse_bits, "bits must be between 1 and 49");
        static thread_local std::vector<long long> integers;
        static thread_local std::vector<unsigned char> touched;
        static thread_local std::vector<double> room;
        // They are all zero between calls, whatever the shape; a large array is not kept for a much smaller one.
        const size_t numbers = k_ * d_;
        const bool one_by_one = d_ == 8 || d_ == 16 || d_ == 32 || d_ == 64;  // other rows are added by cluster
        const size_t copies = one_by_one ? fw::copies_of_sums(numbers) : 1, front = copies > 1 ? copies : 0;
        const size_t all = front + copies * k_, needed = all * (d_ + 1) + 8;
        if (integers.size() < needed || integers.size() > 64 * needed + 65536) {
            integers.assign(needed, 0);
            integers.shrink_to_fit();
        }
        if (touched.size() < k_) touched.assign(k_, 0);
        // From the start of a cache line on: vectors of integers that cross lines would take twice as long.
        long long *sums = integers.data() + (64 - uintptr_t(integers.data()) % 64) % 64 / sizeof(long long);
        const size_t wide = (d_ + 7) / 8 * 8;
        room.resize(3 * wide + 8);
        double *start = room.data() + (64 - uintptr_t(room.data()) % 64) % 64 / sizeof(double);
        const double magic = std::ldexp(1.5, 52 - bits);
        for (size_t j = 0; j < d_; ++j) start[j] = magic - t.wide_pivot[j];
        const fw::Grid grid{std::ldexp(1.5, 52 - coarse_bits), std::ldexp(1.5, 52 - 2 * coarse_bits)};
        // Values from here on are multiples of 2^-bits once they are scaled, since a float32 number has 24 bits.
        const float least = float(std::ldexp(1 / t.wide_scale, 24 - bits));
        view = {sums + front * d_, sums + all * d_ + front, copies, touched.data(), start, t.wide_scale, bits, coarse_bits,
                high.data(), low.data(), weight.data(), least, grid, start + wide, parts ? parts->guard() : nullptr};
        return &view;
    }

    fw::Int16Rows int16_rows(const Ints2Out &integers, size_t n, bool ready) const {
        if (!integers.is_valid()) return {nullptr, false};
        require(rounded() && f32_.view.rounded->layout == fw::Int16Layout::panels, "only targets made for it use rows that are kept");
        require(integers.shape(0) == n && integers.shape(1) == (d_ + 1) / 2 + 1, "a row is kept as its pairs of columns and its length");
        require(uintptr_t(integers.data()) % 64 == 0, "what is kept of rows must start at a cache line");
        return {integers.data(), ready};
    }

    bool are_targets(const int *labels, size_t n) const {
        unsigned largest = 0;  // negative labels become very large, except that of a row with nothing observed
        const unsigned shift = observed_ ? 1 : 0;
        for (size_t i = 0; i < n; ++i) {
            const unsigned label = unsigned(labels[i]) + shift;
            largest = label > largest ? label : largest;
        }
        return n == 0 || largest < k_ + shift;
    }

    // What is written for all rows, from the first on, cannot be written by several threads.
    static void check_parts(const fw::Parts *parts, size_t n, bool writes_from_first) {
        require(!parts || parts->rows() == n, "parts must be those of the rows");
        require(!parts || !writes_from_first, "of rows that are shared out, changes are not written");
    }

    void check_groups(const Ints &order, const Ints &ends) const {
        require(order.is_valid() == ends.is_valid(), "order and ends of groups come together");
        if (!order.is_valid()) return;
        require(order.shape(0) == k_ && ends.shape(0) > 0 && ends.data()[ends.shape(0) - 1] == int(k_),
                "groups must hold every target once");
        std::vector<bool> seen(k_);
        for (size_t s = 0; s < k_; ++s) {
            const int id = order.data()[s];
            require(id >= 0 && size_t(id) < k_ && !seen[size_t(id)], "groups must hold every target once");
            seen[size_t(id)] = true;
        }
        int last = 0;
        for (size_t g = 0; g < ends.shape(0); ++g) {
            require(ends.data()[g] > last, "no group may be empty");
            last = ends.data()[g];
        }
    }

public:
    Targets(Matrix centres, Doubles pivot, double scale, Ints order, Ints ends, bool observed, double row_length,
            bool kept, size_t helpers)
        : single_(centres.dtype() == nb::dtype<float>()), observed_(observed), k_(centres.shape(0)), d_(centres.shape(1)) {
        require(single_ || centres.dtype() == nb::dtype<double>(), "expected float32 or float64 values");
        require(pivot.shape(0) == d_, "pivot must have one entry per column");
        require(k_ > 0 && d_ > 0, "there must be a target and a column");
        check_groups(order, ends);
        const fw::GivenGroups given{order.is_valid() ? order.data() : nullptr, ends.is_valid() ? ends.data() : nullptr,
                                    ends.is_valid() ? ends.shape(0) : 0};
        if (single_)
            f32_.fill((const float *)centres.data(), k_, d_, pivot.data(), scale, given, observed, row_length, kept, helpers);
        else
            f64_.fill((const double *)centres.data(), k_, d_, pivot.data(), scale, given, observed, row_length, kept, helpers);
    }

    // Whether rows are compared as integers, which the targets themselves may prevent.
    bool rounded() const { return single_ && f32_.view.rounded; }

    // Returns (moved, computed, near_ties, exact_ties).
    AssignTuple nearest(Matrix x, IntsOut labels, AnyOut near, AnyOut next, IntsOut changed, IntsOut before, Doubles2Out high,
                        Doubles2Out low, Doubles2Out weight, int bits, int coarse_bits, Ints2Out integers, bool ready,
                        Doubles2Out found, bool fresh, fw::Parts *parts) const {
        const size_t n = rows(x);
        require(labels.shape(0) == n, "labels must have one entry per row");
        check_parts(parts, n, changed.is_valid());
        require(!parts || !found.is_valid() || parts->are_steps(), "residuals are found for parts of one step each");
        const size_t measured = parts ? (n + parts->step() - 1) / parts->step() : 1;
        require(!found.is_valid() || (found.shape(0) == 2 * measured && found.shape(1) == k_),
                "residuals and counts must be two by targets for each part");
        const fw::Int16Rows kept = int16_rows(integers, n, ready);
        require(!parts || !kept.values || parts->step() % 16 == 0, "parts must end at whole vectors of rows");
        return with(x, [&](auto *values, const auto &t) {
            using T = std::remove_const_t<std::remove_pointer_t<decltype(values)>>;
            T *first = optional<T>(near, n), *second = optional<T>(next, n);
            const fw::Changes log = changes(changed, before, n);
            nb::gil_scoped_release released;
            return shared_out(parts, n, [&] {
                fw::FixedSums view;
                const bool fixed = fixed_sums(t, high, low, weight, bits, coarse_bits, view, parts);
                return [&, view, fixed](size_t begin, size_t count) {
                    const fw::Int16Rows own{kept.values ? kept.values + begin * ((d_ + 1) / 2 + 1) : nullptr, kept.ready};
                    std::vector<double> room(found.is_valid() ? k_ * fw::residual_values + 8 : 0);
                    double *line = room.data() + (64 - uintptr_t(room.data()) % 64) % 64 / sizeof(double);
                    double *of_part = found.is_valid() ? found.data() + 2 * k_ * (parts ? begin / parts->step() : 0) : nullptr;
                    const fw::Residuals to{line, of_part, of_part + k_};
                    return kernels<T>(observed_).nearest(values + begin * d_, count, t, labels.data() + begin, first ? first + begin : nullptr,
                                                         second ? second + begin : nullptr, log, fixed ? &view : nullptr, own,
                                                         of_part ? &to : nullptr, fresh);
                };
            });
        });
    }

    AssignTuple nearest_bounded(Matrix x, IntsOut labels, AnyOut upper, AnyOut lower, Any2Out group_lower, Any moved,
                                Any group_moved, double most_moved, double slack, bool fresh, IntsOut changed,
                                IntsOut before, Doubles2Out high, Doubles2Out low, Doubles2Out weight, int bits,
                                int coarse_bits, fw::Parts *parts) const {
        const size_t n = rows(x);
        require(labels.shape(0) == n, "labels must have one entry per row");
        check_parts(parts, n, changed.is_valid());
        return with(x, [&](auto *values, const auto &t) {
            using T = std::remove_const_t<std::remove_pointer_t<decltype(values)>>;
            require(group_lower.dtype() == nb::dtype<T>() &&
                    (t.groups == 1 || (group_lower.shape(0) == n && group_lower.shape(1) == t.groups)),
                    "group_lower must have one entry per row and group, in the rows' dtype");
            require(moved.shape(0) == k_ && group_moved.shape(0) == t.groups && moved.dtype() == nb::dtype<T>() &&
                    group_moved.dtype() == nb::dtype<T>(),
                    "moved must have one entry per target and per group, in the rows' dtype");
            const fw::Bounds<T> bounds{optional<T>(upper, n),     optional<T>(lower, n),         (T *)group_lower.data(),
                                 (const T *)moved.data(),   (const T *)group_moved.data(), T(most_moved),
                                 T(slack),                  fresh};
            require(bounds.upper && bounds.lower, "bounds are needed");
            const fw::Changes log = changes(changed, before, n);
            nb::gil_scoped_release released;
            return shared_out(parts, n, [&] {
                fw::FixedSums view;
                const bool fixed = fixed_sums(t, high, low, weight, bits, coarse_bits, view, parts);
                return [&, view, fixed](size_t begin, size_t count) {
                    if (!fresh && !are_targets(labels.data() + begin, count)) return fw::AssignCounts{unknown, 0, 0, 0};
                    fw::Bounds<T> own = bounds;
                    own.upper += begin, own.lower += begin;
                    if (t.groups > 1) own.group_lower += begin * t.groups;
                    return kernels<T>(observed_).nearest_bounded(values + begin * d_, count, t, labels.data() + begin, own, log,
                                                                 fixed ? &view : nullptr);
                };
            });
        });
    }

    void move_rows(Matrix x, Doubles weights, double weight_scale, Ints which, Ints before, Ints after, Ints slots, double coarse,
                   double fine, Doubles2Out high, Doubles2Out low, Doubles2Out weight, Doubles3Out missing) const {
        const size_t n = rows(x), m = high.shape(0);
        const double *w = optional_weights(weights, n);
        require(after.shape(0) == n, "labels: one entry per row");
        require(which.is_valid() == before.is_valid() && (!which.is_valid() || which.shape(0) == before.shape(0)),
                "rows that moved and where they were come together");
        require(slots.shape(0) == k_, "slots must have one entry per target");
        require(high.shape(1) == d_ && low.shape(0) == m && low.shape(1) == d_ && weight.shape(0) == 2 &&
                weight.shape(1) == m,
                "sums must be slots by columns");
        require(!observed_ || (missing.is_valid() && missing.shape(0) == 2 && missing.shape(1) == m && missing.shape(2) == d_),
                "weights of missing cells must be two by slots by columns");
        const int *some = which.is_valid() ? which.data() : nullptr, *old = some ? before.data() : nullptr;
        const size_t count = some ? which.shape(0) : n;
        with(x, [&](auto *values, const auto &t) {
            using T = std::remove_const_t<std::remove_pointer_t<decltype(values)>>;
            bool known;
            {
                nb::gil_scoped_release released;
                known = kernels<T>(observed_).move_rows(values, w, n, t, weight_scale, some, count, old, after.data(),
                                                        slots.data(), m, {coarse, fine}, high.data(), low.data(),
                                                        weight.data(), observed_ ? missing.data() : nullptr);
            }
            require(known, "a label has no slot");
        });
    }

    void move_rows_fixed(Matrix x, Ints which, Ints before, Ints after, Doubles2Out high, Doubles2Out low, Doubles2Out weight,
                         int bits, int coarse_bits) const {
        const size_t n = rows(x);
        require(after.shape(0) == n, "labels: one entry per row");
        require(which.is_valid() == before.is_valid() && (!which.is_valid() || which.shape(0) == before.shape(0)),
                "rows that moved and where they were come together");
        require(high.is_valid(), "sums are needed");
        with(x, [&](auto *values, const auto &t) {
            using T = std::remove_const_t<std::remove_pointer_t<decltype(values)>>;
            const int *some = which.is_valid() ? which.data() : nullptr, *old = some ? before.data() : nullptr;
            fw::FixedSums view;
            const fw::FixedSums *fixed = fixed_sums(t, high, low, weight, bits, coarse_bits, view);
            bool known;
            {
                nb::gil_scoped_release released;
                known = kernels<T>().move_rows_fixed(values, n, t, some, some ? which.shape(0) : n, old, after.data(), *fixed);
            }
            require(known, "a label is not a target");
        });
    }

    void residuals(Matrix x, Doubles weights, Ints labels, DoublesOut total, DoublesOut each, DoublesOut counts) const {
        const size_t n = rows(x);
        const double *w = optional_weights(weights, n);
        require(labels.shape(0) == n && total.shape(0) == k_, "labels per row, totals per target");
        require(!each.is_valid() || each.shape(0) == n, "each must have one entry per row");
        require(!counts.is_valid() || counts.shape(0) == k_, "counts must have one entry per target");
        require(are_targets(labels.data(), n), "a label is not a target");
        with(x, [&](auto *values, const auto &t) {
            using T = std::remove_const_t<std::remove_pointer_t<decltype(values)>>;
            nb::gil_scoped_release released;
            kernels<T>(observed_).residuals(values, w, n, t, labels.data(), total.data(), each.is_valid() ? each.data() : nullptr,
                                            counts.is_valid() ? counts.data() : nullptr);
        });
    }

    double update_closest(Matrix x, Doubles weights, size_t taken, AnyOut closest, DoublesOut potential) const {
        const size_t n = rows(x);
        const double *w = optional_weights(weights, n);
        require(taken <= k_ && potential.shape(0) == k_ - taken, "potential must have one entry per candidate");
        return with(x, [&](auto *values, const auto &t) {
            using T = std::remove_const_t<std::remove_pointer_t<decltype(values)>>;
            T *distances = optional<T>(closest, n);
            require(distances != nullptr, "closest is needed");
            nb::gil_scoped_release released;
            return kernels<T>(observed_).update_closest(values, w, n, t, taken, distances, potential.data());
        });
    }
};

// The sum of f(0) to f(n - 1), in eight interleaved parts, which are added in a fixed order.
template <class F> double sum_by_parts(size_t n, F f) {
    constexpr size_t parts = 8;
    double sums[parts] = {};
    size_t j = 0;
    for (; j + parts <= n; j += parts)
        for (size_t i = 0; i < parts; ++i) sums[i] += f(j + i);
    for (size_t i = 0; j < n; ++i, ++j) sums[i] += f(j);
    double total = 0;
    for (size_t i = 0; i < parts; ++i) total += sums[i];
    return total;
}

// The distance that each centre has moved, times scale, up to the rounding of sums in float64.
void distances_moved(Matrix before, Matrix after, double scale, DoublesOut out, size_t helpers) {
    const size_t k = before.shape(0), d = before.shape(1);
    require(after.shape(0) == k && after.shape(1) == d && out.shape(0) == k && before.dtype() == after.dtype(),
            "centres must be of one shape and dtype");
    const auto run = [&](const auto *a, const auto *b) {
        nb::gil_scoped_release released;
        fw::crew.each(k * d < fw::shared_values ? 0 : helpers, k, fw::rows_at_a_time(d), [&](size_t c, size_t end) {
            for (; c < end; ++c)
                out.data()[c] = std::sqrt(sum_by_parts(d, [from = a + c * d, to = b + c * d, scale](size_t j) {
                    const double step = (double(to[j]) - double(from[j])) * scale;
                    return step * step;
                }));
        });
    };
    if (before.dtype() == nb::dtype<float>()) return run((const float *)before.data(), (const float *)after.data());
    require(before.dtype() == nb::dtype<double>(), "expected float32 or float64 values");
    run((const double *)before.data(), (const double *)after.data());
}

}  // namespace

void register_targets(nb::module_ &m) {
    const auto x = nb::arg("x").noconvert(), labels = nb::arg("labels").noconvert();
    const auto weights = nb::arg("weights").noconvert().none();
    nb::class_<fw::Parts>(m, "Parts")
        .def("__init__", [](fw::Parts *self, size_t rows, size_t shares, size_t least, size_t most, size_t step, const fw::Parts *sharing) {
            require(shares > 0 && least > 0 && most >= least && step > 0, "parts need shares, sizes and a step");
            new (self) fw::Parts(rows, shares, least, most, step, sharing);
        }, nb::arg("rows"), nb::arg("shares"), nb::arg("least"), nb::arg("most"), nb::arg("step"), nb::arg("sharing").none() = nb::none())
        .def_prop_ro("taken", &fw::Parts::taken)
        .def("invite", &fw::Parts::invite, nb::arg("helpers"))
        .def("take", [](fw::Parts &self) {
            size_t first = 0, end = 0;
            return self.take(first, end) ? std::optional(std::tuple(first, end)) : std::nullopt;
        });
    nb::class_<Targets>(m, "Targets")
        .def(nb::init<Matrix, Doubles, double, Ints, Ints, bool, double, bool, size_t>(), nb::arg("centres").noconvert(),
             nb::arg("pivot").noconvert(), nb::arg("scale"), nb::arg("order").noconvert().none() = nb::none(),
             nb::arg("ends").noconvert().none() = nb::none(), nb::arg("observed") = false, nb::arg("row_length") = 0.0,
             nb::arg("kept") = false, nb::arg("helpers") = 0)
        .def_prop_ro("rounded", &Targets::rounded)
        .def("nearest", &Targets::nearest, x, labels, nb::arg("near").noconvert().none() = nb::none(),
             nb::arg("next").noconvert().none() = nb::none(), nb::arg("changed").noconvert().none() = nb::none(),
             nb::arg("before").noconvert().none() = nb::none(), nb::arg("high").noconvert().none() = nb::none(),
             nb::arg("low").noconvert().none() = nb::none(), nb::arg("weight").noconvert().none() = nb::none(),
             nb::arg("bits") = 0, nb::arg("coarse_bits") = 0, nb::arg("integers").noconvert().none() = nb::none(),
             nb::arg("ready") = false, nb::arg("residuals").noconvert().none() = nb::none(), nb::arg("fresh") = false,
             nb::arg("parts").none() = nb::none())
        .def("nearest_bounded", &Targets::nearest_bounded, x, labels, nb::arg("upper").noconvert(),
             nb::arg("lower").noconvert(), nb::arg("group_lower").noconvert(), nb::arg("moved").noconvert(),
             nb::arg("group_moved").noconvert(), nb::arg("most_moved"), nb::arg("slack"), nb::arg("fresh"),
             nb::arg("changed").noconvert().none() = nb::none(), nb::arg("before").noconvert().none() = nb::none(),
             nb::arg("high").noconvert().none() = nb::none(),
             nb::arg("low").noconvert().none() = nb::none(), nb::arg("weight").noconvert().none() = nb::none(),
             nb::arg("bits") = 0, nb::arg("coarse_bits") = 0, nb::arg("parts").none() = nb::none())
        .def("move_rows", &Targets::move_rows, x, weights, nb::arg("weight_scale"),
             nb::arg("which").noconvert().none(), nb::arg("before").noconvert().none(), nb::arg("after").noconvert(),
             nb::arg("slots").noconvert(), nb::arg("coarse"), nb::arg("fine"), nb::arg("high").noconvert(),
             nb::arg("low").noconvert(), nb::arg("weight").noconvert(),
             nb::arg("missing").noconvert().none() = nb::none())
        .def("move_rows_fixed", &Targets::move_rows_fixed, x, nb::arg("which").noconvert().none(),
             nb::arg("before").noconvert().none(), nb::arg("after").noconvert(), nb::arg("high").noconvert(),
             nb::arg("low").noconvert(), nb::arg("weight").noconvert(), nb::arg("bits"), nb::arg("coarse_bits"))
        .def("residuals", &Targets::residuals, x, weights, labels, nb::arg("total").noconvert(),
             nb::arg("each").noconvert().none() = nb::none(), nb::arg("counts").noconvert().none() = nb::none())
        .def("update_closest", &Targets::update_closest, x, weights, nb::arg("taken"), nb::arg("closest").noconvert(),
             nb::arg("potential").noconvert());
    m.def("distances_moved", &distances_moved, nb::arg("before").noconvert(), nb::arg("after").noconvert(), nb::arg("scale"),
          nb::arg("out").noconvert(), nb::arg("helpers") = 0);
    m.def(
        "quick_int16", [](size_t k, size_t d, bool kept) { return fw::quick_int16(k, d, kept) != fw::Int16Layout::none; },
        nb::arg("k"), nb::arg("d"), nb::arg("kept") = false);
}
