"""How each request is answered: one module for each API, named like its message module.

A handler knows the protocol's meaning, and is the only place where the wire and the log meet; it must not know
sockets or files. This is the table of contents, in the order of API keys; importing it registers them all.
"""

from barnabas.api_handlers import (  # noqa: I001
    produce,
    fetch,
    api_versions,
    describe_configs,
    alter_configs,
    incremental_alter_configs,
    list_config_resources,
)

__all__ = [
    "alter_configs",
    "api_versions",
    "describe_configs",
    "fetch",
    "incremental_alter_configs",
    "list_config_resources",
    "produce",
]
