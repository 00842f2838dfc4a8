// Shapes of segments: smooth outlines, connected parts, sizes and perimeters.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace nb = nanobind;

namespace {

using ReadPlanes = nb::ndarray<const int16_t, nb::ndim<3>, nb::c_contig, nb::device::cpu>;
using Centres = nb::ndarray<const float, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Labels = nb::ndarray<int, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using ReadLabels = nb::ndarray<const int, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Stamps = nb::ndarray<uint8_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Counts = nb::ndarray<int64_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

// Gives each pixel on an outline to the segment among its neighbours' with the least distance plus `price` for each neighbour in
// another one (`diagonal` of it for diagonal ones); with `whole` unless its own segment would fall apart or vanish. Done for the
// pixels of one of four phases: those of the same phase are not neighbours, so that their order does not matter. Visits are numbered
// from 0; `stamps` has for each row and `word` pixels the last visit that changed anything near: what has not changed since the
// last visit of the same phase need not be looked at again. Returns how many changed.
int64_t smooth_segments(Labels labels, ReadPlanes planes, Centres centres, float weight, float price, bool whole, int phase,
                        int visit, Stamps stamps, size_t first, size_t last) {
    constexpr ptrdiff_t word = 8;
    constexpr float diagonal = 0.7f;  // outlines in all directions cost about the same by length
    nb::gil_scoped_release released;
    const ptrdiff_t height = ptrdiff_t(labels.shape(0)), width = ptrdiff_t(labels.shape(1));
    const size_t channels = planes.shape(0), stride = planes.shape(2), plane = planes.shape(1) * stride, d = channels + 2;
    int *const all = labels.data();
    int64_t changed = 0;
    const ptrdiff_t words = ptrdiff_t(stamps.shape(1));
    for (ptrdiff_t y = ptrdiff_t(first) + ((ptrdiff_t(first) & 1) != (phase >> 1)); y < ptrdiff_t(last); y += 2)
        for (ptrdiff_t x = phase & 1; x < width; x += 2) {
            if (visit >= 4 && stamps.data()[y * words + x / word] + 4 <= visit) {
                x += word - 2;
                continue;
            }
            int *here = all + y * width + x;
            const int own = *here;
            const bool up = y > 0, down = y + 1 < height, left = x > 0, right = x + 1 < width;
            if ((!up || here[-width] == own) && (!down || here[width] == own) && (!left || here[-1] == own) &&
                (!right || here[1] == own))
                continue;
            // Around the pixel, its segment must be in one piece: the sides that belong to it, joined by the corners between.
            const bool ring[8] = {up && here[-width] == own,  up && right && here[-width + 1] == own,
                                  right && here[1] == own,    down && right && here[width + 1] == own,
                                  down && here[width] == own, down && left && here[width - 1] == own,
                                  left && here[-1] == own,    up && left && here[-width - 1] == own};
            int pieces = 0;
            for (int i = 0; i < 8; i += 2) pieces += ring[i] && !(ring[i + 1] && ring[(i + 2) & 7]);
            if (whole && pieces != 1) continue;
            int near[8];
            float share[8];
            int n = 0;
            const auto add = [&](bool is, ptrdiff_t step, float much) {
                if (!is) return;
                near[n] = here[step], share[n++] = much;
            };
            add(up, -width, 1), add(down, width, 1), add(left, -1, 1), add(right, 1, 1);
            add(up && left, -width - 1, diagonal), add(up && right, -width + 1, diagonal);
            add(down && left, width - 1, diagonal), add(down && right, width + 1, diagonal);
            const auto cost = [&](int label) {
                const float *centre = centres.data() + size_t(label) * d;
                const float dy = float(y) - centre[d - 2], dx = float(x) - centre[d - 1];
                float sum = weight * (dy * dy + dx * dx);
                for (size_t c = 0; c < channels; ++c) {
                    const float apart = float(planes.data()[c * plane + size_t(y) * stride + size_t(x)]) - centre[c];
                    sum += apart * apart;
                }
                float others = 0;
                for (int i = 0; i < n; ++i) others += near[i] == label ? 0.0f : share[i];
                return sum + price * others;
            };
            int best = own;
            float least = cost(own);
            for (int i = 0; i < 4 && i < n; ++i) {
                bool seen = near[i] == own;
                for (int j = 0; j < i; ++j) seen |= near[j] == near[i];
                if (seen || share[i] < 1) continue;
                const float found = cost(near[i]);
                if (found < least || (found == least && near[i] < best)) least = found, best = near[i];
            }
            if (best == own) continue;
            ++changed;
            *here = best;
            for (ptrdiff_t row = y - up; row <= y + down; ++row)
                for (ptrdiff_t w = (x - left) / word; w <= (x + right) / word; ++w) stamps.data()[row * words + w] = uint8_t(visit);
        }
    return changed;
}

// ---------------------------------------------------------------- connected parts

// Runs of equal labels in rows, joined where they touch.
struct Runs {
    std::vector<int> start, label, parent;  // in reading order; start is the column
    std::vector<size_t> row;                // the first run of each row, and the end

    int root(int i) {
        while (parent[size_t(i)] != i) i = parent[size_t(i)] = parent[size_t(parent[size_t(i)])];
        return i;
    }
    void join(int a, int b) {
        a = root(a), b = root(b);
        parent[size_t(std::max(a, b))] = std::min(a, b);  // the root is the first run in reading order
    }
    int end(size_t i, size_t r, int width) const { return i + 1 < row[r + 1] ? start[i + 1] : width; }

    // Calls `touch(upper, lower, length)` for the runs of row `r` - 1 that touch those of row `r`.
    template <class F> void touching(size_t r, int width, F touch) const {
        size_t a = row[r - 1], b = row[r];
        while (a < row[r] && b < row[r + 1]) {
            const int end_a = end(a, r - 1, width), end_b = end(b, r, width);
            touch(int(a), int(b), std::min(end_a, end_b) - std::max(start[a], start[b]));
            if (end_a <= end_b) ++a;
            if (end_b <= end_a) ++b;
        }
    }
};

// One round of `connect_segments`: parts larger than a guess, which is rarely too small, join no other.
int connect_once(Labels labels, ReadPlanes planes, int64_t least, int64_t most) {
    const size_t height = labels.shape(0), w = labels.shape(1);
    const int width = int(w);
    const size_t channels = planes.shape(0), stride = planes.shape(2), plane = planes.shape(1) * stride;
    int *const all = labels.data();
    Runs runs;
    for (size_t y = 0; y < height; ++y) {
        runs.row.push_back(runs.start.size());
        const int *line = all + y * w;
        for (int x = 0; x < width; ++x)
            if (x == 0 || line[x] != line[x - 1]) runs.start.push_back(x), runs.label.push_back(line[x]);
    }
    const size_t n_runs = runs.start.size();
    runs.row.push_back(n_runs);
    runs.parent.resize(n_runs);
    for (size_t i = 0; i < n_runs; ++i) runs.parent[i] = int(i);
    for (size_t y = 1; y < height; ++y)
        runs.touching(y, width, [&](int a, int b, int) {
            if (runs.label[size_t(a)] == runs.label[size_t(b)]) runs.join(a, b);
        });
    // Parts numbered by their first run.
    std::vector<int> part(n_runs);
    int n_parts = 0;
    for (size_t i = 0; i < n_runs; ++i) {
        const int root = runs.root(int(i));
        part[i] = root == int(i) ? n_parts++ : part[size_t(root)];
    }
    std::vector<int64_t> size(size_t(n_parts), 0);
    for (size_t y = 0; y < height; ++y)
        for (size_t i = runs.row[y]; i < runs.row[y + 1]; ++i) size[size_t(part[i])] += runs.end(i, y, width) - runs.start[i];
    // No part as large as `limit` joins another. Those that have to are the smallest; what they make together may have to, too.
    int64_t limit = least;
    if (n_parts > most) {
        std::vector<int64_t> sorted(size);
        const size_t last = size_t(n_parts - most);
        std::nth_element(sorted.begin(), sorted.begin() + ptrdiff_t(last), sorted.end());
        limit = std::max(least, 2 * sorted[last] + 1);
    }
    // Colours, and who touches whom, of small parts and their neighbours only.
    std::vector<char> wanted(size_t(n_parts), 0);
    std::vector<size_t> first(size_t(n_parts) + 2, 0);  // of each part, in `touches`; shifted by one while they are filled
    struct Touch {
        int to, length;
    };
    std::vector<Touch> touches;
    const auto each_touch = [&](auto note) {
        const auto both = [&](int a, int b, int length) {
            if (a == b) return;
            const bool small_a = size[size_t(a)] < limit, small_b = size[size_t(b)] < limit;
            if (small_a) note(a, b, length);
            if (small_b) note(b, a, length);
        };
        for (size_t y = 0; y < height; ++y) {
            for (size_t i = runs.row[y] + 1; i < runs.row[y + 1]; ++i) both(part[i - 1], part[i], 1);
            if (y) runs.touching(y, width, [&](int a, int b, int length) { both(part[size_t(a)], part[size_t(b)], length); });
        }
    };
    each_touch([&](int from, int to, int) { ++first[size_t(from) + 2], wanted[size_t(from)] = wanted[size_t(to)] = 1; });
    for (size_t i = 0; i < size_t(n_parts); ++i) first[i + 2] += first[i + 1];
    touches.resize(first[size_t(n_parts) + 1]);
    each_touch([&](int from, int to, int length) { touches[first[size_t(from) + 1]++] = {to, length}; });
    std::vector<int64_t> colour(size_t(n_parts) * channels, 0);
    for (size_t y = 0; y < height && !touches.empty(); ++y)
        for (size_t i = runs.row[y]; i < runs.row[y + 1]; ++i) {
            if (!wanted[size_t(part[i])]) continue;
            for (size_t c = 0; c < channels; ++c) {
                const int16_t *line = planes.data() + c * plane + y * stride;
                int64_t sum = 0;
                for (int x = runs.start[i]; x < runs.end(i, y, width); ++x) sum += line[x];
                colour[size_t(part[i]) * channels + c] += sum;
            }
        }
    // Merging: `owner` is a forest, `next` chains the parts that were merged into a small one.
    std::vector<int> owner(static_cast<size_t>(n_parts)), next(size_t(n_parts), -1), tail(static_cast<size_t>(n_parts));
    for (int i = 0; i < n_parts; ++i) owner[size_t(i)] = tail[size_t(i)] = i;
    const auto find = [&](int i) {
        while (owner[size_t(i)] != i) i = owner[size_t(i)] = owner[size_t(owner[size_t(i)])];
        return i;
    };
    // Parts by size, as chains. One that has grown meanwhile is moved when its turn comes.
    std::vector<int> by_size(size_t(limit), -1), after(static_cast<size_t>(n_parts));
    const auto enqueue = [&](int i) { after[size_t(i)] = by_size[size_t(size[size_t(i)])], by_size[size_t(size[size_t(i)])] = i; };
    for (int i = n_parts; i-- > 0;)
        if (size[size_t(i)] < limit) enqueue(i);
    std::vector<std::pair<int, int64_t>> found;
    int64_t count = n_parts;
    for (int64_t was = 1; was < limit;) {
        const int i = by_size[size_t(was)];
        if (i < 0) {
            ++was;
            continue;
        }
        by_size[size_t(was)] = after[size_t(i)];
        if (find(i) != i) continue;
        if (size[size_t(i)] != was) {
            if (size[size_t(i)] < limit) enqueue(i);
            continue;
        }
        if (was >= least && count <= most) break;
        found.clear();
        for (int member = i; member >= 0; member = next[size_t(member)])
            for (size_t t = first[size_t(member)]; t < first[size_t(member) + 1]; ++t) {
                const int other = find(touches[t].to);
                if (other != i) found.push_back({other, touches[t].length});
            }
        if (found.empty()) continue;  // the whole picture
        std::sort(found.begin(), found.end());
        int best = -1;
        double nearest = 0;
        int64_t outline = 0;
        for (const auto &[other, length] : found) outline += length;
        for (size_t from = 0, to; from < found.size(); from = to) {
            int64_t common = 0;
            for (to = from; to < found.size() && found[to].first == found[from].first; ++to) common += found[to].second;
            const int other = found[from].first;
            double apart = 0;
            for (size_t c = 0; c < channels; ++c) {
                const double gap = double(colour[size_t(i) * channels + c]) / double(size[size_t(i)]) -
                                   double(colour[size_t(other) * channels + c]) / double(size[size_t(other)]);
                apart += gap * gap;
            }
            const double share = double(common) / double(outline);
            const double badness = (apart + 1.0) / share;
            if (best < 0 || badness < nearest) best = other, nearest = badness;
        }
        owner[size_t(i)] = best;
        --count;
        for (size_t c = 0; c < channels; ++c) colour[size_t(best) * channels + c] += colour[size_t(i) * channels + c];
        if (size[size_t(best)] < limit) {
            next[size_t(tail[size_t(best)])] = i, tail[size_t(best)] = tail[size_t(i)];
        }
        size[size_t(best)] += size[size_t(i)];
    }
    std::vector<int> number(size_t(n_parts), -1);
    int n = 0;
    for (size_t y = 0; y < height; ++y)
        for (size_t i = runs.row[y]; i < runs.row[y + 1]; ++i) {
            int &named = number[size_t(find(part[i]))];
            if (named < 0) named = n++;
            std::fill(all + y * w + size_t(runs.start[i]), all + y * w + size_t(runs.end(i, y, width)), named);
        }
    return n;
}

// Makes every segment connected, by sides of pixels, in place. Connected parts smaller than `least`, and then the smallest until no
// more than `most` are left, join the neighbour with the least squared difference of mean colours divided by its share of the
// part's outline. Segments are numbered in reading order; returns their number.
int connect_segments(Labels labels, ReadPlanes planes, int64_t least, int64_t most) {
    nb::gil_scoped_release released;
    int n = connect_once(labels, planes, least, most);
    while (n > most) n = connect_once(labels, planes, least, most);
    return n;
}

// Of the rows `first` to `last` - 1, for each segment: pixels; sides of pixels to other segments or to the edge of the picture;
// sums of rows and of columns; first and last row and column. Added to, or extends, what is in `out` (n x 8).
void segment_shapes(ReadLabels labels, size_t first, size_t last, Counts out) {
    nb::gil_scoped_release released;
    const size_t height = labels.shape(0), width = labels.shape(1);
    for (size_t y = first; y < last; ++y) {
        const int *line = labels.data() + y * width;
        size_t from = 0;
        while (from < width) {
            const int label = line[from];
            size_t to = from + 1;
            while (to < width && line[to] == label) ++to;
            int64_t *s = out.data() + size_t(label) * 8;
            const auto m = int64_t(to - from), a = int64_t(from), b = int64_t(to), row = int64_t(y);
            int64_t sides = 2;
            if (y == 0) sides += m;
            else
                for (size_t x = from; x < to; ++x) sides += line[x - width] != label;
            if (y + 1 == height) sides += m;
            else
                for (size_t x = from; x < to; ++x) sides += line[x + width] != label;
            s[0] += m, s[1] += sides, s[2] += m * row, s[3] += (a + b - 1) * m / 2;
            s[4] = std::min(s[4], row), s[5] = std::max(s[5], row);
            s[6] = std::min(s[6], a), s[7] = std::max(s[7], b - 1);
            from = to;
        }
    }
}

}  // namespace

void register_segment_shapes(nb::module_ &m) {
    m.def("smooth_segments", &smooth_segments, nb::arg("labels").noconvert(), nb::arg("planes").noconvert(),
          nb::arg("centres").noconvert(), nb::arg("weight"), nb::arg("price"), nb::arg("whole"), nb::arg("phase"),
          nb::arg("visit"), nb::arg("stamps").noconvert(), nb::arg("first"), nb::arg("last"));
    m.def("connect_segments", &connect_segments, nb::arg("labels").noconvert(), nb::arg("planes").noconvert(), nb::arg("least"),
          nb::arg("most"));
    m.def("segment_shapes", &segment_shapes, nb::arg("labels").noconvert(), nb::arg("first"), nb::arg("last"),
          nb::arg("out").noconvert());
}
