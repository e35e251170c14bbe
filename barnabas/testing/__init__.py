"""For tests: a broker in the process of the tests, and a pytest plugin that provides it.

Knows nothing of any client; tests get an address. pytest loads the plugin in every run if Barnabas is installed, so
this module imports nothing until it is used.

>>> from barnabas.testing import Broker
>>> with Broker() as broker:
...     broker.create_topic("orders", partitions=3)
...     broker.records("orders")
[]
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from barnabas.testing.in_process import Broker, Record
    from barnabas.testing.security import allow, deny

__all__ = ["Broker", "Record", "allow", "deny"]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from barnabas.testing import in_process, security

    return getattr(security if name in ("allow", "deny") else in_process, name)
