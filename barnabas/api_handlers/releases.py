"""The APIs and features that each release of Apache Kafka advertised, and the part of them that this broker supports.

Knows nothing of what any API does. It is imported only if ``barnabas.compatible.with`` is set.

Sources: the ApiVersions response of each release; before 4.0, that of a broker with ZooKeeper.
"""

from collections.abc import Mapping

from barnabas.api_handlers.registry import BROKER_APIS, Api
from barnabas.config.validators import ConfigError
from barnabas.wire.schema import Versions

CHANGES = {
    "0.8.0": "0:0 1:0 2:0 3:0",
    "0.8.1": "8:0 9:0",
    "0.8.2": "8:0-1 9:0-1 10:0",
    "0.9": "0:0-1 1:0-1 8:0-2 11:0 12:0 13:0 14:0 15:0 16:0",
    "0.10.0": "0:0-2 1:0-2 3:0-1 4:0 5:0 6:0-2 7:1 17:0 18:0",
    "0.10.1": "1:0-3 2:0-1 3:0-2 11:0-1 19:0 20:0",
    "0.10.2": "6:0-3 9:0-2 19:0-1",
    "0.11": (
        "0:0-3 1:0-5 2:0-2 3:0-4 8:0-3 9:0-3 10:0-1 11:0-2 12:0-1 13:0-1 14:0-1 15:0-1 16:0-1 18:0-1 19:0-2 "
        "20:0-1 21:0 22:0 23:0 24:0 25:0 26:0 27:0 28:0 29:0 30:0 31:0 32:0 33:0"
    ),
    "1.0": "0:0-5 1:0-6 3:0-5 4:0-1 6:0-4 7:0-1 17:0-1 34:0 35:0 36:0 37:0",
    "1.1": "1:0-7 32:0-1 38:0 39:0 40:0 41:0 42:0",
    "2.0": (
        "0:0-6 1:0-8 2:0-3 3:0-6 8:0-4 9:0-4 10:0-2 11:0-3 12:0-2 13:0-2 14:0-2 15:0-2 16:0-2 18:0-2 19:0-3 "
        "20:0-2 21:0-1 22:0-1 23:0-1 24:0-1 25:0-1 26:0-1 28:0-1 29:0-1 30:0-1 31:0-1 32:0-2 33:0-1 34:0-1 "
        "35:0-1 37:0-1 38:0-1 39:0-1 40:0-1 41:0-1 42:0-1"
    ),
    "2.1": "0:0-7 1:0-10 2:0-4 3:0-7 8:0-6 9:0-5 20:0-3 23:0-2 28:0-2",
    "2.2": "2:0-5 4:0-2 5:0-1 6:0-5 7:0-2 11:0-4 36:0-1 43:0",
    "2.3": "1:0-11 3:0-8 8:0-7 11:0-5 12:0-3 14:0-3 15:0-3 23:0-3 44:0",
    "2.4": (
        "0:0-8 3:0-9 4:0-4 5:0-2 6:0-6 7:0-3 8:0-8 9:0-6 10:0-3 11:0-6 12:0-4 13:0-4 14:0-4 15:0-5 16:0-3 "
        "18:0-3 19:0-5 20:0-4 22:0-2 38:0-2 42:0-2 43:0-2 44:0-1 45:0 46:0 47:0"
    ),
    "2.5": "9:0-7 11:0-7 14:0-5 22:0-3 28:0-3 29:0-2 30:0-2 31:0-2 36:0-2 37:0-2 39:0-2 40:0-2 41:0-2",
    "2.6": "5:0-3 16:0-4 21:0-2 32:0-3 35:0-2 48:0 49:0",
    "2.7": "1:0-12 19:0-6 20:0-5 22:0-4 24:0-2 25:0-2 26:0-2 37:0-3 50:0 51:0 56:0 57:0",
    "2.8": (
        "0:0-9 2:0-6 3:0-11 4:0-5 6:0-7 19:0-7 20:0-6 23:0-4 24:0-3 25:0-3 26:0-3 27:0-1 32:0-4 33:0-2 34:0-2 "
        "48:0-1 49:0-1 60:0 61:0"
    ),
    "3.0": "2:0-7 9:0-8 10:0-4 65:0 66:0 67:0",
    "3.1": "1:0-13 3:0-12",
    "3.2": "4:0-6 11:0-9 13:0-5 35:0-3 56:0-1",
    "3.3": "29:0-3 30:0-3 31:0-3 35:0-4 38:0-3 41:0-3 56:0-2 57:0-1",
    "3.4": "4:0-7 5:0-4 6:0-8 58:0",
    "3.5": "1:0-15 2:0-8 56:0-3",
    "3.6": "24:0-4",
    "3.7": "0:0-10 1:0-16 8:0-9 9:0-9 60:0-1 68:0",
    "3.8": "0:0-11 10:0-5 16:0-5 22:0-5 24:0-5 25:0-4 26:0-4 28:0-4 66:0-1 69:0",
    "3.9": "1:0-17 2:0-9 10:0-6 18:0-4",
    "4.0": (
        "0:0-12 1:4-17 2:1-10 3:0-13 4:- 5:- 6:- 7:- 8:2-9 9:1-9 11:2-9 15:0-6 19:2-7 20:1-6 23:2-4 26:0-5 "
        "27:1 28:0-5 29:1-3 30:1-3 31:1-3 32:1-4 34:1-2 35:1-4 38:1-3 39:1-2 40:1-2 41:1-3 55:0-2 56:- 57:0-2 "
        "58:- 60:0-2 64:0 67:- 68:0-1 69:0-1 74:0 75:0 80:0 81:0"
    ),
    "4.1": ("0:0-13 1:4-18 11:0-9 45:0-1 66:0-2 74:0-1 76:1 77:1 78:1 79:1 83:0 84:0 85:0 86:0 87:0 90:0 91:0 92:0"),
    "4.2": "2:1-11 8:2-10 9:1-10 27:1-2 78:1-2 79:1-2 80:0-1 85:0-1 87:0-1 88:0 89:0 90:0-1",
    "4.3": "35:1-5",
    "4.4": "18:0-5 28:0-6 42:0-3 88:0-1 89:0-1 93:0 94:0",
}
"""The changes of each release: API keys, each with its first and last version, or ``-`` if it was removed."""

FEATURES = {
    "3.3": "metadata.version:1-7",
    "3.4": "metadata.version:1-8",
    "3.5": "metadata.version:1-11",
    "3.6": "metadata.version:1-14",
    "3.7": "metadata.version:1-19",
    "3.8": "metadata.version:1-20",
    "3.9": "metadata.version:1-21 kraft.version:0-1",
    "4.0": "metadata.version:7-25 group.version:0-1 transaction.version:0-2 eligible.leader.replicas.version:0-1",
    "4.1": "metadata.version:7-27 share.version:0-1",
    "4.2": "metadata.version:7-29 streams.version:0-1",
    "4.3": "metadata.version:7-30",
}
"""The changes of each release in the supported features and their levels."""


def find(text: str) -> str:
    """Returns the release that a version number stands for: 2.8 for ``2.8`` and ``2.8.1``, 0.10.2 for ``0.10``.

    :raises ConfigError: there is no such release
    """
    words = text.strip().split(".")
    for release in reversed(CHANGES):
        known = release.split(".")
        if words[: len(known)] == known or (len(words) > 1 and known[: len(words)] == words):
            return release
    first, *_, last = CHANGES
    raise ConfigError("barnabas.compatible.with", text, f"a release of Apache Kafka from {first} to {last}")


def advertised(release: str) -> dict[int, Versions]:
    """Returns the versions that a broker of that release advertised, by API key."""
    return {int(key): versions for key, versions in _at(release, CHANGES).items()}


def _at(release: str, changes: Mapping[str, str]) -> dict[str, Versions]:
    """Returns the result of all changes up to that release."""
    there: dict[str, Versions] = {}
    for each in CHANGES:
        for change in changes.get(each, "").split():
            key, _, versions = change.partition(":")
            if versions == "-":
                del there[key]
            else:
                there[key] = Versions.parse(versions)
        if each == release:
            break
    return there


def narrowed(release: str) -> dict[int, Api]:
    """Returns the APIs that both that release and this broker support, in the versions that both have."""
    then = advertised(release)
    apis = {}
    for key, api in BROKER_APIS.items():
        if key in then and (versions := _common(api.versions, then[key])):
            apis[key] = api.within(versions)
    return apis


def has_telemetry(release: str) -> bool:
    """Returns whether a broker of that release with a telemetry receiver advertised the APIs of KIP-714."""
    order = list(CHANGES)
    return order.index(release) >= order.index("3.7")


def _common(ours: Versions, theirs: Versions) -> Versions | None:
    first, last = max(ours.first, theirs.first), min(ours.last, theirs.last)
    return Versions(first, last) if first <= last else None


def missing(release: str) -> dict[int, Versions]:
    """Returns the APIs of that release that this broker does not support, or not in all versions."""
    then, ours = advertised(release), narrowed(release)
    return {key: versions for key, versions in then.items() if key not in ours or ours[key].versions != versions}


def features(release: str, known: Mapping[str, Versions]) -> dict[str, Versions]:
    """Returns the features that both that release and this broker support, with the levels that both have."""
    then = _at(release, FEATURES)
    common = {name: _common(levels, then[name]) for name, levels in known.items() if name in then}
    return {name: levels for name, levels in common.items() if levels is not None}
