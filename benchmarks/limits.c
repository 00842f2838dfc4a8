/* What the machine can do at most: fused multiply-adds in registers, and reading memory once. Built by limits.py. */
#include <stddef.h>

typedef float V __attribute__((vector_size(BYTES)));

#define EACH(f) f(0) f(1) f(2) f(3) f(4) f(5) f(6) f(7) f(8) f(9) f(10) f(11)

/* 12 independent chains: enough to hide the latency on every processor with such vectors. */
void multiply_add(long rounds) {
#define START(i) V a##i = {};
#define STEP(i) a##i = a##i * x + y;
#define KEEP(i) __asm__ volatile("" : "+x"(a##i));
    V x = (V){} + 0.999f, y = (V){} + 1e-3f;
    EACH(START)
    for (long i = 0; i < rounds; ++i) {
        EACH(STEP)
        EACH(KEEP)
    }
}

float read_once(const float *from, size_t count) {
    const size_t L = BYTES / sizeof(float);
    V a = {}, b = {}, c = {}, d = {};
    for (size_t i = 0; i + 4 * L <= count; i += 4 * L) {
        a += *(const V *)(from + i);
        b += *(const V *)(from + i + L);
        c += *(const V *)(from + i + 2 * L);
        d += *(const V *)(from + i + 3 * L);
        __builtin_prefetch(from + i + 1024);
    }
    a += b + c + d;
    return a[0];
}
