// Pixels to the nearest segment in colour and position, and the sums of what each segment gets.
//
// Candidates are found in two steps, for a tile and for each of its cells. In a box of colours and positions, one segment is
// never nearer than another if the difference of their squared distances, which is linear, has one sign at the worst corner of
// the box. Allowing for rounding, that never changes the answer. Products are rounded before they are added, so that every
// instruction set gives the same bits; sums are whole numbers.

typedef Vec<float> Light;
typedef Vec<int> Places;

// Some segments, coordinate by coordinate: `at[c * stride + i]` for the i-th. Beyond `count`, up to a whole number of vectors, the
// first is repeated.
struct Some {
    float *at;
    int *number;
    size_t stride, count;

    void pad() const {
        for (size_t i = count; i < round_up(count, lanes<float>); ++i) number[i] = number[0];
    }
    void fetch(const Segments &s) const {
        const size_t d = s.channels + 2;
        for (size_t i = 0; i < round_up(count, lanes<float>); ++i)
            for (size_t c = 0; c < d; ++c) at[c * stride + i] = s.centres[size_t(number[i]) * d + c];
    }
};

// Places of those that may be nearest somewhere in the box from `low` to `high` (colour, row, column); returns their number.
template <int fixed> inline size_t prune(const Segments &s, const float *low, const float *high, const Some &some, int *kept) {
    constexpr size_t L = lanes<float>;
    const size_t channels = fixed ? size_t(fixed) : s.channels, d = channels + 2;
    // The nearest to the middle of the box.
    Light least_found = broadcast(__builtin_inff());
    Places place = {};
    for (size_t i = 0; i < some.count; i += L) {
        Light colour = {}, along = {};
        for (size_t c = 0; c < d; ++c) {
            const Light away = load<Light>(some.at + c * some.stride + i) - 0.5f * (low[c] + high[c]);
            (c < channels ? colour : along) += away * away;
        }
        colour += s.weight * along;
        const Places nearer = colour < least_found;
        least_found = nearer ? colour : least_found;
        place = nearer ? (int(i / L) - Places{}) : place;
    }
    size_t best = 0;
    float least_one = __builtin_inff();
    for (size_t l = 0; l < L; ++l)
        if (least_found[l] < least_one) least_one = least_found[l], best = size_t(place[l]) * L + l;
    if (best >= some.count) best = 0;  // a copy of the first
    // Rounding errors are relative to the largest distance from it in the box.
    float colour = 0, along = 0;
    for (size_t c = 0; c < d; ++c) {
        const float centre = some.at[c * some.stride + best];
        const float left = centre - low[c], right = high[c] - centre, away = left > right ? left : right;
        (c < channels ? colour : along) += away * away;
    }
    const float error = 4e-6f * (colour + s.weight * along);
    size_t m = 0;
    for (size_t i = 0; i < some.count; i += L) {
        Light most = {}, size = {};  // of the distance to the best minus that to the other
        for (size_t c = 0; c < d; ++c) {
            const float first = some.at[c * some.stride + best], w = c < channels ? 1.0f : s.weight;
            const Light other = load<Light>(some.at + c * some.stride + i);
            const Light apart = w * (other - first), sum = other + first;
            const Light at_low = apart * (2 * low[c] - sum), at_high = apart * (2 * high[c] - sum);
            const Light larger = at_low > at_high ? at_low : at_high;
            most += larger;
            size += larger < 0 ? -larger : larger;
        }
        int stays[L];
        store(stays, Places(most >= -(error + 1e-5f * size)));
        for (size_t l = 0; l < least(L, some.count - i); ++l) {
            kept[m] = int(i + l);
            m += stays[l] != 0 || i + l == best;
        }
    }
    return m;
}

template <int fixed> struct CellOf {
    const Segments &s;
    const Some &some;
    size_t y, x, rows, columns;
    const int *kept;  // places in `some`
    size_t m;
    float *beside, *below, *colours;  // m x cell_width and m x cell_height: what is due to column and row; m x channels
    int (*index)[cell_width];

    size_t channels() const { return fixed ? size_t(fixed) : s.channels; }
    size_t which(size_t j) const { return size_t(some.number[kept[j]]); }

    void assign() {
        constexpr size_t L = lanes<float>;
        const size_t n = channels();
        for (size_t j = 0; j < m; ++j) {
            const float *at = some.at + kept[j];
            const float row = at[n * some.stride], column = at[(n + 1) * some.stride];
            for (size_t c = 0; c < n; ++c) colours[j * n + c] = at[c * some.stride];
            for (size_t l = 0; l < cell_width; ++l) {
                const float away = float(x + l) - column;
                beside[j * cell_width + l] = s.weight * (away * away);
            }
            for (size_t r = 0; r < cell_height; ++r) {
                const float away = float(y + r) - row;
                below[j * cell_height + r] = s.weight * (away * away);
            }
        }
        for (size_t r = 0; r < rows; ++r)
            for (size_t l = 0; l < cell_width; l += L) {
                const int16_t *at = s.planes + (y + r) * s.stride + x + l;
                Light colour[fixed ? fixed : 1];
                if constexpr (fixed > 0)
                    for (int c = 0; c < fixed; ++c) colour[c] = load_as<float>(at + size_t(c) * s.height * s.stride);
                Light nearest = broadcast(__builtin_inff());
                Places place = {};
                for (size_t j = 0; j < m; ++j) {
                    Light distance = load<Light>(beside + j * cell_width + l) + below[j * cell_height + r];
                    for (size_t c = 0; c < n; ++c) {
                        Light value;
                        if constexpr (fixed > 0) value = colour[c];
                        else value = load_as<float>(at + c * s.height * s.stride);
                        const Light apart = value - colours[j * n + c];
                        Light product = apart * apart;
                        settle(product);
                        distance += product;
                    }
                    const Places nearer = distance < nearest;
                    nearest = nearer ? distance : nearest;
                    place = nearer ? (int(j) - Places{}) : place;
                }
                store(&index[r][l], place);
            }
    }

    void add() {
        constexpr size_t L = lanes<int>;
        const size_t d = channels() + 3;
        if (columns < cell_width)
            for (size_t r = 0; r < rows; ++r)
                for (size_t l = columns; l < cell_width; ++l) index[r][l] = -1;
        if (fixed) {
            Places steps;
            for (size_t l = 0; l < L; ++l) steps[l] = int(l);
            for (size_t j = 0; j < m; ++j) {
                Places any = {};  // most candidates get nothing
                for (size_t r = 0; r < rows; ++r)
                    for (size_t l = 0; l < cell_width; l += L) any |= load<Places>(&index[r][l]) == int(j);
                bool some_here = false;
                for (size_t l = 0; l < L; ++l) some_here |= any[l] != 0;
                if (!some_here) continue;
                Places total[(fixed ? fixed : 1) + 3] = {};
                for (size_t r = 0; r < rows; ++r)
                    for (size_t l = 0; l < cell_width; l += L) {
                        const Places here = load<Places>(&index[r][l]) == int(j);
                        const int16_t *at = s.planes + (y + r) * s.stride + x + l;
                        for (int c = 0; c < fixed; ++c) total[c] += here & load_as<int>(at + c * s.height * s.stride);
                        total[fixed] += here & int(r);
                        total[fixed + 1] += here & (steps + int(l));
                        total[fixed + 2] -= here;
                    }
                int64_t sums[(fixed ? fixed : 1) + 3] = {};
                for (int c = 0; c < fixed + 3; ++c)
                    for (size_t l = 0; l < L; ++l) sums[c] += total[c][l];
                put(s.sums + which(j) * d, sums);
            }
            return;
        }
        for (size_t r = 0; r < rows; ++r)
            for (size_t l = 0; l < columns; ++l) {
                int64_t *to = s.sums + which(size_t(index[r][l])) * d;
                const int16_t *at = s.planes + (y + r) * s.stride + x + l;
                for (size_t c = 0; c < channels(); ++c) to[c] += at[c * s.height * s.stride];
                to[d - 3] += int64_t(y + r), to[d - 2] += int64_t(x + l), to[d - 1] += 1;
            }
    }

    void put(int64_t *to, const int64_t *sums) const {
        const size_t c = channels();
        for (size_t i = 0; i < c; ++i) to[i] += sums[i];
        to[c] += sums[c] + int64_t(y) * sums[c + 2];
        to[c + 1] += sums[c + 1] + int64_t(x) * sums[c + 2];
        to[c + 2] += sums[c + 2];
    }
};

template <int fixed>
inline int64_t assign_tiles(const Segments &s, size_t first, size_t last, char *memory) {
    const size_t channels = s.channels, d = channels + 2;
    const size_t across = (s.width + cell_width - 1) / cell_width, down = (s.height + cell_height - 1) / cell_height;
    const size_t room = round_up(s.n, 16);
    float *at = reinterpret_cast<float *>(memory), *beside = at + room * d, *below = beside + room * cell_width;
    float *colours = below + room * cell_height, *low = colours + room * channels, *high = low + d;
    float *low_cell = high + d, *high_cell = low_cell + d;
    int *number = reinterpret_cast<int *>(high_cell + d), *kept = number + room;
    int index[cell_height][cell_width];
    int64_t compared = 0;
    for (size_t tile_y = first; tile_y < last; tile_y += s.tile_rows)
        for (size_t tile_x = 0; tile_x < across; tile_x += s.tile_columns) {
            const size_t end_y = least(tile_y + s.tile_rows, down), end_x = least(tile_x + s.tile_columns, across);
            for (size_t c = 0; c < channels; ++c) low[c] = 1e9f, high[c] = -1e9f;
            for (size_t cy = tile_y; cy < end_y; ++cy)
                for (size_t cx = tile_x; cx < end_x; ++cx)
                    for (size_t c = 0; c < channels; ++c) {
                        const int16_t *ends = s.bounds + ((cy * across + cx) * channels + c) * 2;
                        low[c] = ends[0] < low[c] ? float(ends[0]) : low[c];
                        high[c] = ends[1] > high[c] ? float(ends[1]) : high[c];
                    }
            low[channels] = float(tile_y * cell_height), low[channels + 1] = float(tile_x * cell_width);
            high[channels] = float(least(end_y * cell_height, s.height) - 1);
            high[channels + 1] = float(least(end_x * cell_width, s.width) - 1);
            // Segments whose square reaches the tile, in rising order within each bucket, then sorted by insertion.
            const auto bucket_of = [&](float at, size_t count) {
                const float number = at / s.bucket;
                return number <= 0 ? size_t(0) : least(size_t(number), count - 1);
            };
            const size_t top = bucket_of(low[channels] - s.radius, s.buckets_down);
            const size_t bottom = bucket_of(high[channels] + s.radius, s.buckets_down);
            const size_t left = bucket_of(low[channels + 1] - s.radius, s.buckets_across);
            const size_t right = bucket_of(high[channels + 1] + s.radius, s.buckets_across);
            size_t count = 0;
            for (size_t by = top; by <= bottom; ++by)
                for (int item = s.bucket_start[by * s.buckets_across + left];
                     item < s.bucket_start[by * s.buckets_across + right + 1]; ++item) {
                    const float *centre = s.centres + size_t(s.bucket_items[item]) * d;
                    const bool reaches = centre[channels] >= low[channels] - s.radius &&
                                         centre[channels] <= high[channels] + s.radius &&
                                         centre[channels + 1] >= low[channels + 1] - s.radius &&
                                         centre[channels + 1] <= high[channels + 1] + s.radius;
                    if (reaches) number[count++] = s.bucket_items[item];
                }
            if (count == 0)  // all have moved away: then any may have it
                for (; count < s.n; ++count) number[count] = int(count);
            Some some{at, number, room, count};
            some.pad(), some.fetch(s);
            some.count = prune<fixed>(s, low, high, some, kept);
            for (size_t i = 0; i < some.count; ++i) {  // in rising order: ties go to the lowest number
                const int one = number[kept[i]];
                size_t j = i;
                for (; j > 0 && number[j - 1] > one; --j) number[j] = number[j - 1];
                number[j] = one;
            }
            some.pad(), some.fetch(s);
            for (size_t cy = tile_y; cy < end_y; ++cy)
                for (size_t cx = tile_x; cx < end_x; ++cx) {
                    for (size_t c = 0; c < channels; ++c) {
                        const int16_t *ends = s.bounds + ((cy * across + cx) * channels + c) * 2;
                        low_cell[c] = ends[0], high_cell[c] = ends[1];
                    }
                    const size_t y = cy * cell_height, x = cx * cell_width;
                    const size_t rows = least(cell_height, s.height - y), columns = least(cell_width, s.width - x);
                    low_cell[channels] = float(y), high_cell[channels] = float(y + rows - 1);
                    low_cell[channels + 1] = float(x), high_cell[channels + 1] = float(x + columns - 1);
                    const size_t m = prune<fixed>(s, low_cell, high_cell, some, kept);
                    CellOf<fixed> cell{s, some, y, x, rows, columns, kept, m, beside, below, colours, index};
                    if (m > 1) cell.assign();
                    else
                        for (size_t r = 0; r < rows; ++r)
                            for (size_t l = 0; l < cell_width; ++l) index[r][l] = 0;
                    compared += m > 1 ? int64_t(m * rows * cell_width) : 0;
                    if (s.labels)
                        for (size_t r = 0; r < rows; ++r) {
                            int *to = s.labels + (y + r) * s.width + x;
                            for (size_t l = 0; l < columns; ++l) to[l] = number[kept[index[r][l]]];
                        }
                    if (s.sums) cell.add();
                }
        }
    return compared;
}

// Rows of cells `first` to `last` - 1, which begin and end with tiles; returns how many distances were computed.
inline int64_t assign_segments(const Segments &s, size_t first, size_t last, void *memory) {
    char *bytes = static_cast<char *>(memory);
    switch (s.channels) {
        case 1: return assign_tiles<1>(s, first, last, bytes);
        case 2: return assign_tiles<2>(s, first, last, bytes);
        case 3: return assign_tiles<3>(s, first, last, bytes);
        case 4: return assign_tiles<4>(s, first, last, bytes);
        default: return assign_tiles<0>(s, first, last, bytes);
    }
}
