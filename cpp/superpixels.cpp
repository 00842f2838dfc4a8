// Colours of pixels as planes of whole numbers, and the assignment of pixels to segments (superpixels.h).
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <vector>

#include "isa.h"

namespace nb = nanobind;

namespace {

template <class T> using Pixels = nb::ndarray<const T, nb::ndim<3>, nb::c_contig, nb::device::cpu>;
using Table = nb::ndarray<const float, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Planes = nb::ndarray<int16_t, nb::ndim<3>, nb::c_contig, nb::device::cpu>;
using ReadPlanes = nb::ndarray<const int16_t, nb::ndim<3>, nb::c_contig, nb::device::cpu>;
using Bounds = nb::ndarray<int16_t, nb::ndim<4>, nb::c_contig, nb::device::cpu>;
using ReadBounds = nb::ndarray<const int16_t, nb::ndim<4>, nb::c_contig, nb::device::cpu>;
using Centres = nb::ndarray<const float, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Labels = nb::ndarray<int, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using ReadLabels = nb::ndarray<const int, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Line = nb::ndarray<double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using ReadLine = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Matrix = nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Sums = nb::ndarray<int64_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

constexpr float unit = 256;  // steps of a plane to one unit of Lab

// The function of CIE Lab: a cube root, or a line near 0. Bits of the exponent divided by 3 are a first guess; two steps of
// Halley's method triple its digits.
inline float lab_root(float t) {
    uint32_t bits;
    std::memcpy(&bits, &t, sizeof bits);
    bits = bits / 3 + 0x2a517d3c;
    float r;
    std::memcpy(&r, &bits, sizeof r);
    for (int step = 0; step < 2; ++step) {
        const float cube = r * r * r;
        r = r * ((cube + t + t) / (cube + cube + t));
    }
    const float line = t * (841.0f / 108.0f) + 4.0f / 29.0f;
    return t > 216.0f / 24389.0f ? r : line;
}

// To the nearest whole number, in a way that loops can be vectorised with.
inline int16_t whole(float x) { return int16_t(int((x + 12582912.0f) - 12582912.0f)); }

constexpr size_t chunk = 256;

// Lab of rows `first` to `last` - 1. `light` has the amount of light of each value. A fourth channel is opacity: colours are
// weighted by it, so that what is hidden does not count, and it is the fourth plane.
template <class T>
void lab_planes(Pixels<T> image, Table light, size_t first, size_t last, Planes out) {
    nb::gil_scoped_release released;
    const size_t height = out.shape(1), stride = out.shape(2), width = image.shape(1), given = image.shape(2);
    const size_t plane = height * stride, planes = out.shape(0);
    const float *table = light.data();
    const float full = 1.0f / float(light.shape(0) - 1);
    float x[chunk], y[chunk], z[chunk], opacity[chunk];
    for (size_t row = first; row < last; ++row)
        for (size_t from = 0; from < width; from += chunk) {
            const size_t n = std::min(chunk, width - from);
            const T *in = image.data() + (row * width + from) * given;
            int16_t *to = out.data() + row * stride + from;
            if (given == 1) {
                for (size_t i = 0; i < n; ++i) y[i] = table[in[i]];
                for (size_t i = 0; i < n; ++i) to[i] = whole(unit * (116.0f * lab_root(y[i]) - 16.0f));
                continue;
            }
            for (size_t i = 0; i < n; ++i) {
                const float r = table[in[i * given]], g = table[in[i * given + 1]], b = table[in[i * given + 2]];
                x[i] = 0.43388735f * r + 0.37622401f * g + 0.18988865f * b;
                y[i] = 0.21263901f * r + 0.71516868f * g + 0.07219232f * b;
                z[i] = 0.01775004f * r + 0.10944762f * g + 0.87280234f * b;
            }
            for (size_t i = 0; i < n; ++i) x[i] = lab_root(x[i]), y[i] = lab_root(y[i]), z[i] = lab_root(z[i]);
            if (planes == 4)
                for (size_t i = 0; i < n; ++i) opacity[i] = float(in[i * given + 3]) * full;
            else
                for (size_t i = 0; i < n; ++i) opacity[i] = 1.0f;
            for (size_t i = 0; i < n; ++i) {
                const float scale = unit * opacity[i];
                to[i] = whole(scale * (116.0f * y[i] - 16.0f));
                to[plane + i] = whole(scale * (500.0f * (x[i] - y[i])));
                to[2 * plane + i] = whole(scale * (200.0f * (y[i] - z[i])));
            }
            if (planes == 4)
                for (size_t i = 0; i < n; ++i) to[3 * plane + i] = whole(unit * 100.0f * opacity[i]);
        }
}

// Repeats the last pixel of each row up to the stride, and finds the least and the largest value in each cell, for the rows of
// cells `first` to `last` - 1.
void cell_bounds(Planes planes, size_t width, size_t first, size_t last, Bounds out) {
    nb::gil_scoped_release released;
    const size_t channels = planes.shape(0), height = planes.shape(1), stride = planes.shape(2);
    const size_t across = out.shape(1);
    for (size_t cy = first; cy < last; ++cy)
        for (size_t c = 0; c < channels; ++c) {
            const size_t top = cy * fw::cell_height, bottom = std::min(top + fw::cell_height, height);
            for (size_t row = top; row < bottom; ++row) {
                int16_t *line = planes.data() + (c * height + row) * stride;
                for (size_t x = width; x < stride; ++x) line[x] = line[width - 1];
            }
            for (size_t cx = 0; cx < across; ++cx) {
                int16_t low[fw::cell_width], high[fw::cell_width];
                std::fill(low, low + fw::cell_width, INT16_MAX), std::fill(high, high + fw::cell_width, INT16_MIN);
                for (size_t row = top; row < bottom; ++row) {
                    const int16_t *line = planes.data() + (c * height + row) * stride + cx * fw::cell_width;
                    for (int l = 0; l < fw::cell_width; ++l) low[l] = std::min(low[l], line[l]), high[l] = std::max(high[l], line[l]);
                }
                int16_t *ends = out.data() + ((cy * across + cx) * channels + c) * 2;
                ends[0] = *std::min_element(low, low + fw::cell_width);
                ends[1] = *std::max_element(high, high + fw::cell_width);
            }
        }
}

int64_t assign_segments(ReadPlanes planes, ReadBounds bounds, size_t width, Centres centres, float weight, float radius,
                        size_t tile_rows, size_t tile_columns, size_t first, size_t last, std::optional<Labels> labels,
                        std::optional<Sums> sums) {
    nb::gil_scoped_release released;
    fw::Segments s{};
    s.planes = planes.data(), s.bounds = bounds.data();
    s.channels = planes.shape(0), s.height = planes.shape(1), s.stride = planes.shape(2), s.width = width;
    s.centres = centres.data(), s.n = centres.shape(0), s.weight = weight, s.radius = radius;
    s.tile_rows = tile_rows, s.tile_columns = tile_columns;
    s.labels = labels ? labels->data() : nullptr, s.sums = sums ? sums->data() : nullptr;
    s.bucket = std::max(4.0f, radius / 4);
    s.buckets_down = size_t(float(s.height) / s.bucket) + 1, s.buckets_across = size_t(float(width) / s.bucket) + 1;
    const size_t d = s.channels + 2, buckets = s.buckets_down * s.buckets_across;
    std::vector<int> start(buckets + 1), items(s.n), of(s.n);
    for (size_t k = 0; k < s.n; ++k) {
        const auto number = [&](float at, size_t most) { return std::min(size_t(std::max(at, 0.0f) / s.bucket), most - 1); };
        const float *centre = s.centres + k * d;
        of[k] = int(number(centre[d - 2], s.buckets_down) * s.buckets_across + number(centre[d - 1], s.buckets_across));
        ++start[size_t(of[k]) + 1];
    }
    for (size_t b = 0; b < buckets; ++b) start[b + 1] += start[b];
    std::vector<int> next(start.begin(), start.end() - 1);
    for (size_t k = 0; k < s.n; ++k) items[size_t(next[size_t(of[k])]++)] = int(k);
    s.bucket_start = start.data(), s.bucket_items = items.data();
    const size_t room = (s.n + 15) / 16 * 16;
    const size_t bytes = (room * (2 * d + fw::cell_width + fw::cell_height) + 4 * d) * sizeof(float);
    const int64_t compared = fw::active_kernels().assign_segments(s, first, last, fw::scratch(bytes));
    fw::trim_scratch();
    return compared;
}

// Calls `run(row, from, to, label)` for each run of equal labels in rows `first` to `last` - 1.
template <class F> void each_run(ReadLabels labels, size_t first, size_t last, F run) {
    const size_t width = labels.shape(1);
    for (size_t row = first; row < last; ++row) {
        const int *line = labels.data() + row * width;
        for (size_t from = 0, to; from < width; from = to) {
            for (to = from + 1; to < width && line[to] == line[from];) ++to;
            run(row, from, to, line[from]);
        }
    }
}

// The sums of planes, rows, columns and pixels of each segment, as in `assign_segments`, for labels that are known; returns the sum
// of the squares of all values of the planes.
int64_t plane_sums(ReadPlanes planes, ReadLabels labels, size_t first, size_t last, Sums out) {
    nb::gil_scoped_release released;
    const size_t channels = planes.shape(0), height = planes.shape(1), stride = planes.shape(2), d = channels + 3;
    int64_t squares = 0;
    each_run(labels, first, last, [&](size_t row, size_t from, size_t to, int label) {
        int64_t *s = out.data() + size_t(label) * d;
        const auto m = int64_t(to - from);
        for (size_t c = 0; c < channels; ++c) {
            const int16_t *line = planes.data() + (c * height + row) * stride;
            int64_t sum = 0, square = 0;
            for (size_t x = from; x < to; ++x) sum += line[x], square += int(line[x]) * int(line[x]);
            s[c] += sum, squares += square;
        }
        s[d - 3] += m * int64_t(row), s[d - 2] += m * int64_t(from + to - 1) / 2, s[d - 1] += m;
    });
    return squares;
}

// The sums over each segment of the pixels minus `pivot`, and the sums of their squares over all. `out` begins with segment `base`.
template <class T>
void pixel_sums(Pixels<T> image, ReadLabels labels, ReadLine pivot, size_t first, size_t last, int base, Matrix out, Line squares) {
    nb::gil_scoped_release released;
    const size_t width = image.shape(1), channels = image.shape(2);
    std::vector<double> sum(channels), square(channels);
    each_run(labels, first, last, [&](size_t row, size_t from, size_t to, int label) {
        std::fill(sum.begin(), sum.end(), 0.0), std::fill(square.begin(), square.end(), 0.0);
        const T *in = image.data() + (row * width + from) * channels;
        for (size_t x = from; x < to; ++x, in += channels)
            for (size_t c = 0; c < channels; ++c) {
                const double value = double(in[c]) - pivot.data()[c];
                sum[c] += value, square[c] += value * value;
            }
        double *s = out.data() + size_t(label - base) * channels;
        for (size_t c = 0; c < channels; ++c) s[c] += sum[c], squares.data()[c] += square[c];
    });
}

template <class T> void register_pixel_sums(nb::module_ &m) {
    m.def("pixel_sums", &pixel_sums<T>, nb::arg("image").noconvert(), nb::arg("labels").noconvert(), nb::arg("pivot").noconvert(),
          nb::arg("first"), nb::arg("last"), nb::arg("base"), nb::arg("out").noconvert(), nb::arg("squares").noconvert());
}

}  // namespace

void register_superpixels(nb::module_ &m) {
    m.def("lab_planes", &lab_planes<uint8_t>, nb::arg("image").noconvert(), nb::arg("light").noconvert(), nb::arg("first"),
          nb::arg("last"), nb::arg("out").noconvert());
    m.def("lab_planes", &lab_planes<uint16_t>, nb::arg("image").noconvert(), nb::arg("light").noconvert(), nb::arg("first"),
          nb::arg("last"), nb::arg("out").noconvert());
    m.def("cell_bounds", &cell_bounds, nb::arg("planes").noconvert(), nb::arg("width"), nb::arg("first"), nb::arg("last"),
          nb::arg("out").noconvert());
    m.def("assign_segments", &assign_segments, nb::arg("planes").noconvert(), nb::arg("bounds").noconvert(), nb::arg("width"),
          nb::arg("centres").noconvert(), nb::arg("weight"), nb::arg("radius"), nb::arg("tile_rows"), nb::arg("tile_columns"),
          nb::arg("first"), nb::arg("last"), nb::arg("labels").noconvert().none(), nb::arg("sums").noconvert().none());
    m.def("plane_sums", &plane_sums, nb::arg("planes").noconvert(), nb::arg("labels").noconvert(), nb::arg("first"),
          nb::arg("last"), nb::arg("out").noconvert());
    register_pixel_sums<uint8_t>(m);
    register_pixel_sums<uint16_t>(m);
    register_pixel_sums<float>(m);
    register_pixel_sums<double>(m);
}
