// A number that threads exchange without going to sleep: to wake a thread takes longer than a pass over a small table.
#include <nanobind/nanobind.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "crew.h"
#ifdef __linux__
#include <sched.h>
#endif

namespace nb = nanobind;

fw::Crew fw::crew;

namespace {

class Flag {
    std::atomic<int> value_;

    // Waits until the value satisfies the condition, at most for so many seconds; says whether it does.
    template <class Condition> bool wait(double seconds, Condition met) const {
        if (met(value_.load())) return true;
        if (!(seconds > 0)) return false;
        nb::gil_scoped_release released;
        using Clock = std::chrono::steady_clock;
        const auto end = Clock::now() + std::chrono::duration<double>(seconds);
        constexpr int looks = 64;  // between looks at the clock, about 2 microseconds
        do {
            for (int i = 0; i < looks; ++i) {
                if (met(value_.load(std::memory_order_acquire))) return true;
                fw::pause();
            }
            std::this_thread::yield();  // in case there are more threads than processors
        } while (Clock::now() < end);
        return met(value_.load());
    }

public:
    explicit Flag(int value) : value_(value) {}

    int value() const { return value_.load(); }
    void add(int number) { value_.fetch_add(number); }
    bool wait_while(int value, double seconds) const {
        return wait(seconds, [=](int now) { return now != value; });
    }
    // Joins work of the crew meanwhile, and then waits as long once more.
    bool join_while(int value, double seconds) const {
        nb::gil_scoped_release released;
        return fw::crew.wait(seconds, [&] { return value_.load(std::memory_order_acquire) != value; });
    }
    bool wait_until(int value, double seconds) const {
        return wait(seconds, [=](int now) { return now == value; });
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
        .def("value", &Flag::value)
        .def("add", &Flag::add, nb::arg("number"))
        .def("wait_while", &Flag::wait_while, nb::arg("value"), nb::arg("seconds"))
        .def("join_while", &Flag::join_while, nb::arg("value"), nb::arg("seconds"))
        .def("wait_until", &Flag::wait_until, nb::arg("value"), nb::arg("seconds"));
    m.def("this_processor", &this_processor);
    m.def("announce_work", [] { return fw::crew.announce(); });
    m.def("renew_crew", [] { fw::crew.renew(); });
}
