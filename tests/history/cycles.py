"""Finds cycles of dependencies between transactions, and which of them Kafka permits.

Knows nothing but the writers and readers of values, and the order of records.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping

from tests.history.anomaly import Anomaly
from tests.history.evidence import Evidence
from tests.history.records import Operation

Graph = Mapping[int, set[int]]


def circular(evidence: Evidence) -> tuple[list[Anomaly], Counter[str]]:
    """Returns the cycles of reads, which are anomalies, and counts those that need a write edge, which are not.

    wr: one transaction has read the other's write. read_committed readers see a transaction when its commit is over, so
    two that read each other's records would each be committed before the other. ww: one's record is directly before the
    other's. Kafka does not prevent interleaved writes of transactions, so a cycle with such an edge is allowed (Adya's
    G0 and, with wr edges, some of G1c).
    """
    operations = evidence.history.operations
    reads = _reads(evidence)
    wrong = [
        Anomaly(
            "circular-reads", "each of these read what another of them wrote", [operations[at] for at in sorted(circle)]
        )
        for circle in circles(reads)
    ]
    writes = _writes(evidence)
    mixed = {at: reads.get(at, set()) | writes.get(at, set()) for at in reads.keys() | writes.keys()}
    allowed = Counter({"G0": sum(1 for _ in circles(writes)), "G1c with writes": 0})
    allowed["G1c with writes"] = sum(1 for circle in circles(mixed) if _needs_reads(circle, reads))
    return wrong, allowed


def _reads(evidence: Evidence) -> dict[int, set[int]]:
    edges: dict[int, set[int]] = defaultdict(set)
    for sight in evidence.sights:
        writer = evidence.writer(sight.value)
        if writer is None or writer is sight.operation or not sight.poll.committed:
            continue
        if _is_one(evidence, writer) and _is_one(evidence, sight.operation):
            edges[writer.index].add(sight.operation.index)
    return edges


def _writes(evidence: Evidence) -> dict[int, set[int]]:
    edges: dict[int, set[int]] = defaultdict(set)
    for order in evidence.orders.values():
        before: Operation | None = None
        for _, value in order:
            writer = evidence.writer(value)
            if writer is None or not _is_one(evidence, writer):
                continue
            if before is not None and before is not writer:
                edges[before.index].add(writer.index)
            before = writer
    return edges


def _is_one(evidence: Evidence, operation: Operation) -> bool:
    """Returns whether it is a committed transaction."""
    return operation.is_transaction and evidence.is_committed(operation)


def _needs_reads(circle: set[int], reads: Graph) -> bool:
    return any(reads.get(at, set()) & circle for at in circle)


def circles(graph: Graph) -> Iterator[set[int]]:
    """Yields the strongly connected components of more than one node (Tarjan's algorithm, without recursion)."""
    numbers: dict[int, int] = {}
    lowest: dict[int, int] = {}
    waiting: list[int] = []
    is_waiting: set[int] = set()
    for root in graph:
        if root in numbers:
            continue
        path: list[tuple[int, Iterator[int]]] = []
        _visit(root, graph, numbers, lowest, waiting, is_waiting, path)
        while path:
            node, following = path[-1]
            for neighbour in following:
                if neighbour not in numbers:
                    _visit(neighbour, graph, numbers, lowest, waiting, is_waiting, path)
                    break
                if neighbour in is_waiting:
                    lowest[node] = min(lowest[node], numbers[neighbour])
            else:
                path.pop()
                if path:
                    lowest[path[-1][0]] = min(lowest[path[-1][0]], lowest[node])
                if lowest[node] == numbers[node]:
                    part = set()
                    while node not in part:
                        part.add(waiting.pop())
                    is_waiting -= part
                    if len(part) > 1:
                        yield part


def _visit(
    node: int,
    graph: Graph,
    numbers: dict[int, int],
    lowest: dict[int, int],
    waiting: list[int],
    is_waiting: set[int],
    path: list[tuple[int, Iterator[int]]],
) -> None:
    numbers[node] = lowest[node] = len(numbers)
    waiting.append(node)
    is_waiting.add(node)
    path.append((node, iter(sorted(graph.get(node, ())))))
