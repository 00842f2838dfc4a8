// Mean, centred sum of squares and range of each column, in one sweep; sums in float64 throughout.

#include "arena.h"
#include "rows.h"

// The sums of a sweep, one entry per column. Short rows are placed side by side, so there may be several entries for one
// column, which are combined at the end.
template <class In> struct ColumnSums {
    double *sums, *squares;
    In *low, *high;
};

constexpr size_t sweep_bytes = 64;    // of a row that are processed together: a line of the cache
constexpr size_t sweep_ahead = 8192;  // bytes after the next group of rows that are fetched early

// Adds a group of rows, minus the pivot, to the sums and the sums of squares of each column, row by row in each column;
// how many lanes a vector has makes no difference. `weighted` and `ranged` are template parameters because of the
// compiler bug described in vec.h: with `w ? weights[k] * y : y`, where w is a pointer, the AVX-512 kernel for float32
// applied the weights to the first of every eight columns only and took the others with weight 1.
// Meanwhile what lies `ahead` is fetched into the second-level cache, line by line as it lies in memory. Processors foresee
// a single stream, but not a group of rows that are read side by side: without this the sweep took up to twice as long.
template <bool weighted, bool ranged, class In>
inline void add_group(const In *from, size_t step, const In *pivot, const Vec<double> *weights, size_t padded, const In *ahead,
                      const ColumnSums<In> &to) {
    using V = Vec<double>;
    using R = Vec<In>;
    constexpr size_t L = lanes<In>, D = lanes<double>, parts = L / D, line = sweep_bytes / sizeof(In);
    for (size_t unit = 0; unit < padded; unit += line) {
        FW_UNROLL(8)
        for (size_t k = 0; k < group; ++k) __builtin_prefetch(ahead + group * unit + k * line, 0, 2);
        for (size_t j = unit; j < unit + line; j += L) {
            V centre[parts], sum[parts], square[parts];
            R low = {}, high = {};
            if constexpr (ranged) low = load<R>(to.low + j), high = load<R>(to.high + j);
            FW_UNROLL(2)
            for (size_t p = 0; p < parts; ++p) {
                centre[p] = load_as<double>(pivot + j + p * D);
                sum[p] = load<V>(to.sums + j + p * D);
                square[p] = load<V>(to.squares + j + p * D);
            }
            FW_UNROLL(8)
            for (size_t k = 0; k < group; ++k) {
                const In *at = from + k * step + j;
                FW_UNROLL(2)
                for (size_t p = 0; p < parts; ++p) {
                    const V y = load_as<double>(at + p * D) - centre[p];
                    const V wy = weighted ? weights[k] * y : y;
                    sum[p] += wy;
                    square[p] += wy * y;
                }
                if constexpr (ranged) {
                    const R value = load<R>(at);
                    low = value < low ? value : low;
                    high = value > high ? value : high;
                }
            }
            FW_UNROLL(2)
            for (size_t p = 0; p < parts; ++p) {
                store(to.sums + j + p * D, sum[p]);
                store(to.squares + j + p * D, square[p]);
            }
            if constexpr (ranged) store(to.low + j, low), store(to.high + j, high);
        }
    }
}

// Extends the ranges of the first `count` entries by those of others, or by single values (then both are the same).
template <class In> inline void add_range(const In *low, const In *high, size_t count, const ColumnSums<In> &to) {
    for (size_t j = 0; j < count; ++j) {
        to.low[j] = low[j] < to.low[j] ? low[j] : to.low[j];
        to.high[j] = high[j] > to.high[j] ? high[j] : to.high[j];
    }
}

// One sweep, all at once or a few rows at a time: the sums are the same, and also if ranges are not wanted (`ranged`).
template <class In, bool ranged = true> class ColumnSweep {
    static_assert(ranged || sizeof(In) < sizeof(double));

  public:
    // There must be rows, and columns.
    ColumnSweep(const In *x, const double *w, size_t n, size_t d)
        // Short rows are placed side by side, so that vectors are full.
        : x_(x), w_(w), n_(n), d_(d), fold_(!w && 2 * d <= 64 ? 64 / d : 1), wide_(fold_ * d),
          padded_(round_up(wide_, sweep_bytes / sizeof(In))) {}

    void place(Arena &arena) {
        sums_ = arena.take<double>(2 * padded_);
        pivot_ = arena.take<In>(padded_ * (group + 3));
        to_ = {sums_, sums_ + padded_, pivot_ + (group + 1) * padded_, pivot_ + (group + 2) * padded_};
    }

    void start() {
        find_pivot(x_, w_, n_, d_, pivot_);
        for (size_t j = d_; j < padded_; ++j) pivot_[j] = j < wide_ ? pivot_[j - d_] : In(0);
        for (size_t j = 0; j < 2 * padded_; ++j) sums_[j] = 0;
        for (size_t j = 0; j < padded_; ++j) to_.low[j] = In(__builtin_inff()), to_.high[j] = -In(__builtin_inff());
    }

    // Takes in whole groups of the rows before `end`; all of them if that is n.
    void until(size_t end) {
        const size_t wide_rows = (n_ + fold_ - 1) / fold_, last = end < n_ ? end / fold_ / group * group : wide_rows;
        const Rows<In> rows{x_, n_ * d_, wide_, padded_, pivot_, pivot_ + padded_};
        for (; done_ < last; done_ += group) add(rows, done_, wide_rows);
    }

    // Mean (2 x d) and centred sum of squares of all rows.
    void finish(double total, double *mean, double *squares) {
        for (size_t j = d_; j < wide_; ++j) {
            sums_[j % d_] += sums_[j];
            sums_[padded_ + j % d_] += sums_[padded_ + j];
        }
        for (size_t from = d_; from < wide_; from += d_) add_range(to_.low + from, to_.high + from, d_, to_);
        for (size_t j = 0; j < d_; ++j) {
            const double shift = sums_[j] / total, centred = sums_[padded_ + j] - total * shift * shift;
            store_two_parts(double(pivot_[j]), shift, mean + j, d_);
            squares[j] = centred > 0 ? centred : 0;
            // Replaces a sum that underflowed, so that a column that varies never looks constant.
            if (squares[j] == 0 && varies(j)) squares[j] = least_positive;
        }
    }

    // After that: the range of each column.
    const In *low() const { return to_.low; }
    const In *high() const { return to_.high; }

  private:
    const In *x_;
    const double *w_;
    size_t n_, d_, fold_, wide_, padded_, done_ = 0;
    double *sums_ = nullptr;
    In *pivot_ = nullptr;
    ColumnSums<In> to_ = {};

    bool varies(size_t j) const {
        if (ranged) return to_.low[j] != pivot_[j] || to_.high[j] != pivot_[j];
        return sums_[padded_ + j] > 0;  // squares of float32 do not underflow
    }

    void add(const Rows<In> &rows, size_t row, size_t wide_rows) {
        using V = Vec<double>;
        V weights[group];
        bool all = true;
        if (w_)
            for (size_t k = 0; k < group; ++k) {
                const double weight = row + k < n_ ? w_[row + k] : 0.0;
                weights[k] = broadcast(weight);
                all &= weight > 0;
            }
        size_t step;
        const In *from = rows.at(row, step), *ahead = x_ + (row + group) * wide_ + sweep_ahead / sizeof(In);
        const bool whole = all && from != rows.stage;  // `stage` has values that are not in the data
        if (!ranged) {
            if (w_) add_group<true, false>(from, step, pivot_, weights, padded_, ahead, to_);
            else add_group<false, false>(from, step, pivot_, weights, padded_, ahead, to_);
            return;
        }
        if (w_ && whole) add_group<true, true>(from, step, pivot_, weights, padded_, ahead, to_);
        else if (w_) add_group<true, false>(from, step, pivot_, weights, padded_, ahead, to_);
        else if (whole) add_group<false, true>(from, step, pivot_, weights, padded_, ahead, to_);
        else add_group<false, false>(from, step, pivot_, weights, padded_, ahead, to_);
        if (whole) return;
        for (size_t k = 0; k < group && row + k < wide_rows; ++k)
            if (!w_ || w_[row + k] > 0) {
                const In *values = x_ + (row + k) * wide_;
                add_range(values, values, least(wide_, n_ * d_ - (row + k) * wide_), to_);
            }
    }
};

// `low` and `high`, d each, receive the minimum and maximum of each column over the rows with non-zero weight; infinity
// and -infinity if there are none.
template <class In>
double columns(const In *x, const double *w, size_t n, size_t d, double *mean, double *squares, In *low, In *high) {
    const double total = total_weight(w, n);
    for (size_t j = 0; j < d; ++j) low[j] = In(__builtin_inff()), high[j] = -In(__builtin_inff());
    if (zero_if_empty(total, d, mean, squares, d)) return total;
    ColumnSweep<In> sweep(x, w, n, d);
    Arena arena{nullptr, 0};
    sweep.place(arena);
    arena = {(char *)scratch(arena.used), 0};
    sweep.place(arena);
    sweep.start();
    sweep.until(n);
    sweep.finish(total, mean, squares);
    for (size_t j = 0; j < d; ++j) low[j] = sweep.low()[j], high[j] = sweep.high()[j];
    return total;
}
