// Vectorised exp and log, accurate to about one unit in the last place. Each lane is independent of its neighbours.

using Doubles = Vec<double>;
using Words = Vec<unsigned long long>;

constexpr double ln2_high = 0x1.62e42fefa38p-1, ln2_low = 0x1.ef35793c7673p-45;  // the first has 12 trailing zero bits

// e^x for x <= 0; results that would be subnormal are 0.
inline Doubles exp_of(Doubles x) {
    const Doubles shift = broadcast(0x1.8p52);
    const Doubles t = x * 0x1.71547652b82fep0 + shift, n = t - shift;
    const Doubles r = (x - n * ln2_high) - n * ln2_low;
    // The Taylor series up to r^13, accurate to 2^-57 for |r| <= ln 2 / 2.
    Doubles p = broadcast(1.0 / 6227020800.0);
    p = p * r + 1.0 / 479001600.0;
    p = p * r + 1.0 / 39916800.0;
    p = p * r + 1.0 / 3628800.0;
    p = p * r + 1.0 / 362880.0;
    p = p * r + 1.0 / 40320.0;
    p = p * r + 1.0 / 5040.0;
    p = p * r + 1.0 / 720.0;
    p = p * r + 1.0 / 120.0;
    p = p * r + 1.0 / 24.0;
    p = p * r + 1.0 / 6.0;
    p = p * r + 0.5;
    const Doubles y = (p * (r * r) + r) + 1.0;
    const Doubles scaled = (Doubles)((Words)y + ((Words)t << 52));
    return x < -708.0 ? Doubles{} : scaled;
}

// log x for x >= 1.
inline Doubles log_of(Doubles x) {
    const unsigned long long half = 0x3fe6a09e667f3bcdull;  // sqrt(1/2): x = 2^n m with m between sqrt(1/2) and sqrt(2)
    const Words bits = (Words)x, n = (bits - half) >> 52;
    const Doubles m = (Doubles)(bits - (n << 52));
    const Doubles count = (Doubles)(n + 0x4338000000000000ull) - 0x1.8p52;
    const Doubles f = m - 1.0, s = f / (f + 2.0), z = s * s;
    Doubles p = broadcast(2.0 / 21.0);
    p = p * z + 2.0 / 19.0;
    p = p * z + 2.0 / 17.0;
    p = p * z + 2.0 / 15.0;
    p = p * z + 2.0 / 13.0;
    p = p * z + 2.0 / 11.0;
    p = p * z + 2.0 / 9.0;
    p = p * z + 2.0 / 7.0;
    p = p * z + 2.0 / 5.0;
    p = p * z + 2.0 / 3.0;
    return count * ln2_high + ((s + s) + (count * ln2_low + p * z * s));
}
