"""Which segments of a log are of message formats v0 and v1, and have to be rewritten before it is opened.

Knows nothing of those formats but where they say their number. Apache Kafka reads such segments as they are, for as
long as they are kept. Here a log has one format: brokers from before Kafka 0.11 leave something to do, once.
"""

import contextlib
from typing import Final

from barnabas.log.files import Files
from barnabas.log.segment import LOG_SUFFIX
from barnabas.records.batch import MAGIC, MAGIC_AT

_LOOK: Final = MAGIC_AT + 1


def upgrade(files: Files, directory: str, sizes: dict[str, int], recover_from: int | None) -> dict[str, int]:
    """Rewrite those segments in ``directory`` that begin with a message of an old format; gives the files afterwards.

    ``sizes`` is what there is. Formats went up as time went by: the first segment tells whether there is anything to
    do. Where it tells nothing, only those are looked at that recovery would cut for it: from the one that holds
    ``recover_from`` on. The newest is rewritten first, so that the first goes on telling if this ends halfway. A
    message that is damaged, and all after it, stays as it is: it is for recovery to judge. Raises OSError.
    """
    names = sorted(name for name in sizes if name.endswith(LOG_SUFFIX) and name[: -len(LOG_SUFFIX)].isdecimal())
    if names and not _is_old(files, f"{directory}/{names[0]}"):
        names = [] if recover_from is None else _from_offset(names, recover_from)
    old = [name for name in reversed(names) if _is_old(files, f"{directory}/{name}")]
    if not old:
        return sizes
    from barnabas.log.old_segments import rewrite

    for name in old:
        rewrite(files, directory, name, sizes[name])
    return files.sizes(directory)


def _from_offset(names: list[str], offset: int) -> list[str]:
    """The segment that holds the offset, and those after it."""
    before = sum(int(name[: -len(LOG_SUFFIX)]) <= offset for name in names)
    return names[max(before - 1, 0) :]


def _is_old(files: Files, path: str) -> bool:
    """Whether a segment begins with a good message of an old format. One bit makes a 0 of magic 2: that is no proof."""
    with contextlib.closing(files.open(path)) as file:
        head = file.pread(_LOOK, 0)
        if len(head) < _LOOK or head[MAGIC_AT] >= MAGIC:
            return False
        from barnabas.log.old_segments import begins_well

        return begins_well(file)
