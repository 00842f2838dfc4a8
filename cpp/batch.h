// Some rows of a table, by column: what readers of columns give, and what is copied into row-major blocks.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

namespace fw {

enum class Kind { i8, i16, i32, i64, u8, u16, u32, u64, f16, f32, f64, bit, boolean, decimal, other };

struct Column {
  Kind kind = Kind::other;
  const char* data = nullptr;         // the first value (bit columns: the first byte of the bitmap)
  int64_t stride = 0;                 // bytes from one value to the next
  int64_t offset = 0;                 // bitmaps only: where this column starts
  const uint8_t* validity = nullptr;  // null if nothing is missing
  double scale = 1.0;                 // decimals only: the power of ten to divide by
};

struct Batch {
  int64_t rows = 0;
  std::vector<Column> columns;
  std::shared_ptr<void> owner;  // keeps the memory of the columns alive
};

}  // namespace fw
