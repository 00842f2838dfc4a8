// Large arrays in memory that an earlier one has left.
//
// New memory is slow: the system clears every page, and a virtual machine may have to ask its host for it. What is left here is
// offered to the system, which takes it back when it runs short of memory (MADV_FREE); until then the next array finds it ready.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <atomic>
#include <cstdint>
#include <new>
#ifdef __linux__
#include <sys/mman.h>
#endif

namespace nb = nanobind;

namespace {

class Memory {
public:
    const size_t size;
    explicit Memory(size_t bytes) : size(bytes) {
#ifdef __linux__
        at_ = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (at_ == MAP_FAILED) throw std::bad_alloc();
        madvise(at_, bytes, MADV_HUGEPAGE);
#else
        at_ = ::operator new(bytes);
#endif
    }
    Memory(const Memory &) = delete;
    ~Memory() {
#ifdef __linux__
        munmap(at_, size);
#else
        ::operator delete(at_);
#endif
    }
    void *at() const { return at_; }
    // Whether the system may take it back while nobody uses it.
    bool offer() const {
#ifdef MADV_FREE
        return madvise(at_, size, MADV_FREE) == 0;
#else
        return false;
#endif
    }

private:
    void *at_;
};

// What the last array has left, if anything. No lock, which a child could find locked after a fork.
std::atomic<Memory *> spare{nullptr};
constexpr size_t larger = 2;  // times as much memory as is needed may be used

Memory *take(size_t bytes) {
    if (Memory *found = spare.exchange(nullptr)) {
        if (found->size >= bytes && found->size / larger <= bytes) return found;
        delete found;
    }
    return new Memory(bytes);
}

// In C++, not in a finalizer of Python's, in which Ctrl-C would be lost.
void leave(void *memory) noexcept {
    Memory *mine = static_cast<Memory *>(memory);
    delete (mine->offer() ? spare.exchange(mine) : mine);
}

using Integers = nb::ndarray<nb::numpy, int32_t, nb::ndim<1>, nb::c_contig>;

Integers reused_integers(size_t count) {
    Memory *memory = nullptr;
    try {
        if (count == 0 || count > SIZE_MAX / sizeof(int32_t)) throw std::bad_alloc();
        memory = take(count * sizeof(int32_t));
    } catch (const std::bad_alloc &) {
        PyErr_NoMemory();  // another module's translation of it may be an error of its own kind
        throw nb::python_error();
    }
    return Integers(memory->at(), {count}, nb::capsule(memory, leave));
}

}  // namespace

void register_reused_memory(nb::module_ &m) { m.def("reused_integers", &reused_integers, nb::arg("count")); }
