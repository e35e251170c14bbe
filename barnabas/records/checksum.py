"""The CRC-32C (Castagnoli) of record batches, computed in hardware by the ``crc32c`` package.

Knows nothing of what it is computed over.
"""

import sys
from collections.abc import Callable
from importlib.machinery import PathFinder
from importlib.util import module_from_spec

Checksum = Callable[[bytes | bytearray | memoryview], int]


def _load() -> Checksum:
    """Imports the C function of the package, without the package itself.

    ``import crc32c`` takes 35 to 50 ms, a third of the broker's start-up time, because it reads its version through
    ``importlib.metadata``, which imports ``email``. The extension module takes 1 ms.
    """
    if "crc32c" not in sys.modules:
        package = PathFinder.find_spec("crc32c")
        locations = package.submodule_search_locations if package else None
        spec = PathFinder.find_spec("crc32c._crc32c", locations) if locations else None
        if spec is not None and spec.loader is not None:
            extension = module_from_spec(spec)
            spec.loader.exec_module(extension)
            function: Checksum = extension.crc32c
            return function
    from crc32c import crc32c as function_of_package

    return function_of_package


crc32c: Checksum = _load()
