// Rows that threads share out among themselves while a kernel runs: each takes the next part when it is done with its last. Parts
// get smaller and smaller, so that all threads are ready at about the same time; where they are cut
// depends on the number of shares alone, not on who was faster.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <mutex>

namespace fw {

class SumsGuard {
public:
    std::mutex mutex;
};

class Parts {
    const std::size_t rows_, shares_, least_, most_, step_;
    std::atomic<std::size_t> taken_{0};
    const std::shared_ptr<SumsGuard> guard_;
    std::size_t helpers_ = 0;

    std::size_t end_after(std::size_t first) const {
        const std::size_t left = rows_ - first, share = (left + 2 * shares_ - 1) / (2 * shares_);
        const std::size_t part = share > most_ ? most_ : share, some = part < least_ ? least_ : part;
        const std::size_t whole = (some + step_ - 1) / step_ * step_;
        return whole < left ? first + whole : rows_;
    }

public:
    Parts(std::size_t rows, std::size_t shares, std::size_t least, std::size_t most, std::size_t step, const Parts *sharing)
        : rows_(rows), shares_(shares), least_(least), most_(most), step_(step),
          guard_(sharing ? sharing->guard_ : std::make_shared<SumsGuard>()) {}

    // Of the sums that all threads add to, which may be those of other rows as well.
    SumsGuard *guard() const { return guard_.get(); }

    // So many threads that wait (crew.h) may take part in a call that takes parts.
    std::size_t helpers() const { return helpers_; }
    void invite(std::size_t helpers) { helpers_ = helpers; }

    std::size_t rows() const { return rows_; }
    std::size_t step() const { return step_; }
    // Whether every part is one step, but for the last.
    bool are_steps() const { return least_ == step_ && most_ == step_; }
    std::size_t taken() const { return taken_.load(); }
    // The next part, unless there is none.
    bool take(std::size_t &first, std::size_t &end) {
        first = taken_.load();
        do {
            if (first >= rows_) return false;
            end = end_after(first);
        } while (!taken_.compare_exchange_weak(first, end));
        return true;
    }

    // Calls work(first, end) for one part after the other until there are none, it returns false, or some time has passed: the
    // caller may have been interrupted meanwhile.
    template <class Work> void share(Work work) {
        using Clock = std::chrono::steady_clock;
        const auto stop = Clock::now() + std::chrono::milliseconds(20);
        std::size_t first, end;
        while (take(first, end))
            if (!work(first, end) || Clock::now() > stop) return;
    }
};

}  // namespace fw
