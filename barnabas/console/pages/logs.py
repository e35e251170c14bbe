"""The page on the log of a partition: its segments, if the broker's files are on this machine, and its batches.

Knows nothing of the records in a batch, except their number.
"""

from pathlib import Path
from typing import Any, Final

from barnabas.console.fetching import Topic
from barnabas.console.page import Answer, PageRequest, Route, Routes, Shown
from barnabas.console.pages.records import batch_row
from barnabas.console.reading import existing

BATCHES_ON_A_PAGE: Final = 50
NEWEST_OFFSETS: Final = 1000


def log(request: PageRequest) -> Answer:
    name, partition = request.path["topic"], request.whole("partition")
    with request.sources.client.admin() as admin:
        topic = Topic(admin, existing(admin, name))
        topic.check(partition)
        beginning, end, _ = topic.bounds([partition]).get(partition, (0, 0, 0))
        start = request.whole("offset") if request.text("offset") else end - NEWEST_OFFSETS
        start = min(max(start, beginning), end)
        fetched = topic.fetch({partition: start}).get(partition) if start < end else None
    batches = [batch_row(each) for each in (fetched.batches if fetched else ())[:BATCHES_ON_A_PAGE]]
    place = {"partition": partition, "beginning": beginning, "end": end, "start": start}
    files = segments(request.sources.log_dirs, name, partition)
    return Shown(
        "log.html",
        {
            "topic": name, "partitions": list(topic.leaders), "batches": batches, "segments": files,
            "has_files": bool(request.sources.log_dirs), **place,
        },
    )  # fmt: skip


def segments(log_dirs: tuple[str, ...], topic: str, partition: int) -> list[dict[str, Any]]:
    """Returns the segments of a partition in the directories of a broker on this machine, the newest first.

    :param topic: the name of an existing topic, so that it is not the name of another directory
    """
    found = []
    for directory in log_dirs:
        for path in sorted((Path(directory) / f"{topic}-{partition}").glob("*.log"), reverse=True):
            try:
                status = path.stat()
            except OSError:  # it has been deleted
                continue
            modified = int(status.st_mtime * 1000)
            found.append({"name": path.name, "base_offset": int(path.stem), "size": status.st_size, "time": modified})
    return found


ROUTES: Final[Routes] = (Route("/topics/{topic}/log", log),)
