// Working memory of a kernel.
#pragma once

// Hands out pieces of the thread's scratch memory. A first run with a null base only computes the total size.
struct Arena {
    char *base;
    size_t used;
    template <class T> T *take(size_t count) {
        T *place = base ? (T *)(base + used) : nullptr;
        used = round_up(used + count * sizeof(T), 64);
        return place;
    }
};
