"""The first records of a cluster: ``bootstrap.checkpoint``, and the activation records of a new leader.

Knows nothing of elections. Apache Kafka's ``BootstrapDirectory`` and ``ActivationRecordsGenerator``.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from barnabas.cluster.controller.feature_decisions import bootstrap_records, first_records
from barnabas.cluster.features import FEATURES, METADATA_TRANSACTIONS, METADATA_VERSION, first_levels
from barnabas.cluster.quorum.metadata_log import MetadataLogError
from barnabas.cluster.quorum.snapshots import KRaftState, decode_snapshot, encode_snapshot
from barnabas.errors import CorruptMessage
from barnabas.log.files import Files
from barnabas.wire.messages.metadata_records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
)

FILE_NAME = "bootstrap.checkpoint"


def read_or_format(files: Files, path: str, wanted: Mapping[str, int], now_ms: int) -> list[Any]:
    """Returns the records of ``bootstrap.checkpoint``; writes the file first where there is none.

    :param wanted: feature levels of a new file that differ from the defaults
    :raises MetadataLogError: the file is damaged or lacks ``metadata.version``
    """
    if files.exists(path):
        try:
            bootstrap = decode_snapshot(files.read(path)).records
        except CorruptMessage as error:
            raise MetadataLogError(f"{path}: {error}") from error
    else:
        bootstrap = write(files, path, wanted, (), now_ms)
    if METADATA_VERSION not in levels_of(bootstrap):
        raise MetadataLogError(f"{path}: {METADATA_VERSION} is not among the features of the formatted directory")
    return bootstrap


def write(files: Files, path: str, wanted: Mapping[str, int], others: Sequence[Any], now_ms: int) -> list[Any]:
    """Writes ``bootstrap.checkpoint`` and returns its records: the feature levels, and then the ``others``."""
    levels = first_levels(wanted)
    bootstrap = [*bootstrap_records(levels), *others]
    data = encode_snapshot(
        bootstrap,
        kraft=KRaftState(),
        metadata_version=levels[METADATA_VERSION],
        epoch=0,
        last_timestamp=0,
        now_ms=now_ms,
    )
    files.write_atomically(path, data, sync=True)
    return bootstrap


def levels_of(bootstrap: Sequence[Any]) -> dict[str, int]:
    """Returns the feature levels among the records."""
    return {each.name: each.feature_level for each in bootstrap if isinstance(each, FeatureLevelRecord)}


def activation_records(bootstrap: Sequence[Any], min_insync_replicas: int) -> list[Any]:
    """Returns the records that the first leader of a cluster appends, in a transaction if the level allows it
    (KIP-868).
    """
    records = first_records(bootstrap, min_insync_replicas)
    if levels_of(bootstrap)[METADATA_VERSION] >= METADATA_TRANSACTIONS:
        return [BeginTransactionRecord(name="Bootstrap records"), *records, EndTransactionRecord()]
    return records


def aborted_transaction() -> list[Any]:
    """Returns the records that a leader appends when the log ends in a transaction of an earlier leader."""
    return [AbortTransactionRecord(reason="The leader that began it has stopped")]


def check_supported(levels: Mapping[str, int]) -> None:
    """Checks that this node supports the cluster's feature levels.

    :raises MetadataLogError: a feature or its level is not supported
    """
    for name, level in levels.items():
        known = FEATURES.get(name)
        if known is None or not known.first <= level <= known.last:
            raise MetadataLogError(f"the cluster is at level {level} of {name}, which this version does not know")
