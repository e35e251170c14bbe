"""Reads key stores and trust stores from files, within limits.

Knows nothing of what is in them.
"""

import errno
from pathlib import Path

LARGEST_STORE = 16 * 1024 * 1024
"""The maximum size of a store. A config may also name an endless pipe, which must not block the event loop."""


def read_store(path: str) -> bytes:
    """Returns the content of a key or trust store.

    :raises OSError: it cannot be read, is not a regular file, or is too large
    """
    file = Path(path)
    if file.exists() and not (file.is_file() and file.stat().st_size <= LARGEST_STORE):
        raise OSError(errno.EINVAL, f"not a file of at most {LARGEST_STORE} bytes", path)
    return file.read_bytes()
