// Memory that targets have left is kept for the next ones: those of a pass follow those of the one before. Otherwise the C library
// may give it back to the system after every pass, and to get it anew takes several times as long as to pack the targets.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace fw {

class SpareMemory {
    struct Block {
        std::unique_ptr<char[]> memory;
        std::size_t size;
    };
    // A block that nobody uses, if any. No lock, which a child could find locked after a fork.
    static inline std::atomic<Block *> spare{nullptr};
    static constexpr std::size_t larger = 4;  // times as much as is needed may be used
    static constexpr std::size_t most = std::size_t(32) << 20;  // more is not kept
    std::unique_ptr<Block> block;

public:
    static constexpr std::size_t line = 64;

    SpareMemory() = default;
    SpareMemory(const SpareMemory &) = delete;
    ~SpareMemory() {
        if (block && block->size <= most) delete spare.exchange(block.release());
    }
    // So many bytes, from the start of a cache line on, with anything in them.
    char *take(std::size_t bytes) {
        const std::size_t needed = bytes + line;
        block.reset(spare.exchange(nullptr));
        if (!block || block->size < needed || block->size / larger > needed)
            block.reset(new Block{std::unique_ptr<char[]>(new char[needed]), needed});
        return block->memory.get() + (line - std::uintptr_t(block->memory.get()) % line) % line;
    }
};

}  // namespace fw
