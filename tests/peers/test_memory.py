"""Memory of large responses is used again, and never while somebody has a view of it."""

from barnabas.peers.memory import BUFFER_SIZE, KEPT_FOR, MOST_KEPT, ResponseMemory


def base(view):
    return id(view.obj)


def test_it_is_used_again():
    memory = ResponseMemory()
    first = memory.take(1_000_000)
    assert len(first) == 1_000_000
    taken = base(first)
    first.release()
    smaller = memory.take(BUFFER_SIZE + 1)
    assert base(smaller) == taken
    assert len(smaller) == BUFFER_SIZE + 1


def test_a_view_keeps_it():
    memory = ResponseMemory()
    first = memory.take(100_000)
    first[:3] = b"abc"
    records = first[1:3]
    first.release()
    second = memory.take(100_000)
    second[:3] = b"xyz"
    assert bytes(records) == b"bc"


def test_very_large_memory_is_not_kept():
    memory = ResponseMemory()
    large = memory.take(MOST_KEPT + 1)
    assert len(large) == MOST_KEPT + 1
    assert memory._kept is None


def test_it_is_freed_when_responses_are_small():
    memory = ResponseMemory()
    memory.take(100_000)
    for _ in range(KEPT_FOR - 1):
        memory.rest()
    assert memory._kept is not None
    memory.rest()
    assert memory._kept is None
