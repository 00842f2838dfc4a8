// Random numbers for compiled searches, the same on every machine.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace fw {

// xoshiro256** (Blackman and Vigna 2018), seeded by splitmix64.
class Random {
  public:
    explicit Random(uint64_t seed) {
        for (uint64_t &word : state_) {
            seed += 0x9e3779b97f4a7c15u;
            uint64_t z = seed;
            z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
            z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
            word = z ^ (z >> 31);
        }
    }
    double uniform() { return double(next() >> 11) * 0x1p-53; }  // in [0, 1)
    std::size_t below(std::size_t n) { return std::min(std::size_t(uniform() * double(n)), n - 1); }
    uint64_t next() {
        const uint64_t out = turned(state_[1] * 5, 7) * 9, shifted = state_[1] << 17;
        state_[2] ^= state_[0];
        state_[3] ^= state_[1];
        state_[1] ^= state_[2];
        state_[0] ^= state_[3];
        state_[2] ^= shifted;
        state_[3] = turned(state_[3], 45);
        return out;
    }

  private:
    static uint64_t turned(uint64_t x, int by) { return (x << by) | (x >> (64 - by)); }
    uint64_t state_[4];
};

}  // namespace fw
