"""Background work runs in order in another thread, and its outcome is passed to the loop."""

import queue
import threading

from barnabas.log.background import BackgroundThread, Inline


class Loop:
    """Collects calls from other threads, and runs them in :meth:`turn`."""

    def __init__(self):
        self.calls = queue.SimpleQueue()

    def call_soon_threadsafe(self, *call):
        self.calls.put(call)

    def turn(self):
        callback, *arguments = self.calls.get(timeout=10)
        callback(*arguments)


def test_inline():
    results = []
    Inline().run(lambda: results.append("work"), lambda error: results.append(error))
    Inline().run(lambda: 1 / 0, lambda error: results.append(type(error)))
    assert results == ["work", None, ZeroDivisionError]
    Inline().close()


def test_work_runs_in_order_in_another_thread():
    loop, done, threads = Loop(), [], set()
    background = BackgroundThread(loop.call_soon_threadsafe)
    for number in range(20):
        background.run(lambda: threads.add(threading.get_ident()), lambda error, number=number: done.append(number))
    for _ in range(20):
        loop.turn()
    assert done == list(range(20))
    assert len(threads) == 1
    assert threading.get_ident() not in threads
    background.close()


def test_a_failure_is_passed_to_done():
    loop, results = Loop(), []
    background = BackgroundThread(loop.call_soon_threadsafe)
    background.run(lambda: 1 / 0, results.append)
    loop.turn()
    assert isinstance(results[0], ZeroDivisionError)
    background.close()


def test_closing_waits_for_the_work():
    loop, done = Loop(), []
    background = BackgroundThread(loop.call_soon_threadsafe)
    gate = threading.Event()
    background.run(gate.wait)
    for number in range(5):
        background.run(lambda number=number: done.append(number))
    threading.Timer(0.05, gate.set).start()
    background.close()
    assert done == list(range(5))
    background.run(lambda: done.append("at once"))
    assert done[-1] == "at once"
    background.close()


def test_a_closed_loop_is_ignored_after_close():
    def gone(*call):
        raise RuntimeError("Event loop is closed")

    background = BackgroundThread(gone)
    gate = threading.Event()
    background.run(gate.wait, lambda error: None)
    threading.Timer(0.05, gate.set).start()
    background.close()
