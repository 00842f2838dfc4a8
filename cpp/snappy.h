// Decompression of one block in the snappy format. Reads and writes nothing outside its two ranges, but for the slack
// that both buffers must have behind their ends.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace fw {

constexpr size_t slack = 64;  // bytes behind the end of every buffer, which may be read and overwritten

// Copies n bytes from `distance` bytes back; the ranges may overlap, and then a pattern is repeated.
inline void copy_back(uint8_t *to, size_t distance, size_t n) {
  const uint8_t *from = to - distance;
  if (distance >= 16) {
    for (size_t i = 0; i < n; i += 16) std::memcpy(to + i, from + i, 16);
  } else {
    for (size_t i = 0; i < n; ++i) to[i] = from[i];
  }
}

// The length that the block says it has, and where its data begin; null if there is none.
inline const uint8_t *snappy_length(const uint8_t *from, const uint8_t *end, size_t &length) {
  length = 0;
  for (int shift = 0; shift < 35 && from < end; shift += 7) {
    const uint8_t byte = *from++;
    length |= size_t(byte & 127) << shift;
    if (byte < 128) return from;
  }
  return nullptr;
}

// Decompresses n bytes; false unless they are a whole block of exactly `size` bytes.
inline bool snappy_decompress(const uint8_t *from, size_t n, uint8_t *to, size_t size) {
  const uint8_t *const end = from + n, *const first = to, *const last = to + size;
  size_t said;
  from = snappy_length(from, end, said);
  if (!from || said != size) return false;
  while (from < end) {
    const unsigned tag = *from++;
    if ((tag & 3) == 0) {  // bytes as they are
      size_t length = (tag >> 2) + 1;
      if (length > 60) {
        const size_t bytes = length - 60;
        if (size_t(end - from) < bytes) return false;
        uint32_t value;
        std::memcpy(&value, from, 4);  // within the slack
        if (bytes < 4) value &= (1u << 8 * bytes) - 1;
        length = size_t(value) + 1;
        from += bytes;
      }
      if (length > size_t(end - from) || length > size_t(last - to)) return false;
      if (length <= 16)
        std::memcpy(to, from, 16);
      else
        std::memcpy(to, from, length);
      from += length;
      to += length;
      continue;
    }
    size_t length, distance;
    const size_t bytes = (tag & 3) == 1 ? 1 : (tag & 3) == 2 ? 2 : 4;
    if (size_t(end - from) < bytes) return false;
    if (bytes == 1) {
      length = 4 + ((tag >> 2) & 7);
      distance = size_t(tag >> 5) << 8 | from[0];
    } else {
      length = (tag >> 2) + 1;
      uint32_t value;
      std::memcpy(&value, from, 4);  // within the slack
      distance = bytes == 2 ? value & 0xffff : value;
    }
    from += bytes;
    if (distance == 0 || distance > size_t(to - first) || length > size_t(last - to)) return false;
    copy_back(to, distance, length);
    to += length;
  }
  return to == last;
}

}  // namespace fw
