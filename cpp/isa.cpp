#include "isa.h"

#include "parts.h"

#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#ifdef __linux__
#include <sys/mman.h>
#endif

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
    size_t mapped = 0;  // bytes that came from the system itself
    void operator()(void *memory) const {
#ifdef __linux__
        if (mapped) {
            munmap(memory, mapped);
            return;
        }
#endif
        ::operator delete(memory, line);
    }
};

thread_local std::unique_ptr<void, Release> memory;
thread_local size_t held = 0;
constexpr size_t kept = 16 << 20;

// What is not kept goes back to the system at once: the C library would hold on to it, once for every thread. Huge pages,
// where there are any, make it nearly as quick as memory in use.
std::unique_ptr<void, Release> take(size_t bytes) {
#ifdef __linux__
    if (bytes > kept) {
        void *found = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (found == MAP_FAILED) throw std::bad_alloc();
        madvise(found, bytes, MADV_HUGEPAGE);
        return {found, Release{bytes}};
    }
#endif
    return {::operator new(bytes, line), Release{}};
}

}  // namespace

const Kernels &active_kernels() {
    static const Kernels &best = choose();
    return best;
}

Int16Layout quick_int16(size_t k, size_t d, bool kept) {
#ifdef FW_X86
    if (d < int16_least_columns || d > int16_columns) return Int16Layout::none;
    static const bool vnni = &active_kernels() == &avx512::kernels && __builtin_cpu_supports("avx512vnni");
    const bool avx2 = &active_kernels() == &avx2::kernels;
    if (!vnni && !avx2) return Int16Layout::none;
    if (kept) return d > (vnni ? int16_short : int16_short / 2) ? Int16Layout::panels : Int16Layout::none;
    if (d <= int16_short) return Int16Layout::rows;
    if (vnni) return k <= few_int16_most && d >= few_int16_least ? Int16Layout::columns : Int16Layout::panels;
    return k > few_most ? Int16Layout::panels : Int16Layout::none;  // two instructions where AVX-512 has one
#else
    (void)k, (void)d, (void)kept;
    return Int16Layout::none;
#endif
}

void *scratch(size_t bytes) {
    if (held < bytes) {
        memory.reset();
        held = 0;
        memory = take(bytes);
        held = bytes;
    }
    return memory.get();
}

void hold(SumsGuard *guard) {
    if (guard) guard->mutex.lock();
}
void release(SumsGuard *guard) {
    if (guard) guard->mutex.unlock();
}

void trim_scratch() {
    if (held <= kept) return;
    memory.reset();
    held = 0;
}

}  // namespace fw
