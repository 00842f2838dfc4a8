// A number that threads exchange without going to sleep: to wake a thread takes longer than a pass over a small table.
#include <nanobind/nanobind.h>

#include <atomic>
#include <chrono>
#include <thread>
#ifdef __linux__
#include <sched.h>
#endif

namespace nb = nanobind;

namespace {

inline void pause() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

class Flag {
    std::atomic<int> value_;

public:
    explicit Flag(int value) : value_(value) {}

    void set(int value) { value_.store(value); }

    // Sets `after` if the value is `before`; says whether it was.
    bool exchange(int before, int after) { return value_.compare_exchange_strong(before, after); }

    // Waits until the value is another than `value`, at most for so many seconds; says whether it is.
    bool wait_while(int value, double seconds) const {
        if (value_.load() != value) return true;
        nb::gil_scoped_release released;
        using Clock = std::chrono::steady_clock;
        const auto end = Clock::now() + std::chrono::duration<double>(seconds);
        constexpr int looks = 64;  // between looks at the clock, about 2 microseconds
        do {
            for (int i = 0; i < looks; ++i) {
                if (value_.load(std::memory_order_acquire) != value) return true;
                pause();
            }
            std::this_thread::yield();  // in case there are more threads than processors
        } while (Clock::now() < end);
        return value_.load() != value;
    }
};

// The number of the processor that the calling thread is on; -1 if that is not known.
int this_processor() {
#ifdef __linux__
    return sched_getcpu();
#else
    return -1;
#endif
}

}  // namespace

void register_flag(nb::module_ &m) {
    nb::class_<Flag>(m, "Flag")
        .def(nb::init<int>(), nb::arg("value"))
        .def("set", &Flag::set, nb::arg("value"))
        .def("exchange", &Flag::exchange, nb::arg("before"), nb::arg("after"))
        .def("wait_while", &Flag::wait_while, nb::arg("value"), nb::arg("seconds"));
    m.def("this_processor", &this_processor);
}
