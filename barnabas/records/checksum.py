"""The CRC-32C (Castagnoli) that guards record batches, done by the ``crc32c`` package in hardware.

Knows nothing of what it is computed over.
"""

import sys
from collections.abc import Callable
from importlib.machinery import PathFinder
from importlib.util import module_from_spec

Checksum = Callable[[bytes | bytearray | memoryview], int]


def _load() -> Checksum:
    """The package's C function, without the package around it.

    ``import crc32c`` asks ``importlib.metadata`` for its own version, which pulls in the whole ``email`` package: 35 to
    50 ms, a third of what a broker may take to start. The extension module in it takes one.
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
