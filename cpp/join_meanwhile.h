// Adds the rows of the panel before to the sums while a panel is compared, in instructions between each other: comparing keeps the
// multiplying units busy, and adding waits for loads and stores. For rows that all are without a label in the beginning.
//
// Whether fixed point can hold the rows is asked from time to time (joining_rows.h), so nothing else may round meanwhile, or must do so
// quietly (int16_rows.h). What rounds all the same, as settling doubtful rows does, costs a look at the rows, not a wrong sum.

#if defined(__x86_64__) && FW_BYTES >= 32
struct NothingMeanwhile {
    void until(size_t) {}
    void some() {}
    void end_panel() {}
    void check() {}
};

template <size_t columns> class JoinMeanwhile {
    static constexpr size_t copies = few_copies, N = panel_rows<float>, unchecked_most = 16 * N;
    const float *const x;
    const Targets<float> &t;
    ChangeLog<float> &log;
    const JoiningRows<columns, copies, float> rows;
    Rounding rounding;
    size_t end = 0, checked = 0, row = 0;

public:
    JoinMeanwhile(const float *x_, const Targets<float> &t_, ChangeLog<float> &log_)
        : x(x_), t(t_), log(log_), rows(x_, *log_.sums, log_.labels) {}
    static bool suits(const ChangeLog<float> &log) { return FW_BYTES == 64 && log.fresh && log.sums->copies == copies; }

    // Rows before this one have been compared, and those that are sure have their labels.
    void until(size_t first) { end = first; }
    __attribute__((always_inline)) inline void some() {
        if (row + copies > end) return;
        rows.add_some(row);
        row += copies;
    }
    __attribute__((always_inline)) inline void end_panel() {
        for (; row + copies <= end; row += copies) rows.add_some(row);
        for (; row < end; ++row) rows.add(row, 0);
        log.joined = row;
        if (row - checked >= unchecked_most) check();
    }
    // To be called before rows that were without a label get one: those that have one now were added with it.
    __attribute__((noinline)) void check() {
        if (rounding.possible()) {
            correct_rows(x, t, *log.sums, checked, row, log.labels);
            rounding.forget();
        }
        __builtin_memset(log.sums->touched, 1, t.k);
        const int *const labels = log.labels;
        int labelled = 0;
        for (size_t i = checked; i < row; ++i) labelled += labels[i] >= 0;
        log.moved += size_t(labelled);
        log.held += row - checked;
        checked = row;
        log.make_room(unchecked_most + N);
    }
};
#endif
