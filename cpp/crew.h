// Threads that wait in compiled code for something to do (cpp/flag.cpp) join compiled work that another thread has begun, within a
// fraction of a microsecond. To go through Python they would need its lock, which the other one may hold: to wait for that costs
// some hundredths of a millisecond, again and again in a fit of short passes.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <exception>
#include <thread>

namespace fw {

inline void pause() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

class Crew {
    // Whether there is work (`open`), how many more may join it, and how many are at it: one number, so that nobody can join
    // work that ends at that moment.
    static constexpr unsigned place = 1u << 8, open = 1u << 20;
    std::atomic<unsigned> state_{0};
    std::atomic<bool> taken_{false};  // by a thread whose work it is
    std::atomic<int> waiting_{0};  // threads that wait for work
    std::atomic<unsigned> announced_{0};  // how often work was announced
    void (*work_)(void *) = nullptr;
    void *what_ = nullptr;

    void end() {
        state_.fetch_and(place - 1);
        using Clock = std::chrono::steady_clock;
        const auto soon = Clock::now() + std::chrono::microseconds(300);
        for (int i = 1; state_.load(std::memory_order_acquire); ++i) {
            pause();
            if (i % 64) continue;
            if (Clock::now() < soon) std::this_thread::yield();  // in case there are more threads than processors
            else std::this_thread::sleep_for(std::chrono::microseconds(50));
        }
        taken_.store(false, std::memory_order_release);
    }

    // For a thread that waits: does what there is to do. Says whether there was anything.
    bool join() {
        unsigned now = state_.load(std::memory_order_relaxed);
        if (now < open + place) return false;
        if (!state_.compare_exchange_strong(now, now - place + 1, std::memory_order_acquire, std::memory_order_relaxed)) return false;
        work_(what_);
        state_.fetch_sub(1, std::memory_order_release);
        return true;
    }

public:
    static constexpr std::size_t most = 255;  // threads beside the caller

    // Calls work() in this thread and up to `helpers` times in those that wait; returns when all are done. If others'
    // work is going on, this thread works alone. Throws what any of them has thrown.
    template <class Work> void run(std::size_t helpers, Work work) {
        if (helpers == 0 || taken_.exchange(true, std::memory_order_acquire)) return work();
        struct Job {
            Work &work;
            std::atomic<bool> failed{false};
            std::exception_ptr problem{};
            void here() noexcept {
                try {
                    work();
                } catch (...) {
                    if (!failed.exchange(true)) problem = std::current_exception();
                }
            }
        } job{work};
        work_ = [](void *what) { static_cast<Job *>(what)->here(); };
        what_ = &job;
        state_.store(open + unsigned(helpers < most ? helpers : most) * place, std::memory_order_release);
        job.here();
        end();
        if (job.failed) std::rethrow_exception(job.problem);
    }

    // Calls work(first, end) for all numbers below `count`, `step` at a time.
    template <class Work> void each(std::size_t helpers, std::size_t count, std::size_t step, Work work) {
        if (helpers == 0 || count <= step) return work(std::size_t(0), count);
        std::atomic<std::size_t> taken{0};
        run(helpers, [&] {
            for (std::size_t first; (first = taken.fetch_add(step)) < count;) work(first, first + step < count ? first + step : count);
        });
    }

    // How many threads wait for work, which the caller is about to begin: they will wait for a while, even those that were about
    // to give up.
    int announce() {
        announced_.fetch_add(1);
        return waiting_.load();
    }

    // Waits for at most so many seconds since the last work, or its announcement, until met(); says whether it is. Joins work.
    template <class Condition> bool wait(double seconds, Condition met) {
        using Clock = std::chrono::steady_clock;
        constexpr int looks = 64;  // between looks at the clock, about 2 microseconds
        unsigned known = announced_.load();
        auto end = Clock::now() + std::chrono::duration<double>(seconds);
        waiting_.fetch_add(1);
        for (;;) {
            bool joined = false;
            for (int i = 0; i < looks; ++i) {
                if (met()) {
                    waiting_.fetch_sub(1);
                    return true;
                }
                joined |= join();
                pause();
            }
            std::this_thread::yield();  // in case there are more threads than processors
            const auto now = Clock::now();
            if (!joined && announced_.load() == known) {
                if (now < end) continue;
                waiting_.fetch_sub(1);
                if (announced_.load() == known) return met();  // or else somebody may have counted on this thread
                waiting_.fetch_add(1);
            }
            known = announced_.load();
            end = now + std::chrono::duration<double>(seconds);
        }
    }

    // In a child process, where the threads that were at work are gone.
    void renew() {
        state_ = 0;
        waiting_ = 0;
        taken_ = false;
    }
};

// That of this process.
extern Crew crew;

// Of so many values, what follows takes long enough to share it out: some ten microseconds.
constexpr std::size_t shared_values = 1 << 15, shared_step = 1 << 13;
inline std::size_t rows_at_a_time(std::size_t values) { return values < shared_step ? shared_step / values : 1; }

}  // namespace fw
