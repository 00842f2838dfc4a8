// Points that rows are compared with, prepared for the kernels of one instruction set. Shared by all of them,
// so there is no code here.
#pragma once

#include <cstddef>

namespace fw {

// Rows are looked at as y = x * scale - pivot, where scale is a power of two that brings |y| below 1 and pivot
// is near the mean of the data (already multiplied by scale): the products of far away or huge rows then keep
// their digits.
template <class T> struct Targets {
    std::size_t k, d;
    T scale;
    const T *pivot;        // d
    const T *shifted;      // k x d: the targets as y, in T
    const double *exact;   // k x d: the targets times scale, not shifted
    const T *packed;       // panels [feature][width], slot by slot
    const T *minus_half;   // by slot: minus half the squared length of the shifted target
    const int *ids;        // by slot: the number of the target
    bool in_order;         // whether that is the slot itself
    std::size_t groups;
    const int *ends;       // by group: the slot after its last
    const int *panels;     // by group: into how many panels it is packed
    const unsigned char *widths;  // by panel: how many targets are in it, as equal as they can be within a group
    double longest;        // the greatest length of a shifted target
    double wide_scale;     // scale as float64, and
    const double *wide_pivot;
};

// What is known of every row of a block, and how far targets have moved since the first pass; see bounded.h.
template <class T> struct Bounds {
    T *upper;              // n
    T *lower;              // n
    T *group_lower;        // n x groups; not used if there is one group
    const T *moved;        // k
    const T *group_moved;  // groups
    T most_moved;
    T slack;               // more than adding and subtracting all these can be wrong by
    bool fresh;            // nothing is known yet
};

// Rows whose label changed, and what it was. Null where nobody asks.
struct Changes {
    int *row, *before;
};

struct Assigned {
    // Rows with a new label; products with targets, in rows (bounds leave out whole rows and groups of targets); near ties.
    std::size_t moved, computed, settled;
};

}  // namespace fw
