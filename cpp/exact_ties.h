// Resolves near ties, with the same result as brute force in more than double precision.

// The inner product of two vectors of d values.
template <class T> inline T dot(const T *a, const T *b, size_t d) {
    using V = Vec<T>;
    constexpr size_t L = lanes<T>;
    V s0 = {}, s1 = {}, s2 = {}, s3 = {};
    size_t j = 0;
    for (; j + 4 * L <= d; j += 4 * L) {
        s0 += load<V>(a + j) * load<V>(b + j);
        s1 += load<V>(a + j + L) * load<V>(b + j + L);
        s2 += load<V>(a + j + 2 * L) * load<V>(b + j + 2 * L);
        s3 += load<V>(a + j + 3 * L) * load<V>(b + j + 3 * L);
    }
    for (; j + L <= d; j += L) s0 += load<V>(a + j) * load<V>(b + j);
    T parts[L], sum = 0;
    store(parts, (s0 + s1) + (s2 + s3));
    for (size_t i = 0; i < L; ++i) sum += parts[i];
    for (; j < d; ++j) sum += a[j] * b[j];
    return sum;
}

// The sum of the eight values in these vectors, in the same order for vectors of any length.
inline double sum_of_eight(const Vec<double> (&s)[8 / lanes<double>]) {
    typedef double Four __attribute__((vector_size(32)));
    typedef double Two __attribute__((vector_size(16)));
    Four first, last;
    Two low, high;
    __builtin_memcpy(&first, s, sizeof first);
    __builtin_memcpy(&last, (const char *)s + sizeof first, sizeof last);
    first += last;
    __builtin_memcpy(&low, &first, sizeof low);
    __builtin_memcpy(&high, (const char *)&first + sizeof low, sizeof high);
    low += high;
    return low[0] + low[1];
}

// The squared distance between a row and a target, computed from differences: an offset of the data costs no digits.
// If `observed`, missing cells are left out. Terms are added in the order of vectors of eight, whatever their length here.
template <bool observed = false, class T>
inline double squared_distance(const T *x, double scale, const double *target, size_t d) {
    using V = Vec<double>;
    constexpr size_t L = lanes<double>, eight = 8 / L;
    V s[eight] = {}, more[eight] = {};
    size_t j = 0;
    for (; j + 16 <= d; j += 16) {
        FW_UNROLL(4)
        for (size_t v = 0; v < eight; ++v) {
            V a = load_as<double>(x + j + v * L) * scale - load<V>(target + j + v * L);
            V b = load_as<double>(x + j + 8 + v * L) * scale - load<V>(target + j + 8 + v * L);
            if constexpr (observed) a = zero_if_nan(a), b = zero_if_nan(b);
            s[v] += a * a;
            more[v] += b * b;
        }
    }
    if (j + 8 <= d) {
        FW_UNROLL(4)
        for (size_t v = 0; v < eight; ++v) {
            V a = load_as<double>(x + j + v * L) * scale - load<V>(target + j + v * L);
            if constexpr (observed) a = zero_if_nan(a);
            s[v] += a * a;
        }
        j += 8;
    }
    FW_UNROLL(4)
    for (size_t v = 0; v < eight; ++v) s[v] += more[v];
    double sum = j ? sum_of_eight(s) : 0;
    for (; j < d; ++j) {
        const double a = double(x[j]) * scale - target[j];
        if constexpr (observed)
            if (a != a) continue;
        double square = a * a;
        settle(square);  // compilers fuse such single products and sums in some sets and not in others
        sum += square;
    }
    return sum;
}

struct DoubleDouble {
    double high, low;
};

// The same in double-double arithmetic, about 100 bits.
template <bool observed = false, class T>
DoubleDouble squared_distance_pair(const T *x, double scale, const double *target, size_t d) {
    DoubleDouble sum{0, 0};
    for (size_t j = 0; j < d; ++j) {
        const double a = double(x[j]) * scale, b = target[j];
        if constexpr (observed)
            if (a != a) continue;
        const double h = a - b, back = h - a;
        const double l = (a - (h - back)) - (b + back);
        const double p = h * h;
        const double q = __builtin_fma(h, h, -p) + (2 * h * l + l * l);
        const double s = sum.high + p, t = s - sum.high;
        const double e = ((sum.high - (s - t)) + (p - t)) + (sum.low + q);
        sum.high = s + e;
        sum.low = e - (sum.high - s);
    }
    return sum;
}

// The nearest target of a row so far away that its squared distances overflow float64. It uses scores in float64, so
// targets whose scores agree to the last digits may be confused, and it counts as an exact tie.
template <bool observed = false, class T> int resolve_far_row(const T *x, const Targets<T> &t, AssignCounts &counts) {
    constexpr double shrink = 0x1p-600;
    ++counts.exact_ties;
    int winner = 0;
    double most = 0;
    for (size_t c = 0; c < t.k; ++c) {
        double score = 0;
        for (size_t j = 0; j < t.d; ++j) {
            const double target = t.exact[c * t.d + j];
            if constexpr (observed)
                if (x[j] != x[j]) continue;
            score += (double(x[j]) * (t.wide_scale * shrink)) * target - target * target * shrink / 2;
        }
        if (c == 0 || score > most) winner = int(c), most = score;
    }
    return winner;
}

// The least of several distances in double-double arithmetic, and whether another one equals it.
struct LeastPair {
    int winner = -1;
    bool tied = false;
    DoubleDouble least{0, 0};
    void take(int c, DoubleDouble found) {
        const bool equal = found.high == least.high && found.low == least.low;
        if (winner < 0 || found.high < least.high || (found.high == least.high && found.low < least.low)) {
            winner = c;
            least = found;
            tied = false;
        } else if (equal) {
            tied = true;
        }
    }
};

// The exact nearest target of one row, the lowest-numbered one among equals. `y` has room for d values, `scores` for
// k. Counts the row as a near tie, and as an exact one if the number decided.
//
// Which targets are candidates, and which two count as close, does not depend on their numbers, and neither does the winner
// unless two are equal in the last comparison. So where a pass counts no exact tie, renumbering the targets renumbers the
// labels and changes nothing else. That holds for passes with bounds too: a row is skipped only if an upper bound on the
// distance to its target lies below a lower bound on that to every other, and a group of targets likewise, which is
// impossible for two targets at the same, least distance.
template <class T> int resolve_tie(const T *x, const Targets<T> &t, T *y, T *scores, AssignCounts &counts) {
    const size_t k = t.k, d = t.d;
    ++counts.near_ties;
    double square = 0;
    for (size_t j = 0; j < d; ++j) {
        y[j] = x[j] * t.scale - t.pivot[j];
        square += double(y[j]) * double(y[j]);
    }
    T best = -T(__builtin_inff());
    for (size_t c = 0; c < k; ++c) {
        const T *target = t.shifted + c * d;
        scores[c] = dot(y, target, d);
    }
    for (size_t s = 0; s < k; ++s) {
        T &score = scores[t.ids[s]];
        score += t.minus_half[s];
        if (score > best) best = score;
    }
    const double dot_chain = double(d) / (4 * lanes<T>) + 2 * lanes<T> + 10;  // longest chain of additions in `dot`
    const double chain = longest_chain(d) > dot_chain ? longest_chain(d) : dot_chain;
    const double reach = unit_roundoff<T> * chain * t.longest * (2 * __builtin_sqrt(square) + t.longest) * 1.01;
    int winner = -1;
    double least_found = 0;
    bool close = false;
    const double doubt = (double(d) + 8) * 0x1p-52;
    for (size_t c = 0; c < k; ++c) {
        if (double(best) - double(scores[c]) > reach) continue;
        const double found = squared_distance(x, t.wide_scale, t.exact + c * d, d);
        scores[c] = T(__builtin_inff());  // marks a candidate
        if (winner < 0 || found < least_found) {
            close = winner >= 0 && least_found - found <= doubt * least_found;
            winner = int(c);
            least_found = found;
        } else if (found - least_found <= doubt * found) {
            close = true;
        }
    }
    if (!(least_found < __builtin_inf())) return resolve_far_row(x, t, counts);
    if (!close) return winner;
    LeastPair pairs;
    for (size_t c = 0; c < k; ++c)
        if (scores[c] == T(__builtin_inff())) pairs.take(int(c), squared_distance_pair(x, t.wide_scale, t.exact + c * d, d));
    counts.exact_ties += pairs.tied;
    return pairs.winner;
}

// The same over the observed cells of a row; -1 if there are none.
template <class T> int resolve_observed_tie(const T *x, const Targets<T> &t, AssignCounts &counts) {
    const size_t k = t.k, d = t.d;
    ++counts.near_ties;
    if (nothing_observed(x, d)) return -1;
    const double doubt = (double(d) + 8) * 0x1p-52;
    int winner = -1;
    double least_found = 0;
    bool close = false;
    for (size_t c = 0; c < k; ++c) {
        const double found = squared_distance<true>(x, t.wide_scale, t.exact + c * d, d);
        if (winner < 0 || found < least_found) {
            close = winner >= 0 && least_found - found <= doubt * least_found;
            winner = int(c);
            least_found = found;
        } else if (found - least_found <= doubt * found) {
            close = true;
        }
    }
    if (!(least_found < __builtin_inf())) return resolve_far_row<true>(x, t, counts);
    if (!close) return winner;
    LeastPair pairs;
    for (size_t c = 0; c < k; ++c) {
        const double about = squared_distance<true>(x, t.wide_scale, t.exact + c * d, d);
        if (about - least_found > 4 * doubt * about) continue;
        pairs.take(int(c), squared_distance_pair<true>(x, t.wide_scale, t.exact + c * d, d));
    }
    counts.exact_ties += pairs.tied;
    return pairs.winner;
}
