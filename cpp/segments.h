// What the assignment of pixels to segments (superpixels.h) is given.
#pragma once

#include <cstddef>
#include <cstdint>

namespace fw {

constexpr int cell_width = 16, cell_height = 8;  // pixels: one decision which segments can win there at all

struct Segments {
    const int16_t *planes;  // channels x height x stride; the pixels from width to stride repeat the last one
    const int16_t *bounds;  // cells down x cells across x channels x 2: the least and the largest value in each cell
    size_t channels, height, width, stride;
    const float *centres;  // n x (channels + 2): colour, row, column
    size_t n;
    float weight, radius;  // of squared distances in pixels; how far from its centre a segment may reach
    size_t tile_rows, tile_columns;  // in cells: segments that reach a tile are candidates in all of it
    const int *bucket_start, *bucket_items;  // centres by squares of `bucket` pixels, row by row
    size_t buckets_down, buckets_across;
    float bucket;
    int *labels;    // height x width, or null
    int64_t *sums;  // n x (channels + 3): colour, row, column, number of pixels
};

}  // namespace fw
