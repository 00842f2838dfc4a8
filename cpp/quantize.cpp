// Error diffusion (Floyd and Steinberg 1976) to the colours of a palette, in serpentine order: what a pixel loses by taking a
// colour of the palette is added to neighbours that have not had their turn. Each pixel depends on the one before it, so this
// cannot be vectorised; the nearest colour is found among the few that can be nearest in a cell of colours, exactly.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace nb = nanobind;

namespace {

template <class T>
using Array = nb::ndarray<T, nb::c_contig, nb::device::cpu>;

// The nearest colour of a palette for values from 0 to 255; ties go to the lowest number.
template <int C>
class Nearest {
   public:
    Nearest(const float *palette, int k) : palette_(palette), k_(k), cells_(size_t(1) << (bits * C)) {}

    int operator()(const float *at) {
        size_t cell = 0;
        for (int j = 0; j < C; ++j) cell = cell << bits | size_t(int(at[j]) >> (8 - bits));
        std::vector<uint16_t> &some = cells_[cell];
        if (some.empty()) fill(some, at);
        int best = some[0];
        float least = distance(best, at);
        for (size_t i = 1; i < some.size(); ++i) {
            const float d = distance(some[i], at);
            if (d < least) least = d, best = some[i];
        }
        return best;
    }

   private:
    static constexpr int bits = C == 1 ? 8 : C == 3 ? 5 : 4;
    static constexpr float width = 256 >> bits;

    float distance(int i, const float *at) const {
        float sum = 0;
        for (int j = 0; j < C; ++j) {
            const float d = palette_[size_t(i) * C + j] - at[j];
            sum += d * d;
        }
        return sum;
    }

    // All colours that are nearest to some point of the cell: no farther from its middle than the nearest one and twice the
    // half diagonal; a little more, for rounding.
    void fill(std::vector<uint16_t> &some, const float *at) {
        float middle[C];
        for (int j = 0; j < C; ++j) middle[j] = (std::floor(at[j] / width) + 0.5f) * width;
        float least = distance(0, middle);
        for (int i = 1; i < k_; ++i) least = std::min(least, distance(i, middle));
        const float reach = std::sqrt(least) + width * std::sqrt(float(C)) + 0.01f;
        for (int i = 0; i < k_; ++i)
            if (distance(i, middle) <= reach * reach) some.push_back(uint16_t(i));
    }

    const float *palette_;
    int k_;
    std::vector<std::vector<uint16_t>> cells_;
};

template <int C, class P, class L>
void diffuse(const P *pixels, size_t height, size_t width, const float *palette, int k, float unit, L *labels) {
    Nearest<C> nearest(palette, k);
    // Errors of this row and the next, with one pixel more at each end.
    std::vector<float> here((width + 2) * C), below((width + 2) * C);
    for (size_t y = 0; y < height; ++y) {
        std::fill(below.begin(), below.end(), 0.0f);
        const bool back = y & 1;
        const ptrdiff_t ahead = back ? -C : C;
        for (size_t i = 0; i < width; ++i) {
            const size_t x = back ? width - 1 - i : i;
            float *error = &here[(x + 1) * C], *under = &below[(x + 1) * C];
            const P *given = pixels + (y * width + x) * C;
            float wanted[C];
            // Cut to what can be shown: where no colour of the palette lies beyond, errors would grow without end.
            for (int j = 0; j < C; ++j) wanted[j] = std::min(255.0f, std::max(0.0f, float(given[j]) * unit + error[j]));
            const int label = nearest(wanted);
            labels[y * width + x] = L(label);
            for (int j = 0; j < C; ++j) {
                const float lost = (wanted[j] - palette[size_t(label) * C + j]) * 0.0625f;
                error[ahead + j] += 7 * lost;
                under[-ahead + j] += 3 * lost;
                under[j] += 5 * lost;
                under[ahead + j] += lost;
            }
        }
        std::swap(here, below);
    }
}

template <class P, class L>
void dither(Array<const P> pixels, Array<const float> palette, float unit, Array<L> labels) {
    if (pixels.ndim() != 3 || palette.ndim() != 2 || labels.ndim() != 2) throw nb::value_error("dither: wrong dimensions");
    const size_t height = pixels.shape(0), width = pixels.shape(1), channels = pixels.shape(2), k = palette.shape(0);
    if (palette.shape(1) != channels || labels.shape(0) != height || labels.shape(1) != width)
        throw nb::value_error("dither: arrays do not fit");
    if (k == 0 || k > size_t(L(-1)) + 1) throw nb::value_error("dither: number of colours");
    const P *from = pixels.data();
    const float *colours = palette.data();
    L *to = labels.data();
    if (channels != 1 && channels != 3 && channels != 4) throw nb::value_error("dither: 1, 3 or 4 channels");
    nb::gil_scoped_release released;
    if (channels == 1) diffuse<1>(from, height, width, colours, int(k), unit, to);
    if (channels == 3) diffuse<3>(from, height, width, colours, int(k), unit, to);
    if (channels == 4) diffuse<4>(from, height, width, colours, int(k), unit, to);
}

template <class P, class L>
void add(nb::module_ &m) {
    m.def("dither", &dither<P, L>, nb::arg("pixels").noconvert(), nb::arg("palette").noconvert(), nb::arg("unit"),
          nb::arg("labels").noconvert());
}

}  // namespace

void register_quantize(nb::module_ &m) {
    add<uint8_t, uint8_t>(m);
    add<uint8_t, uint16_t>(m);
    add<uint16_t, uint8_t>(m);
    add<uint16_t, uint16_t>(m);
}
