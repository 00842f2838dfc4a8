// Parquet pages of flat columns of numbers, decoded into values that lie side by side, and a bitmap of those present.
// Whatever a damaged page says is checked before it is believed; what is not understood is refused.
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "parquet_header.h"
#include "snappy.h"

namespace fw {

// Memory for pages, kept for the next ones: fresh pages of the operating system take as long as decoding into them.
class Pool : public std::enable_shared_from_this<Pool> {
 public:
  using Bytes = std::shared_ptr<uint8_t>;

  Bytes take(size_t size) {
    size += slack;
    std::unique_ptr<uint8_t[]> found;
    size_t step = 4096;  // rooms of few different sizes, so that they fit again, at most an eighth too large
    while (16 * step < size) step *= 2;
    size_t room = (size + step - 1) / step * step;
    {
      std::lock_guard<std::mutex> turn(lock_);
      for (size_t i = kept_.size(); i-- > 0;)
        if (kept_[i].second >= size && kept_[i].second / 2 <= size) {
          found = std::move(kept_[i].first);
          room = kept_[i].second;
          total_ -= room;
          kept_.erase(kept_.begin() + i);
          break;
        }
    }
    if (!found) found.reset(new uint8_t[room]);
    uint8_t *bytes = found.release();
    return Bytes(bytes, [pool = shared_from_this(), room](uint8_t *memory) { pool->put(memory, room); });
  }

 private:
  void put(uint8_t *memory, size_t room) {
    std::unique_ptr<uint8_t[]> given(memory);
    std::lock_guard<std::mutex> turn(lock_);
    while (!kept_.empty() && total_ + room > most) {  // the oldest are those that no longer fit
      total_ -= kept_.front().second;
      kept_.erase(kept_.begin());
    }
    if (room > most) return;
    kept_.emplace_back(std::move(given), room);
    total_ += room;
  }

  static constexpr size_t most = 48 << 20;
  std::mutex lock_;
  std::vector<std::pair<std::unique_ptr<uint8_t[]>, size_t>> kept_;
  size_t total_ = 0;
};

enum class Codec { none = 0, snappy = 1 };

// How the values of a column are stored; booleans take one bit in a file, and one byte here.
struct Stored {
  int width = 4;  // bytes of a value once decoded
  bool is_bool = false;
  bool optional = false;  // whether cells may be missing
};

struct Dictionary {
  Pool::Bytes bytes;
  uint64_t count = 0;
};

struct Page {
  int64_t first = 0, rows = 0;  // within the row group
  const char *data = nullptr;
  const uint8_t *validity = nullptr;  // null if nothing is missing
  Pool::Bytes values, bitmap;
};

constexpr uint64_t most_bytes = 1 << 30;  // of one page

// Runs of equal values, and values of a few bits each, in turns. `repeat(value, n)` and `packed(bytes, n)` take them.
template <class Repeat, class Packed>
void each_run(const uint8_t *from, const uint8_t *end, int bits, uint64_t n, Repeat repeat, Packed packed) {
  while (n) {
    uint64_t head = 0;
    for (int shift = 0;; shift += 7) {
      if (from == end || shift > 28) throw Refused("a run in a page is cut off");
      const uint8_t byte = *from++;
      head |= uint64_t(byte & 127) << shift;
      if (byte < 128) break;
    }
    if (head & 1) {
      const uint64_t here = std::min(n, (head >> 1) * 8), stored = (head >> 1) * bits;
      if (here == 0 || (here * bits + 7) / 8 > uint64_t(end - from)) throw Refused("a run in a page is cut off");
      packed(from, here);
      from += std::min(stored, uint64_t(end - from));
      n -= here;
    } else {
      const int bytes = (bits + 7) / 8;
      const uint64_t here = std::min(n, head >> 1);
      if (here == 0 || bytes > end - from) throw Refused("a run in a page is cut off");
      uint32_t value = 0;
      for (int i = 0; i < bytes; ++i) value |= uint32_t(from[i]) << 8 * i;
      repeat(value, here);
      from += bytes;
      n -= here;
    }
  }
}

// The i-th of packed values of at most 32 bits; reads up to 8 bytes, within the slack.
inline uint32_t unpack(const uint8_t *from, uint64_t i, int bits, uint32_t mask) {
  uint64_t window;
  std::memcpy(&window, from + (i * bits >> 3), 8);
  return uint32_t(window >> (i * bits & 7)) & mask;
}

class PageDecoder {
 public:
  PageDecoder(Pool &pool, Stored stored, Codec codec) : pool_(pool), stored_(stored), codec_(codec) {}

  // A data page of `rows` rows; `raw` are its bytes as they are in the file.
  std::shared_ptr<Page> data(const PageHeader &header, const Pool::Bytes &raw, const Dictionary &dictionary) {
    auto page = std::make_shared<Page>();
    const uint64_t rows = uint64_t(header.values);
    page->rows = header.values;
    if (rows * stored_.width > most_bytes) throw Refused("a page is too large");
    const uint8_t *at, *end;
    uint64_t present = rows;
    Pool::Bytes bytes;
    if (header.type == data_page_v2) {
      if (header.repetition_bytes != 0 || header.level_bytes < 0 || header.level_bytes > header.compressed ||
          header.level_bytes > header.uncompressed)
        throw Refused("the levels of a page do not fit");
      const uint64_t levels = uint64_t(header.level_bytes);
      if (stored_.optional) present = validity(raw.get(), raw.get() + levels, rows, *page);
      bytes = unpacked(raw, levels, uint64_t(header.compressed) - levels, uint64_t(header.uncompressed) - levels,
                       header.is_compressed ? codec_ : Codec::none, at);
      end = at + (header.uncompressed - header.level_bytes);
    } else {
      bytes = unpacked(raw, 0, uint64_t(header.compressed), uint64_t(header.uncompressed), codec_, at);
      end = at + header.uncompressed;
      if (stored_.optional) {
        if (header.level_encoding != rle) throw Refused("levels in an old encoding");
        uint32_t length;
        if (end - at < 4) throw Refused("a page ends within its levels");
        std::memcpy(&length, at, 4);
        at += 4;
        if (length > uint64_t(end - at)) throw Refused("a page ends within its levels");
        present = validity(at, at + length, rows, *page);
        at += length;
      }
    }
    decode(header, at, end, present, dictionary, bytes, *page);
    if (page->validity) spread(rows, present, *page);
    return page;
  }

  Dictionary dictionary(const PageHeader &header, const Pool::Bytes &raw) {
    const uint64_t count = uint64_t(header.values);
    const uint8_t *at;
    const bool known = header.encoding == plain || header.encoding == plain_dictionary;
    Pool::Bytes bytes = unpacked(raw, 0, uint64_t(header.compressed), uint64_t(header.uncompressed), codec_, at);
    if (!known || stored_.is_bool || count * stored_.width > uint64_t(header.uncompressed))
      throw Refused("a dictionary is not understood");
    return {Pool::Bytes(bytes, const_cast<uint8_t *>(at)), count};
  }

 private:
  // The bytes of a page from `skip` on, decompressed; `at` is where they begin.
  Pool::Bytes unpacked(const Pool::Bytes &raw, uint64_t skip, uint64_t compressed, uint64_t size, Codec codec,
                       const uint8_t *&at) {
    if (codec == Codec::none || (compressed == 0 && size == 0)) {
      if (compressed != size) throw Refused("the sizes of a page differ");
      at = raw.get() + skip;
      return raw;
    }
    // A copy of 64 bytes takes 3 bytes: a page that says more than that is damaged, and no memory is spent on it.
    if (size > most_bytes || size > 32 * compressed + slack) throw Refused("a page is too large");
    Pool::Bytes bytes = pool_.take(size);
    if (!snappy_decompress(raw.get() + skip, compressed, bytes.get(), size)) throw Refused("a page cannot be decompressed");
    at = bytes.get();
    return bytes;
  }

  // Reads which values are present; returns how many.
  uint64_t validity(const uint8_t *from, const uint8_t *end, uint64_t rows, Page &page) {
    if (!rows) return 0;
    uint64_t done = 0, present = 0;
    uint8_t *bits = nullptr;
    const auto begin = [&] {  // most pages miss nothing: the bitmap is made when the first cell is missing
      if (bits) return;
      page.bitmap = pool_.take((rows + 7) / 8 + 1);
      bits = page.bitmap.get();
      std::memset(bits, 0, (rows + 7) / 8 + 1);
      ones(bits, 0, done);
    };
    each_run(
        from, end, 1, rows,
        [&](uint32_t value, uint64_t n) {
          if (value > 1) throw Refused("a level is too high");
          if (!value) begin();
          if (value && bits) ones(bits, done, n);
          present += value ? n : 0;
          done += n;
        },
        [&](const uint8_t *packed, uint64_t n) {
          uint64_t here = 0;
          for (uint64_t i = 0; i < n; i += 8) here += uint64_t(__builtin_popcount(group(packed, i, n)));
          if (here < n) begin();
          if (bits) {
            const unsigned shift = done & 7;
            for (uint64_t i = 0; i < n; i += 8) {
              const unsigned byte = group(packed, i, n);
              bits[(done + i) >> 3] |= uint8_t(byte << shift);
              if (shift) bits[((done + i) >> 3) + 1] |= uint8_t(byte >> (8 - shift));
            }
          }
          present += here;
          done += n;
        });
    page.validity = bits;
    return present;
  }

  static unsigned group(const uint8_t *packed, uint64_t i, uint64_t n) {
    return n - i < 8 ? packed[i >> 3] & ((1u << (n - i)) - 1) : packed[i >> 3];
  }

  static void ones(uint8_t *bits, uint64_t from, uint64_t n) {
    while (n && (from & 7)) bits[from >> 3] |= uint8_t(1u << (from & 7)), ++from, --n;
    std::memset(bits + (from >> 3), 255, n >> 3);
    from += n & ~uint64_t(7);
    if (n & 7) bits[from >> 3] |= uint8_t((1u << (n & 7)) - 1);
  }

  void decode(const PageHeader &header, const uint8_t *at, const uint8_t *end, uint64_t n, const Dictionary &dictionary,
              const Pool::Bytes &bytes, Page &page) {
    const uint64_t width = stored_.width, left = uint64_t(end - at);
    if (header.encoding == plain && !stored_.is_bool) {
      if (n * width > left) throw Refused("a page has too few values");
      page.values = bytes;
      page.data = (const char *)at;
      return;
    }
    page.values = pool_.take(n * width);
    uint8_t *out = page.values.get();
    page.data = (const char *)out;
    if (stored_.is_bool && header.encoding == plain) {
      if ((n + 7) / 8 > left) throw Refused("a page has too few values");
      for (uint64_t i = 0; i < n; ++i) out[i] = at[i >> 3] >> (i & 7) & 1;
    } else if (stored_.is_bool && header.encoding == rle) {
      uint32_t length;
      if (left < 4) throw Refused("a page has too few values");
      std::memcpy(&length, at, 4);
      if (length > left - 4) throw Refused("a page has too few values");
      const auto repeat = [&](uint32_t value, uint64_t m) { std::memset(out, value & 1, m), out += m; };
      const auto packed = [&](const uint8_t *from, uint64_t m) {
        for (uint64_t i = 0; i < m; ++i) *out++ = from[i >> 3] >> (i & 7) & 1;
      };
      each_run(at + 4, at + 4 + length, 1, n, repeat, packed);
    } else if (header.encoding == byte_stream_split && !stored_.is_bool) {
      // The number of values is the distance between the bytes of each: a wrong one would make numbers of anything.
      if (n * width != left) throw Refused("a page has too few values or too many");
      for (uint64_t i = 0; i < n; ++i)
        for (uint64_t b = 0; b < width; ++b) out[i * width + b] = at[b * n + i];
    } else if ((header.encoding == rle_dictionary || header.encoding == plain_dictionary) && !stored_.is_bool) {
      if (width == 4) look_up<uint32_t>(at, end, n, dictionary, out);
      else look_up<uint64_t>(at, end, n, dictionary, out);
    } else {
      throw Refused("an encoding that is not known");
    }
  }

  template <class T>
  static void look_up(const uint8_t *at, const uint8_t *end, uint64_t n, const Dictionary &dictionary, uint8_t *bytes) {
    if (!n) return;
    if (at == end || *at > 32) throw Refused("a page without the width of its indices");
    const int bits = *at++;
    const uint32_t mask = bits == 32 ? ~0u : (1u << bits) - 1;
    T *out = (T *)bytes;
    const uint8_t *values = dictionary.bytes.get();
    const auto value_of = [&](uint32_t index) {
      T value;
      std::memcpy(&value, values + uint64_t(index) * sizeof value, sizeof value);
      return value;
    };
    each_run(
        at, end, bits, n,
        [&](uint32_t index, uint64_t m) {
          if (index >= dictionary.count) throw Refused("an index beyond the dictionary");
          out = std::fill_n(out, m, value_of(index));
        },
        [&](const uint8_t *from, uint64_t m) {
          uint32_t indices[1024];
          for (uint64_t done = 0; done < m; done += 1024, from += 128 * bits) {
            const uint64_t here = std::min<uint64_t>(1024, m - done);
            uint32_t largest = 0;
            for (uint64_t i = 0; i < here; ++i) {
              indices[i] = unpack(from, i, bits, mask);
              largest = std::max(largest, indices[i]);
            }
            if (largest >= dictionary.count) throw Refused("an index beyond the dictionary");
            for (uint64_t i = 0; i < here; ++i) *out++ = value_of(indices[i]);
          }
        });
  }

  // Moves values to the rows they belong to. What stands in rows without a value is of no account.
  void spread(uint64_t rows, uint64_t present, Page &page) {
    Pool::Bytes spaced = pool_.take(rows * stored_.width);
    if (present == 0) std::memset(spaced.get(), 0, rows * stored_.width);
    else if (stored_.width == 8) spread_as<uint64_t>(rows, present, page, spaced.get());
    else if (stored_.width == 4) spread_as<uint32_t>(rows, present, page, spaced.get());
    else spread_as<uint8_t>(rows, present, page, spaced.get());
    page.values = spaced;
    page.data = (const char *)spaced.get();
  }

  template <class T>
  static void spread_as(uint64_t rows, uint64_t present, const Page &page, uint8_t *bytes) {
    T *out = (T *)bytes;
    uint64_t k = 0;
    for (uint64_t i = 0; i < rows; ++i) {
      std::memcpy(out + i, page.data + std::min(k, present - 1) * sizeof(T), sizeof(T));
      k += page.validity[i >> 3] >> (i & 7) & 1;
    }
  }

  Pool &pool_;
  Stored stored_;
  Codec codec_;
};

}  // namespace fw
