// A digest of the bytes of a file, at the speed of memory: saved models are read far more often than they are damaged, and a
// cryptographic hash would take several times as long as reading them. Eight lanes each take one word of every 64 bytes by
// steps that can be undone, so that one changed word always changes the digest; other damage goes unnoticed once in 2^64.
// Not against forgery.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>

#include <nanobind/stl/string.h>

namespace nb = nanobind;

namespace {

constexpr size_t lanes = 8, stripe = lanes * sizeof(uint64_t);
constexpr uint64_t odd = 0x9E3779B185EBCA87, other = 0xC2B2AE3D27D4EB4F;

inline uint64_t turned(uint64_t x, int by) { return x << by | x >> (64 - by); }
// The shift brings down what the product moved up, so that no bit of the next word can undo a change.
inline uint64_t mixed(uint64_t x, uint64_t word) {
    x = (x ^ word) * odd;
    return x ^ x >> 32;
}

using Bytes = nb::ndarray<const uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// Of the bytes with zeros (the character) from `from` to `to` - 1, where the digest itself stands: 64 hexadecimal digits.
std::string digest(Bytes data, size_t from, size_t to) {
    const uint8_t *bytes = data.data();
    const size_t n = data.shape(0);
    if (from > to || to > n) throw nb::value_error("the place of the digest is not in the data");
    uint64_t lane[lanes];
    {
        nb::gil_scoped_release released;
        for (size_t i = 0; i < lanes; ++i) lane[i] = other * (i + 1);
        uint64_t words[lanes];
        for (size_t at = 0; at < n; at += stripe) {
            const size_t here = n - at < stripe ? n - at : stripe;
            if (here < stripe || (at < to && at + stripe > from)) {
                uint8_t some[stripe] = {};
                for (size_t i = 0; i < here; ++i) some[i] = at + i >= from && at + i < to ? '0' : bytes[at + i];
                std::memcpy(words, some, stripe);
            } else
                std::memcpy(words, bytes + at, stripe);
            for (size_t i = 0; i < lanes; ++i) lane[i] = mixed(lane[i], words[i]);
        }
    }
    std::string found;
    for (uint64_t part = 0; part < 4; ++part) {
        uint64_t all = mixed(other + part, n);
        for (size_t i = 0; i < lanes; ++i) all = mixed(all, turned(lane[i], int(7 * part + 1)));
        all = (all ^ all >> 33) * other;
        all ^= all >> 29;
        char text[17];
        std::snprintf(text, sizeof text, "%016llx", (unsigned long long)all);
        found += text;
    }
    return found;
}

}  // namespace

void register_digest(nb::module_ &m) { m.def("digest", &digest, nb::arg("data").noconvert(), nb::arg("from"), nb::arg("to")); }
