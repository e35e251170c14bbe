"""Finds the segments of message formats v0 and v1, and has them rewritten before a log is opened.

Knows nothing of those formats but the position of their magic byte. Apache Kafka reads such segments as they are. Here
a log has one format, so the segments of a broker before Kafka 0.11 are rewritten once.
"""

import contextlib
from typing import Final

from barnabas.log.files import Files
from barnabas.log.segment import LOG_SUFFIX
from barnabas.records.batch import MAGIC, MAGIC_AT

_LOOK: Final = MAGIC_AT + 1


def upgrade(files: Files, directory: str, sizes: dict[str, int], recover_from: int | None) -> dict[str, int]:
    """Rewrites the segments in ``directory`` that begin with a message of an old format. Returns the files afterwards.

    The message format only increased over time, so the first segment shows whether there is anything to do. If it does
    not, only the segments that recovery would check are looked at. The newest segment is rewritten first, so that the
    first one still shows it after a crash in between. A damaged message and everything after it is copied as it is, for
    recovery to cut.

    :param sizes: the files in the directory
    :param recover_from: the recovery point; None after a clean shutdown
    :raises OSError: a file cannot be read or written
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
    """Returns the segment that holds the offset, and those after it."""
    before = sum(int(name[: -len(LOG_SUFFIX)]) <= offset for name in names)
    return names[max(before - 1, 0) :]


def _is_old(files: Files, path: str) -> bool:
    """Returns whether a segment begins with an intact message of an old format.

    The magic byte alone is not enough: a flipped bit turns magic 2 into 0.
    """
    with contextlib.closing(files.open(path)) as file:
        head = file.pread(_LOOK, 0)
        if len(head) < _LOOK or head[MAGIC_AT] >= MAGIC:
            return False
        from barnabas.log.old_segments import is_first_message_intact

        return is_first_message_intact(file)
