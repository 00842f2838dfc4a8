// Columns in, rows out: copies Arrow batches or NumPy columns into row-major blocks.
//
// Tables are stored by column, but the arithmetic needs rows. Copying one column at a time would touch every cache
// line of the block once per column. Instead, a tile is gathered first: a run of each of a few columns is converted
// into a small buffer. (Long runs suit the prefetcher, and columns whose addresses collide in the cache do no harm.)
// The tile is then written transposed, a whole cache line of each row at a time.

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#if defined(__SSE2__)
#include <immintrin.h>
#endif

#include "batch.h"

namespace nb = nanobind;

using fw::Batch;
using fw::Column;
using fw::Kind;

namespace {

// The Arrow C data and stream interfaces, as given in their specification.
struct ArrowSchema {
  const char* format;
  const char* name;
  const char* metadata;
  int64_t flags;
  int64_t n_children;
  ArrowSchema** children;
  ArrowSchema* dictionary;
  void (*release)(ArrowSchema*);
  void* private_data;
};

struct ArrowArray {
  int64_t length;
  int64_t null_count;
  int64_t offset;
  int64_t n_buffers;
  int64_t n_children;
  const void** buffers;
  ArrowArray** children;
  ArrowArray* dictionary;
  void (*release)(ArrowArray*);
  void* private_data;
};

struct ArrowArrayStream {
  int (*get_schema)(ArrowArrayStream*, ArrowSchema*);
  int (*get_next)(ArrowArrayStream*, ArrowArray*);
  const char* (*get_last_error)(ArrowArrayStream*);
  void (*release)(ArrowArrayStream*);
  void* private_data;
};

template <class C>
struct Owned {  // an Arrow struct that is released exactly once
  C value{};
  Owned() = default;
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;
  ~Owned() {
    if (value.release) value.release(&value);
  }
};

Kind kind_of(const char* format) {
  const std::string f(format);
  if (f == "c") return Kind::i8;
  if (f == "C") return Kind::u8;
  if (f == "s") return Kind::i16;
  if (f == "S") return Kind::u16;
  if (f == "i") return Kind::i32;
  if (f == "I") return Kind::u32;
  if (f == "l") return Kind::i64;
  if (f == "L") return Kind::u64;
  if (f == "e") return Kind::f16;
  if (f == "f") return Kind::f32;
  if (f == "g") return Kind::f64;
  if (f == "b") return Kind::bit;
  // "d:precision,scale" is 128 bits wide; other widths add ",bits" and are not supported.
  if (f.rfind("d:", 0) == 0 && std::count(f.begin(), f.end(), ',') == 1) return Kind::decimal;
  return Kind::other;
}

int64_t width_of(Kind kind) {
  switch (kind) {
    case Kind::i8: case Kind::u8: case Kind::boolean: return 1;
    case Kind::i16: case Kind::u16: case Kind::f16: return 2;
    case Kind::i32: case Kind::u32: case Kind::f32: return 4;
    case Kind::decimal: return 16;
    default: return 8;
  }
}

double decimal_scale(const char* format) {
  double scale = 1.0;
  const int digits = std::atoi(std::strchr(format, ',') + 1);
  for (int i = 0; i < std::abs(digits); ++i) scale *= 10.0;
  return digits < 0 ? 1.0 / scale : scale;
}

float half_to_float(uint16_t h) {
  const uint32_t sign = uint32_t(h & 0x8000u) << 16, exponent = (h >> 10) & 31u, fraction = h & 0x3ffu;
  if (exponent == 0) {  // zero or subnormal: an exact multiple of 2^-24
    const float magnitude = float(fraction) * 5.9604644775390625e-8f;
    return sign ? -magnitude : magnitude;
  }
  const uint32_t bits = sign | (exponent == 31 ? 0x7f800000u : (exponent + 112) << 23) | (fraction << 13);
  float result;
  std::memcpy(&result, &bits, sizeof result);
  return result;
}

bool bit(const uint8_t* bits, int64_t i) { return bits[i >> 3] >> (i & 7) & 1; }

template <class S, class T>
void convert(const char* from, int64_t stride, int64_t n, T* to) {
  // A step that is known to the compiler lets it use vectors, wherever the values begin.
  const auto each = [&](int64_t step) {
    for (int64_t i = 0; i < n; ++i) {
      S value;
      std::memcpy(&value, from + i * step, sizeof value);
      to[i] = static_cast<T>(value);
    }
  };
  if (stride != int64_t(sizeof(S)))
    each(stride);
  else if constexpr (std::is_same_v<S, T>)
    std::memcpy(to, from, size_t(n) * sizeof(T));
  else
    each(sizeof(S));
}

template <class T>
void convert(const Column& c, int64_t start, int64_t n, T* to) {
  const char* from = c.data + start * c.stride;
  switch (c.kind) {
    case Kind::i8: return convert<int8_t>(from, c.stride, n, to);
    case Kind::i16: return convert<int16_t>(from, c.stride, n, to);
    case Kind::i32: return convert<int32_t>(from, c.stride, n, to);
    case Kind::i64: return convert<int64_t>(from, c.stride, n, to);
    case Kind::boolean:
    case Kind::u8: return convert<uint8_t>(from, c.stride, n, to);
    case Kind::u16: return convert<uint16_t>(from, c.stride, n, to);
    case Kind::u32: return convert<uint32_t>(from, c.stride, n, to);
    case Kind::u64: return convert<uint64_t>(from, c.stride, n, to);
    case Kind::f32: return convert<float>(from, c.stride, n, to);
    case Kind::f64: return convert<double>(from, c.stride, n, to);
    case Kind::f16:
      for (int64_t i = 0; i < n; ++i) {
        uint16_t half;
        std::memcpy(&half, from + i * c.stride, sizeof half);
        to[i] = static_cast<T>(half_to_float(half));
      }
      return;
    case Kind::bit:
      for (int64_t i = 0; i < n; ++i)
        to[i] = bit(reinterpret_cast<const uint8_t*>(c.data), c.offset + start + i) ? T(1) : T(0);
      return;
    case Kind::decimal:
      for (int64_t i = 0; i < n; ++i) {
        uint64_t low;
        int64_t high;
        std::memcpy(&low, from + i * c.stride, 8);
        std::memcpy(&high, from + i * c.stride + 8, 8);
        // A value that fits in 64 bits is converted directly, so that it is rounded only once.
        const double whole = high == (int64_t(low) < 0 ? -1 : 0) ? double(int64_t(low))
                                                                 : double(high) * 18446744073709551616.0 + double(low);
        to[i] = static_cast<T>(whole / c.scale);
      }
      return;
    case Kind::other: return;
  }
}

// Transposes a square of a tile that fits in registers: rows of `from` become columns of `to`.
#if defined(__SSE2__)
constexpr int64_t square(float) { return 4; }
constexpr int64_t square(double) { return 2; }
void transpose_square(const float* from, int64_t from_width, float* to, int64_t to_width) {
  __m128 a = _mm_loadu_ps(from), b = _mm_loadu_ps(from + from_width), c = _mm_loadu_ps(from + 2 * from_width),
         d = _mm_loadu_ps(from + 3 * from_width);
  _MM_TRANSPOSE4_PS(a, b, c, d);
  _mm_storeu_ps(to, a);
  _mm_storeu_ps(to + to_width, b);
  _mm_storeu_ps(to + 2 * to_width, c);
  _mm_storeu_ps(to + 3 * to_width, d);
}
void transpose_square(const double* from, int64_t from_width, double* to, int64_t to_width) {
  const __m128d a = _mm_loadu_pd(from), b = _mm_loadu_pd(from + from_width);
  _mm_storeu_pd(to, _mm_unpacklo_pd(a, b));
  _mm_storeu_pd(to + to_width, _mm_unpackhi_pd(a, b));
}
#else
template <class T>
constexpr int64_t square(T) { return 1; }
template <class T>
void transpose_square(const T* from, int64_t, T* to, int64_t) { *to = *from; }
#endif

// Transposes columns x rows at `from` into rows x columns at `to`.
template <class T>
void transpose(const T* from, int64_t from_width, int64_t columns, int64_t rows, T* to, int64_t to_width) {
  constexpr int64_t s = square(T());
  const int64_t even_columns = columns - columns % s, even_rows = rows - rows % s;
  for (int64_t i = 0; i < even_rows; i += s)
    for (int64_t j = 0; j < even_columns; j += s)
      transpose_square(from + j * from_width + i, from_width, to + i * to_width + j, to_width);
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = i < even_rows ? even_columns : 0; j < columns; ++j)
      to[i * to_width + j] = from[j * from_width + i];
}

// The same rows with only the given columns, in the given order.
Batch chosen(const Batch& batch, const std::vector<int64_t>& columns) {
  Batch result{batch.rows, {}, batch.owner};
  for (const int64_t j : columns) {
    if (j < 0 || j >= int64_t(batch.columns.size())) throw nb::index_error("no such column");
    result.columns.push_back(batch.columns[j]);
  }
  return result;
}

using Found = std::optional<std::pair<int64_t, int64_t>>;

// The first missing value in rows [start, stop), in row-major order, counted from `start`.
Found first_missing(const Batch& batch, int64_t first, int64_t count, int64_t start, int64_t stop) {
  Found found;
  for (int64_t j = 0; j < count; ++j) {
    const Column& c = batch.columns[first + j];
    if (!c.validity) continue;
    const int64_t end = found ? found->first + start : stop;
    for (int64_t i = start; i < end; ++i) {
      const int64_t at = c.offset + i;
      if ((at & 7) == 0 && i + 8 <= end && c.validity[at >> 3] == 0xff) {
        i += 7;
      } else if (!bit(c.validity, at)) {
        found = {i - start, j};
        break;
      }
    }
  }
  return found;
}

// NaN in place of the missing ones of rows [start, start + n) of a column.
template <class T>
void mark_missing(const Column& c, int64_t start, int64_t n, T* to) {
  for (int64_t i = 0; i < n; ++i) {
    const int64_t at = c.offset + start + i;
    if ((at & 7) == 0 && i + 8 <= n && c.validity[at >> 3] == 0xff)
      i += 7;
    else if (!bit(c.validity, at))
      to[i] = std::numeric_limits<T>::quiet_NaN();
  }
}

// Asks for values that are needed soon: a run is too short for the processor to foresee that the next one follows.
inline void prefetch(const Column& c, int64_t start, int64_t n) {
  if (c.kind == Kind::bit || c.stride > 16) return;
  const char* from = c.data + start * c.stride;
  for (int64_t at = 0; at < n * c.stride; at += 64) __builtin_prefetch(from + at, 0, 2);
}

template <class T>
void copy_rows(const Batch& batch, int64_t first, int64_t count, int64_t start, int64_t stop, T* out) {
  // One cache line of each row; the padding keeps the rows of the buffer out of each other's cache sets.
  constexpr int64_t tile_columns = 64 / sizeof(T), tile_rows = 256, width = tile_rows + 64 / sizeof(T);
  alignas(64) T tile[tile_columns * width];
  for (int64_t i = start; i < stop; i += tile_rows) {
    const int64_t n = std::min(tile_rows, stop - i);
    for (int64_t j = 0; j < count; j += tile_columns) {
      const int64_t m = std::min(tile_columns, count - j);
      for (int64_t k = 0; k < m; ++k) {
        const Column& c = batch.columns[first + j + k];
        prefetch(c, i + n, std::min(tile_rows, stop - i - n));
        convert(c, i, n, tile + k * width);
        if (c.validity) mark_missing(c, i, n, tile + k * width);
      }
      transpose(tile, width, m, n, out + (i - start) * count + j, count);
    }
  }
}

template <class T>
using Rows = nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

template <class T>
Found copy_into(const Batch& batch, int64_t first, int64_t start, int64_t stop, Rows<T> out, int64_t out_row) {
  const int64_t count = int64_t(out.shape(1));
  if (start < 0 || stop > batch.rows || start > stop || out_row < 0 || out_row + stop - start > int64_t(out.shape(0)))
    throw nb::index_error("rows out of range");
  if (first < 0 || first + count > int64_t(batch.columns.size())) throw nb::index_error("columns out of range");
  for (int64_t j = 0; j < count; ++j)
    if (batch.columns[first + j].kind == Kind::other) throw nb::type_error("a column does not hold numbers");
  T* to = out.data() + out_row * count;
  nb::gil_scoped_release unlocked;
  copy_rows<T>(batch, first, count, start, stop, to);
  return first_missing(batch, first, count, start, stop);
}

class Stream {
 public:
  explicit Stream(nb::object capsule) : stream_(std::make_unique<Owned<ArrowArrayStream>>()) {
    auto* given = static_cast<ArrowArrayStream*>(PyCapsule_GetPointer(capsule.ptr(), "arrow_array_stream"));
    if (!given) throw nb::python_error();
    if (!given->release) throw nb::value_error("this Arrow stream has been read already");
    stream_->value = *given;  // a move, as the specification requires: the source is marked as released
    given->release = nullptr;
    int code;
    {
      nb::gil_scoped_release unlocked;
      code = stream_->value.get_schema(&stream_->value, &schema_.value);
    }
    if (code) fail(code);
    if (std::strcmp(schema_.value.format, "+s") != 0) throw nb::value_error("an Arrow stream of a table is needed");
  }

  std::vector<std::pair<std::string, std::string>> fields() const {
    std::vector<std::pair<std::string, std::string>> result;
    for (int64_t j = 0; j < schema_.value.n_children; ++j) {
      const ArrowSchema* child = schema_.value.children[j];
      result.emplace_back(child->name ? child->name : "", child->dictionary ? "dictionary" : child->format);
    }
    return result;
  }

  std::optional<Batch> next() {
    if (!stream_) return std::nullopt;
    auto held = std::make_shared<Owned<ArrowArray>>();
    int code;
    {
      nb::gil_scoped_release unlocked;
      code = stream_->value.get_next(&stream_->value, &held->value);
    }
    if (code) fail(code);
    if (!held->value.release) {  // end of stream: release the producer now, not when Python collects this object
      stream_.reset();
      return std::nullopt;
    }
    Batch batch;
    batch.rows = held->value.length;
    for (int64_t j = 0; j < schema_.value.n_children; ++j) batch.columns.push_back(column(held->value, j));
    batch.owner = std::move(held);
    return batch;
  }

  void close() { stream_.reset(); }

 private:
  Column column(const ArrowArray& table, int64_t j) const {
    const ArrowSchema& field = *schema_.value.children[j];
    const ArrowArray& array = *table.children[j];
    const int64_t offset = table.offset + array.offset;
    Column c;
    c.kind = field.dictionary ? Kind::other : kind_of(field.format);
    if (c.kind == Kind::other) return c;
    c.offset = offset;
    c.data = static_cast<const char*>(array.buffers[1]);
    if (c.kind == Kind::decimal) c.scale = decimal_scale(field.format);
    if (c.kind != Kind::bit) {
      c.stride = width_of(c.kind);
      c.data += offset * c.stride;
    }
    if (array.null_count != 0) c.validity = static_cast<const uint8_t*>(array.buffers[0]);
    return c;
  }

  [[noreturn]] void fail(int code) {
    const char* text = stream_->value.get_last_error ? stream_->value.get_last_error(&stream_->value) : nullptr;
    throw std::runtime_error(text && *text ? text : std::strerror(code));
  }

  std::unique_ptr<Owned<ArrowArrayStream>> stream_;
  Owned<ArrowSchema> schema_;
};

using AnyColumn = nb::ndarray<nb::ro, nb::ndim<1>, nb::device::cpu>;

Kind kind_of(nb::dlpack::dtype type) {
  const auto code = nb::dlpack::dtype_code(type.code);
  if (code == nb::dlpack::dtype_code::Bool) return Kind::boolean;
  const bool is_signed = code == nb::dlpack::dtype_code::Int, is_float = code == nb::dlpack::dtype_code::Float;
  if (!is_float && !is_signed && code != nb::dlpack::dtype_code::UInt) return Kind::other;
  switch (type.bits) {
    case 8: return is_float ? Kind::other : is_signed ? Kind::i8 : Kind::u8;
    case 16: return is_float ? Kind::f16 : is_signed ? Kind::i16 : Kind::u16;
    case 32: return is_float ? Kind::f32 : is_signed ? Kind::i32 : Kind::u32;
    case 64: return is_float ? Kind::f64 : is_signed ? Kind::i64 : Kind::u64;
    default: return Kind::other;
  }
}

Batch batch_of(std::vector<AnyColumn> arrays) {
  auto held = std::make_shared<std::vector<AnyColumn>>(std::move(arrays));
  Batch batch;
  batch.rows = held->empty() ? 0 : int64_t((*held)[0].shape(0));
  for (const AnyColumn& a : *held) {
    if (int64_t(a.shape(0)) != batch.rows) throw nb::value_error("columns differ in length");
    Column c;
    c.kind = kind_of(a.dtype());
    c.data = static_cast<const char*>(a.data());
    c.stride = a.stride(0) * int64_t(a.itemsize());
    batch.columns.push_back(c);
  }
  batch.owner = std::move(held);
  return batch;
}

}  // namespace

void register_arrow(nb::module_& m) {
  nb::class_<Batch>(m, "Batch")
      .def_prop_ro("rows", [](const Batch& b) { return b.rows; })
      .def("chosen", &chosen, nb::arg("columns"));
  nb::class_<Stream>(m, "Stream")
      .def(nb::init<nb::object>(), nb::arg("capsule"))
      .def("fields", &Stream::fields)
      .def("next", &Stream::next)
      .def("close", &Stream::close);
  m.def("batch_of", &batch_of, nb::arg("arrays"));
  m.def("copy_into", &copy_into<float>, nb::arg("batch"), nb::arg("first"), nb::arg("start"), nb::arg("stop"),
        nb::arg("out").noconvert(), nb::arg("out_row"));
  m.def("copy_into", &copy_into<double>, nb::arg("batch"), nb::arg("first"), nb::arg("start"), nb::arg("stop"),
        nb::arg("out").noconvert(), nb::arg("out_row"));
}
