#include "isa.h"

#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>

namespace fw {
namespace {

const Kernels &choose() {
#ifdef FW_X86
    __builtin_cpu_init();
    const bool has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    const bool has_avx512 = has_avx2 && __builtin_cpu_supports("avx512f") &&
                            __builtin_cpu_supports("avx512dq") &&
                            __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw");
    const char *asked = std::getenv("FOLDWISE_ISA");
    const bool at_most_baseline = asked && std::strcmp(asked, "baseline") == 0;
    const bool at_most_avx2 = asked && std::strcmp(asked, "avx2") == 0;
    if (has_avx512 && !at_most_baseline && !at_most_avx2) return avx512::kernels;
    if (has_avx2 && !at_most_baseline) return avx2::kernels;
#endif
    return baseline::kernels;
}

constexpr std::align_val_t line{64};

struct Release {
    void operator()(void *memory) const { ::operator delete(memory, line); }
};

thread_local std::unique_ptr<void, Release> memory;
thread_local size_t held = 0;
constexpr size_t kept = 16 << 20;

}  // namespace

const Kernels &active_kernels() {
    static const Kernels &best = choose();
    return best;
}

void *scratch(size_t bytes) {
    if (held < bytes) {
        memory.reset();
        held = 0;
        memory.reset(::operator new(bytes, line));
        held = bytes;
    }
    return memory.get();
}

void trim_scratch() {
    if (held <= kept) return;
    memory.reset();
    held = 0;
}

}  // namespace fw
