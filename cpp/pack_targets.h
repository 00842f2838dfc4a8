// Targets are packed anew for every pass, by one thread while the others wait. All instruction sets find the same bits: sums have
// eight parts, side by side, and no product is fused with what it is added to.

constexpr size_t parts_of_sums = 8;

// Eight numbers in float64.
struct Eight {
    static constexpr size_t L = lanes<double>, count = parts_of_sums / L;
    Vec<double> v[count] = {};

    template <class T> static inline Eight of(const T *from) {
        Eight found;
        FW_UNROLL(4)
        for (size_t p = 0; p < count; ++p) found.v[p] = load_as<double>(from + p * L);
        return found;
    }
    // Calls work(vector of these, place of the vector).
    template <class Work> inline void each(Work work) {
        FW_UNROLL(4)
        for (size_t p = 0; p < count; ++p) work(v[p], p);
    }
    double total() const {
        double part[parts_of_sums], sum = 0;
        __builtin_memcpy(part, v, sizeof part);
        for (size_t i = 0; i < parts_of_sums; ++i) sum += part[i];
        return sum;
    }
};

// Calls work(values, place, how many) for eight values after the other; the last are filled up with zeros.
template <class T, class Work> inline void in_eights(const T *from, size_t n, Work work) {
    size_t j = 0;
    for (; j + parts_of_sums <= n; j += parts_of_sums) work(Eight::of(from + j), j, parts_of_sums);
    if (j == n) return;
    T last[parts_of_sums] = {};
    for (size_t i = 0; j + i < n; ++i) last[i] = from[j + i];
    work(Eight::of(last), j, n - j);
}

// Scales and shifts one target, with a power of two; returns its squared length.
template <class T> double shift_target(const T *from, size_t d, double scale, const double *pivot, double *wide, T *shifted) {
    Eight squares;
    size_t j = 0;
    for (; j + parts_of_sums <= d; j += parts_of_sums)
        for (size_t i = j; i < j + parts_of_sums; ++i) {
            wide[i] = double(from[i]) * scale;
            shifted[i] = T(wide[i] - pivot[i]);
        }
    for (; j < d; ++j) {
        wide[j] = double(from[j]) * scale;
        shifted[j] = T(wide[j] - pivot[j]);
    }
    in_eights(shifted, d, [&](Eight values, size_t, size_t) {
        values.each([&](Vec<double> y, size_t p) {
            Vec<double> square = y * y;
            settle(square);
            squares.v[p] += square;
        });
    });
    return squares.total();
}

template <class T, size_t width> inline void pack_panel(const T *const *from, size_t d, T *to) {
    for (size_t j = 0; j < d; ++j, to += width) {
        FW_UNROLL(8)
        for (size_t i = 0; i < width; ++i) to[i] = from[i][j];
    }
}
template <class T, size_t most = panel_targets> inline void pack_panel_of(size_t width, const T *const *from, size_t d, T *to) {
    if (width == most) return pack_panel<T, most>(from, d, to);
    if constexpr (most > 1) pack_panel_of<T, most - 1>(width, from, d, to);
}

// Writes panels [feature][width], one after the other. `ids` are the places of their targets; null if they are in order.
template <class T>
void pack_targets(const T *targets, const int *ids, const unsigned char *widths, size_t panels, size_t d, T *to) {
    const T *from[panel_targets];
    for (size_t p = 0, slot = 0; p < panels; slot += widths[p++]) {
        for (size_t i = 0; i < widths[p]; ++i) from[i] = targets + (ids ? size_t(ids[slot + i]) : slot + i) * d;
        pack_panel_of<T>(widths[p], from, d, to + slot * d);
    }
}

inline Vec<double> absolute(Vec<double> v) { return (Vec<double>)((Vec<long long>)v & 0x7fffffffffffffff); }

// The sum of the absolute values of a target, and the largest.
inline void target_size(const float *target, size_t d, double &sum, double &largest) {
    Eight sums, most;
    in_eights(target, d, [&](Eight values, size_t, size_t) {
        values.each([&](Vec<double> y, size_t p) {
            sums.v[p] += absolute(y);
            most.v[p] = larger(most.v[p], absolute(y));
        });
    });
    double part[parts_of_sums];
    __builtin_memcpy(part, most.v, sizeof part);
    sum = sums.total(), largest = 0;
    for (size_t i = 0; i < parts_of_sums; ++i) largest = part[i] > largest ? part[i] : largest;
}

// Rounds a target times a factor to integers of 16 bits, in pairs of columns.
inline RoundedTarget round_target(const float *target, size_t d, double factor, int *to) {
    constexpr double magic = 0x1.8p52;  // added and subtracted: the nearest integer
    Eight sum, square, error;
    in_eights(target, d, [&](Eight values, size_t j, size_t count) {
        int whole[parts_of_sums];
        values.each([&](Vec<double> y, size_t p) {
            Vec<double> value = y * factor;
            settle(value);
            const Vec<double> near = (value + magic) - magic, off = value - near;
            Vec<double> lost = off * off;
            settle(lost);
            sum.v[p] += absolute(near);
            square.v[p] += near * near;  // exact, fused or not
            error.v[p] += lost;
            const auto narrow = __builtin_convertvector(near, typename VecOf<int, FW_BYTES / 2>::type);
            __builtin_memcpy(whole + p * lanes<double>, &narrow, sizeof narrow);
        });
        for (size_t i = 0; i < count; i += 2) to[(j + i) / 2] = int((unsigned(whole[i + 1]) << 16) | (unsigned(whole[i]) & 0xffff));
    });
    return {sum.total(), error.total(), square.total()};
}
