"""For tests: a broker in the process of the tests, a cluster, a proxy, and a pytest plugin that provides some of them.

Knows nothing of any client; tests get an address. pytest loads the plugin in every run if Barnabas is installed, so
this module imports nothing until it is used.

>>> from barnabas.testing import Broker
>>> with Broker() as broker:
...     broker.create_topic("orders", partitions=3)
...     broker.records("orders")
[]
"""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from barnabas.testing.asynchronous import AsyncBroker
    from barnabas.testing.cluster import Cluster
    from barnabas.testing.controls import Record
    from barnabas.testing.in_process import Broker
    from barnabas.testing.proxying import Proxy
    from barnabas.testing.saving import State
    from barnabas.testing.security import allow, deny

__all__ = ["AsyncBroker", "Broker", "Cluster", "Proxy", "Record", "State", "allow", "deny"]

_MODULES = {
    "AsyncBroker": "asynchronous",
    "Cluster": "cluster",
    "Proxy": "proxying",
    "Record": "controls",
    "State": "saving",
    "allow": "security",
    "deny": "security",
}


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_MODULES.get(name, 'in_process')}"), name)
