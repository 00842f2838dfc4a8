// Packs Gaussian components for the kernels of the instruction set in use.
#pragma once

#include <vector>

#include "isa.h"

namespace fw {

inline std::vector<unsigned char> even_widths(size_t count) {
    const size_t most = active_kernels().panel_targets, parts = (count + most - 1) / most;
    std::vector<unsigned char> widths(parts);
    for (size_t p = 0; p < parts; ++p) widths[p] = (unsigned char)(count / parts + (p < count % parts));
    return widths;
}

// Owns the memory that a Components points to.
template <class T> struct Storage {
    std::vector<double> pivot, rounded, log_weights;
    std::vector<T> means, factors, starts, near, scales;
    std::vector<unsigned char> widths, group_widths;
    Components<T> view{};

    // Packs an upper triangle in the order in which density.h reads it.
    void pack_triangle(const double *u, size_t d, T *to) const {
        size_t before = 0;
        for (const size_t width : widths) {
            for (size_t f = 0; f < before; ++f)
                for (size_t i = 0; i < width; ++i) *to++ = T(u[f * d + before + i]);
            for (size_t t = 0; t < width; ++t)
                for (size_t i = t; i < width; ++i) *to++ = T(u[(before + t) * d + before + i]);
            before += width;
        }
    }

    // Packs value(j, f) for all components j and features f, by groups of components.
    template <class F> void pack_groups(size_t k, size_t d, std::vector<T> &out, F value) const {
        out.resize(k * d);
        size_t first = 0;
        for (const size_t width : group_widths) {
            for (size_t f = 0; f < d; ++f)
                for (size_t i = 0; i < width; ++i) out[first * d + f * width + i] = T(value(first + i, f));
            first += width;
        }
    }

    void fill(Shape shape, Squares squares, const double *weights, const double *mu, const double *whiten,
              const double *middle, size_t k, size_t d) {
        const size_t columns = (d + 15) / 16 * 16, size = d * (d + 1) / 2;
        pivot.resize(d);
        for (size_t f = 0; f < d; ++f) pivot[f] = double(T(middle[f]));
        log_weights.assign(weights, weights + k);
        means.assign(k * columns, T(0));
        rounded.resize(k * d);
        for (size_t j = 0; j < k; ++j)
            for (size_t f = 0; f < d; ++f) {
                const double mean = mu[j * d + f] - pivot[f];
                means[j * columns + f] = T(mean);
                rounded[j * d + f] = double(T(mean)) - mean;
            }
        widths = even_widths(d);
        group_widths = even_widths(k);
        if (shape == Shape::full) {
            factors.resize(k * size);
            for (size_t j = 0; j < k; ++j) pack_triangle(whiten + j * d * d, d, factors.data() + j * size);
            if (sizeof(T) < sizeof(double)) {
                starts.resize(k * d);
                for (size_t j = 0; j < k; ++j)
                    for (size_t g = 0; g < d; ++g) {
                        double sum = 0;
                        for (size_t f = 0; f <= g; ++f) sum += whiten[(j * d + f) * d + g] * rounded[j * d + f];
                        starts[j * d + g] = T(sum);
                    }
            }
        } else if (shape == Shape::tied) {
            factors.resize(size);
            pack_triangle(whiten, d, factors.data());
            pack_groups(k, d, near, [&](size_t j, size_t g) {
                double sum = 0;
                for (size_t f = 0; f <= g; ++f) sum += double(T(whiten[f * d + g])) * (mu[j * d + f] - pivot[f]);
                return sum;
            });
        } else {
            pack_groups(k, d, near, [&](size_t j, size_t f) { return mu[j * d + f] - pivot[f]; });
            if (shape == Shape::diag)
                pack_groups(k, d, scales, [&](size_t j, size_t f) { return whiten[j * d + f]; });
            else
                scales.assign(whiten, whiten + k);
        }
        view = {k, d, shape, squares, columns, pivot.data(), means.data(), rounded.data(), log_weights.data(), factors.data(),
                starts.empty() ? nullptr : starts.data(), near.data(), scales.data(), widths.data(), widths.size(),
                group_widths.data(), group_widths.size(), 2.0 * double(d) + 64.0};
    }
};

}  // namespace fw
