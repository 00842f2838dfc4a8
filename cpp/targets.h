// Points that rows are compared with, packed for the kernels of one instruction set. Shared by all of them, so it
// contains no code.
#pragma once

#include <cstddef>

namespace fw {

// Targets that are few enough for their own way of comparing (nearest_few.h).
constexpr std::size_t few_most = 24;

// How values are split for exact sums (exact_sums.h): 1.5 * 2^52 times the unit of each part.
struct Grid {
    double coarse, fine;
};

// How targets rounded to integers of 16 bits are laid out, two integers in each of 32 bits: not at all; one after the other, for rows
// that stay in registers; in panels [pair][width] like `packed` of Targets; or one after the other in whole vectors, within which
// columns are in the order that packing two vectors of 32-bit integers makes (nearest_few_int16.h).
enum class Int16Layout { none, rows, panels, columns };

// Targets rounded to integers of 16 bits, for rows that are known to be within 1 of the pivot (nearest_int16.h). A row becomes
// x * row_scale - row_pivot, rounded. Scores are sums of products of integers, and so is their start.
struct Int16Targets {
    std::size_t pairs;      // of columns
    const int *packed;      // two integers of 16 bits each
    const int *start;       // by slot: minus half the squared length of the target
    float row_scale;
    const float *row_pivot; // d, and zeros up to a whole vector
    float per_length, flat; // the lead that makes the best score certain: flat + per_length * length of the rounded row,
    float longest;          // if that length is no larger than this
    float per_square, quick_flat, largest_square;  // the same from the squared length, for a test that asks for a little more
    Int16Layout layout;
    std::size_t stride;     // with columns in the lanes: from target to target
};
// Rows as these integers, kept from pass to pass (int16_rows.h): for each vector of rows, pairs of columns and then the lengths
// of the rounded rows. Null if they are not kept, as rows of so few columns that they stay in registers are not: nothing
// was gained by it. Room for whole vectors of rows, from the start of a cache line on.
struct Int16Rows {
    int *values;
    bool ready;  // whether they have been written
};
// Rows of at most so many columns stay in registers while all targets pass by; with more columns than these,
// rounding would leave too many rows in doubt.
constexpr std::size_t int16_short = 16, int16_columns = 1024, int16_least_columns = 5;
// From so many columns on, up to so many targets are compared by columns.
constexpr std::size_t few_int16_least = 128, few_int16_most = 12;

// Kernels work on y = x * scale - pivot. The scale is a power of two that brings |y| below 1; the pivot is near the
// mean of the data (already multiplied by the scale). Products then keep their digits even if the data are huge or
// far from zero.
template <class T> struct Targets {
    std::size_t k, d;
    T scale;
    const T *pivot;        // d
    const T *shifted;      // k x d: the targets as y, in T
    const double *exact;   // k x d: the targets times scale, not shifted
    const T *packed;       // panels [feature][width], slot by slot
    const T *minus_half;   // by slot: minus half the squared length of the shifted target
    const int *ids;        // by slot: the number of the target
    bool in_order;         // whether ids[slot] == slot
    std::size_t groups;
    const int *ends;       // by group: one past its last slot
    const int *panels;     // by group: its number of panels
    const unsigned char *widths;  // by panel: its number of targets; they differ by at most 1 within a group
    double longest;        // the largest length of a shifted target
    double wide_scale;     // scale and pivot in float64
    const double *wide_pivot;
    size_t padded;         // k, rounded up to whole vectors; 0 unless rows may have missing cells
    const T *half_squares; // d x padded, by slot: half the square of each coordinate of the shifted targets
    const T *by_slot;      // the shifted targets in the order of slots, each with zeros up to `stride`; null unless they are few
                           // or in groups
    std::size_t stride;    // of these, a multiple of 16; they begin at a cache line
    const Int16Targets *rounded;  // null unless all rows are known to be within 1 of the pivot, and it is of use
};

// The distance bounds of every row of a block, and how far the targets have moved since the first pass; see
// bounded.h.
template <class T> struct Bounds {
    T *upper;              // n
    T *lower;              // n
    T *group_lower;        // n x groups; unused if there is only one group
    const T *moved;        // k
    const T *group_moved;  // groups
    T most_moved;
    T slack;               // exceeds the rounding error of adding and subtracting these movements
    bool fresh;            // true if there are no bounds yet
};

class SumsGuard;  // isa.h

// Changes in the sums of the rows of each cluster, in fixed point: integers, which may be added and subtracted in any order
// (fixed_sums.h). A value y is rounded to a multiple of 2^-bits by adding it to 1.5 * 2^(52 - bits); read as an integer, that
// sum is y in fixed point plus a constant, which is taken off in the end, times the number of rows.
struct FixedSums {
    long long *sums;         // k x copies x d, modulo 2^64; zero between calls
    long long *counts;       // k x copies; zero between calls
    std::size_t copies;      // side by side, so that rows need not wait for each other; 1 if there are many sums. With several,
                             // there is a cluster in front of the others, number -1, of rows without a label
    unsigned char *touched;  // k: whether a row joined or left; zero between calls
    const double *start;     // d: 1.5 * 2^(52 - bits) minus the pivot
    double scale;
    int bits, coarse_bits;
    double *high, *low, *weight;  // where the sums go (exact_sums.h): multiples of 2^-coarse_bits, and the rest
    float least;       // a row with a smaller value (in absolute value, other than 0) does not stay in the integers
    Grid grid;         // for such rows
    double *parts;     // room for their two parts
    SumsGuard *guard;  // held while `high`, `low` and `weight` are written, which other threads may do as well; null if none does
};

// The sums of so many numbers have so many copies: all stay in the first-level cache.
constexpr std::size_t few_copies = 4;
constexpr std::size_t copies_of_sums(std::size_t numbers) { return numbers <= 512 ? few_copies : numbers <= 1536 ? 2 : 1; }

// Where the squared distances of rows from their targets are added up, and the numbers of rows (exact_sums.h).
struct Residuals {
    double *sums;            // room for k x residual_values numbers, all 0
    double *total, *counts;  // k each
};
constexpr std::size_t residual_values = 32;

// The rows whose label changed and their previous labels; null if not requested.
struct Changes {
    int *row, *before;
};

struct AssignCounts {
    // Number of rows with a new label; number of products with targets, divided by the number of targets (bounds skip
    // whole rows and groups of targets); number of near ties; number of rows with several nearest targets, of which the
    // number decides: only these can get another target when the targets are renumbered. It is exact for complete dense
    // rows, and never too low.
    std::size_t moved, computed, near_ties, exact_ties;
};

}  // namespace fw
