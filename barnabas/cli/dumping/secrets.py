"""Hides the secrets in decoded records of the metadata log.

Knows nothing of where the records come from. Apache Kafka's ``RecordRedactor`` hides the same in its logs.
"""

from typing import Any

from barnabas.config.definition import HIDDEN
from barnabas.config.dynamic import BROKER_RESOURCE
from barnabas.config.listener_configs import declaration_of

SCRAM_SECRETS = ("salt", "stored_key", "server_key")


def without_secrets(record: dict[str, Any]) -> dict[str, Any]:
    """Returns the decoded value of a metadata record with its secrets replaced.

    >>> without_secrets({"type": "ConfigRecord", "resource_type": 4, "name": "ssl.key.password", "value": "xyzzy"})
    {'type': 'ConfigRecord', 'resource_type': 4, 'name': 'ssl.key.password', 'value': '[hidden]'}

    :param record: its fields and its ``type``
    """
    secrets: tuple[str, ...] = ()
    if record["type"] == "UserScramCredentialRecord":
        secrets = SCRAM_SECRETS
    elif record["type"] == "ConfigRecord" and _is_sensitive(record):
        secrets = ("value",)
    return record | {name: HIDDEN for name in secrets if record[name] is not None}


def _is_sensitive(record: dict[str, Any]) -> bool:
    """Returns whether the config is a password, or a broker's config that is unknown here and may be one."""
    if record["resource_type"] != BROKER_RESOURCE:
        return False
    declaration = declaration_of(record["name"])
    return declaration is None or declaration.sensitive
