// The headers of Parquet pages, which are Thrift structs in the compact protocol: only what is needed is kept.
#pragma once

#include <cstdint>
#include <stdexcept>

namespace fw {

// What the reader does not understand, or must not believe. The caller then reads the file in another way.
struct Refused : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct OutOfBytes {};  // the header goes on behind the bytes at hand

enum PageType { data_page = 0, index_page = 1, dictionary_page = 2, data_page_v2 = 3 };
enum Encoding { plain = 0, plain_dictionary = 2, rle = 3, rle_dictionary = 8, byte_stream_split = 9 };

struct PageHeader {
  int64_t type = -1, uncompressed = -1, compressed = -1, values = -1, encoding = -1, level_encoding = rle;
  int64_t level_bytes = 0, repetition_bytes = 0;  // of the second version, in which levels are not compressed
  bool is_compressed = true;
};

class HeaderReader {
 public:
  HeaderReader(const uint8_t *from, const uint8_t *end) : at_(from), end_(end) {}

  PageHeader read() {
    PageHeader header;
    fields([&](int field, int type) {
      if (field == 1) header.type = integer(type);
      else if (field == 2) header.uncompressed = integer(type);
      else if (field == 3) header.compressed = integer(type);
      else if (field == 5 && type == structure) about_data(header);
      else if (field == 7 && type == structure) about_dictionary(header);
      else if (field == 8 && type == structure) about_data_v2(header);
      else skip(type);
    });
    return header;
  }

  const uint8_t *end() const { return at_; }  // where the header ended

 private:
  enum Type { yes = 1, no = 2, byte = 3, i16 = 4, i32 = 5, i64 = 6, number = 7, binary = 8, list = 9, set = 10, map = 11, structure = 12 };

  uint8_t next() {
    if (at_ == end_) throw OutOfBytes();
    return *at_++;
  }

  uint64_t varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const uint8_t byte = next();
      value |= uint64_t(byte & 127) << shift;
      if (byte < 128) return value;
    }
    throw Refused("a number in a page header does not end");
  }

  int64_t integer(int type) {
    if (type < i16 || type > i64) throw Refused("a page header holds something else than a number");
    const uint64_t value = varint();
    // All numbers of a page header that count something have 32 bits: larger ones would overflow in products.
    if (value > UINT32_MAX) throw Refused("a number in a page header is too large");
    return int64_t(value >> 1) ^ -int64_t(value & 1);
  }

  template <class Take>
  void fields(Take take) {
    if (++depth_ > 16) throw Refused("a page header is nested too deeply");
    int field = 0;
    while (true) {
      const uint8_t byte = next();
      const int type = byte & 15;
      if (type == 0) break;
      field = byte >> 4 ? field + (byte >> 4) : int(integer(i16));
      take(field, type);
    }
    --depth_;
  }

  void pass(uint64_t bytes) {
    if (bytes > uint64_t(end_ - at_)) throw OutOfBytes();
    at_ += bytes;
  }

  void skip(int type, bool in_list = false) {
    if (type == yes || type == no) pass(in_list ? 1 : 0);
    else if (type == byte) pass(1);
    else if (type >= i16 && type <= i64) varint();
    else if (type == number) pass(8);
    else if (type == binary) pass(varint());
    else if (type == structure) fields([&](int, int inner) { skip(inner); });
    else if (type == list || type == set) {
      if (++depth_ > 16) throw Refused("a page header is nested too deeply");
      const uint8_t head = next();
      const uint64_t count = head >> 4 == 15 ? varint() : head >> 4;
      for (uint64_t i = 0; i < count; ++i) skip(head & 15, true);
      --depth_;
    } else throw Refused("a page header holds an unknown type");
  }

  void about_data(PageHeader &header) {
    fields([&](int field, int type) {
      if (field == 1) header.values = integer(type);
      else if (field == 2) header.encoding = integer(type);
      else if (field == 3) header.level_encoding = integer(type);
      else skip(type);
    });
  }

  void about_dictionary(PageHeader &header) {
    fields([&](int field, int type) {
      if (field == 1) header.values = integer(type);
      else if (field == 2) header.encoding = integer(type);
      else skip(type);
    });
  }

  void about_data_v2(PageHeader &header) {
    fields([&](int field, int type) {
      if (field == 1) header.values = integer(type);
      else if (field == 4) header.encoding = integer(type);
      else if (field == 5) header.level_bytes = integer(type);
      else if (field == 6) header.repetition_bytes = integer(type);
      else if (field == 7 && (type == yes || type == no)) header.is_compressed = type == yes;
      else skip(type);
    });
  }

  const uint8_t *at_, *end_;
  int depth_ = 0;
};

}  // namespace fw
