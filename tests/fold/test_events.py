"""Progress events, and keeping silent in one thread while others are heard."""

from __future__ import annotations

from threading import Barrier, Thread

from foldwise.fold import events, threads


def step(number: int) -> events.StepDone:
    return events.StepDone(number, 10, {})


def test_one_thread_is_muted_and_others_are_heard():
    heard: list[int] = []
    ready, told = Barrier(2, timeout=10), Barrier(2, timeout=10)

    def silent() -> None:
        with events.muted():
            ready.wait()
            assert not events.heard()
            events.emit(step(1))
            with events.muted():
                events.emit(step(1))
            events.emit(step(1))
            told.wait()
        events.emit(step(2))

    other = Thread(target=silent)
    with events.listening(lambda event: heard.append(event.number)):
        other.start()
        ready.wait()
        assert events.heard()
        events.emit(step(0))
        told.wait()
        other.join()
    assert not events.heard()
    assert heard == [0, 2]


def test_a_listener_may_leave_while_another_thread_is_muted():
    muted, left = Barrier(2, timeout=10), Barrier(2, timeout=10)

    def silent() -> None:
        with events.muted():
            muted.wait()
            left.wait()

    other = Thread(target=silent)
    with events.listening(print):
        other.start()
        muted.wait()
    left.wait()
    other.join()
    assert not events.heard()


def test_threads_of_the_engine_are_as_silent_as_their_caller():
    heard: list[int] = []
    together = Barrier(2, timeout=10)

    def work(number: int, piece: int) -> int:
        together.wait()  # so that both threads take one
        events.emit(step(piece))
        return piece

    with events.listening(lambda event: heard.append(event.number)):
        with events.muted():
            threads.run([1, 2], work, lambda number, found: None, 2)
        assert heard == []
        threads.run([1, 2], work, lambda number, found: None, 2)
    assert sorted(heard) == [1, 2]
