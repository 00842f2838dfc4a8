// Adds rows that were in no cluster to the sums of clusters in fixed point (fixed_sums.h), as a first pass does with all. They are added
// as if fixed point could hold them; the processor tells afterwards whether it rounded any number.

// Adds rows one by one, as if fixed point could hold them. Rows without a label go to the sums in front of those of the clusters.
// Rows take turns with the copies of the sums: one would have to wait for the row before if both are in the same cluster.
template <size_t columns, size_t copies, class T> class JoiningRows {
    using D = Vec<double>;
    using I = Vec<long long>;
    static constexpr size_t L = lanes<double>, V = columns / L;
    const T *const x;
    const int *const labels;
    long long *const sums, *const counts;
    const double scale;
    D start[V];

public:
    JoiningRows(const T *x_, const FixedSums &to, const int *labels_)
        : x(x_), labels(labels_), sums(to.sums), counts(to.counts), scale(to.scale) {
        FW_UNROLL(8)
        for (size_t v = 0; v < V; ++v) {
            start[v] = load<D>(to.start + v * L);
            settle(start[v]);  // kept in a register
        }
    }
    __attribute__((always_inline)) inline void add(size_t row, size_t copy) const {
        const ptrdiff_t place = ptrdiff_t(labels[row]) * ptrdiff_t(copies) + ptrdiff_t(copy);
        long long *own = sums + place * ptrdiff_t(columns);
        FW_UNROLL(8)
        for (size_t v = 0; v < V; ++v)
            store(own + v * L, load<I>(own + v * L) + in_fixed_point(x + row * columns + v * L, scale, start[v]));
        ++counts[place];
    }
    // As many rows as there are copies.
    __attribute__((always_inline)) inline void add_some(size_t row) const {
        FW_UNROLL(8)
        for (size_t copy = 0; copy < copies; ++copy) add(row + copy, copy);
    }
    // How many rows without a label the integers hold.
    size_t without_label() const {
        long long all = 0;
        for (size_t copy = 1; copy <= copies; ++copy) all += *(counts - copy);
        return size_t(all);
    }
};

// Adds the rows from `first` to `end` in this way; returns how many have a label.
template <size_t columns, size_t copies, class T>
inline size_t join_one_by_one(const T *x, const FixedSums &to, size_t k, size_t first, size_t end, const int *labels) {
    const JoiningRows<columns, copies, T> rows(x, to, labels);
    const size_t before = rows.without_label();
    size_t row = first;
    for (; row + copies <= end; row += copies) rows.add_some(row);
    for (; row < end; ++row) rows.add(row, 0);
    __builtin_memset(to.touched, 1, k);
    return end - first - (rows.without_label() - before);
}

// Whether a number may have been rounded since this was made, or since `forget`: the processor takes note of it. Emulators may not,
// nor do others than x86 in this way; then it may always have been.
class Rounding {
#if defined(__x86_64__)
    static constexpr unsigned notes = 0x3f, rounded = 0x20;
    unsigned before;
    static unsigned state() {
        unsigned now;
        __asm__ volatile("stmxcsr %0" : "=m"(now) : : "memory");
        return now;
    }
    static void set(unsigned to) { __asm__ volatile("ldmxcsr %0" : : "m"(to) : "memory"); }
    // Asked by adding two numbers whose sum is rounded.
    __attribute__((noinline)) static bool asked() {
        volatile double one = 1, little = 0x1p-60;
        const unsigned own = state();
        set(own & ~notes);
        one = one + little;
        const bool found = state() & rounded;
        set(own);
        return found;
    }
    static bool noted() {
        static const bool found = asked();
        return found;
    }

public:
    Rounding() : before(state()) { set(before & ~notes); }
    ~Rounding() { set(before); }
    bool possible() const { return state() & rounded || !noted(); }
    void forget() { set(before & ~notes); }
#else
public:
    Rounding() {}
    bool possible() const { return true; }
    void forget() {}
#endif
    Rounding(const Rounding &) = delete;
};

// Adds rows, `joining_most` at most, to the sums of the clusters in `labels[row]`.
template <size_t columns, class T>
inline void join_listed(const T *x, size_t d, const FixedSums &to, size_t k, const int *rows, size_t count, const int *labels) {
    if (join_together<columns>(k)) return join_fixed<columns>(x, d, to, k, rows, count, labels);
    for (size_t i = 0; i < count; ++i) {
        const int cluster = labels[rows[i]];
        ++count_of(to, size_t(cluster));
        to.touched[cluster] = 1;
        add_fixed_rows(x, d, to, rows + i, 1, cluster);
    }
}

// Takes a row out of the sums of its cluster again, which were rounded for it, and adds it in parts.
template <class T> __attribute__((noinline)) void correct_row(const T *x, const Targets<T> &t, const FixedSums &to, int cluster) {
    long long *sums = sums_of(to, size_t(cluster), t.d);
    for (size_t j = 0; j < t.d; ++j)
        sums[j] = (long long)((unsigned long long)sums[j] - (unsigned long long)in_fixed_point_one(x, to, j));
    --count_of(to, size_t(cluster));
    move_in_parts(x, t.d, t, to, -1, cluster);
}

// The same for all rows from `first` to `end` that fixed point cannot hold: few in many thousands, as a rule.
template <class T>
__attribute__((noinline)) void correct_rows(const T *x, const Targets<T> &t, const FixedSums &to, size_t first, size_t end, const int *labels) {
    for (size_t row = first; row < end; ++row)
        if (labels[row] >= 0 && !is_fixed(x + row * t.d, t.d, to.least)) correct_row(x + row * t.d, t, to, labels[row]);
}

// Adds the rows from `first` to `end`, `joining_most` at most, to the sums of the clusters in `labels[row]`, but for those without a
// label. Returns how many were added.
template <size_t columns, class T>
size_t join_rows_of(const T *x, const Targets<T> &t, const FixedSums &sums, size_t first, size_t end, const int *labels) {
    const FixedSums to = sums;  // a copy: no store can change it
    const size_t d = columns ? columns : t.d;
    size_t count = 0;
    const Rounding rounding;
    if (columns && to.copies > 1) {
        if constexpr (columns > 0) {
            count = to.copies == few_copies ? join_one_by_one<columns, few_copies>(x, to, t.k, first, end, labels)
                                            : join_one_by_one<columns, 2>(x, to, t.k, first, end, labels);
        }
    } else {
        int rows[joining_most];
        for (size_t row = first; row < end; ++row) {
            rows[count] = int(row);
            count += labels[row] >= 0;
        }
        join_listed<columns>(x, d, to, t.k, rows, count, labels);
    }
    if (__builtin_expect(rounding.possible(), false)) correct_rows(x, t, to, first, end, labels);
    return count;
}
template <class T>
size_t join_rows(const T *x, const Targets<T> &t, const FixedSums &sums, size_t first, size_t end, const int *labels) {
    if (t.d == 8) return join_rows_of<8>(x, t, sums, first, end, labels);
    if (FW_BYTES >= 32 && t.d == 16) return join_rows_of<16>(x, t, sums, first, end, labels);
    if (FW_BYTES == 64 && t.d == 32) return join_rows_of<32>(x, t, sums, first, end, labels);
    if (FW_BYTES == 64 && t.d == 64) return join_rows_of<64>(x, t, sums, first, end, labels);
    return join_rows_of<0>(x, t, sums, first, end, labels);
}
