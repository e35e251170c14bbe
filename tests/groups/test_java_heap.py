"""JavaHeap: the order of ties is that of ``java.util.PriorityQueue``."""

from hypothesis import given
from hypothesis import strategies as st

from barnabas.groups.java_heap import JavaHeap


def drained(heap):
    return [heap.pop() for _ in range(len(heap))]


def test_ties_come_out_as_they_do_of_a_priority_queue():
    heap = JavaHeap()
    for name in "abcdefg":
        heap.push(1, name)
    assert "".join(drained(heap)) == "agfedcb"


@given(st.lists(st.integers(0, 5)))
def test_the_smallest_comes_first(ranks):
    heap = JavaHeap()
    for index, rank in enumerate(ranks):
        heap.push(rank, (rank, index))
    assert [rank for rank, _ in drained(heap)] == sorted(ranks)
