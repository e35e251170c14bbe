"""Repairs logs: opens them as a broker does after a crash, and closes them.

Knows nothing of how a log is recovered: ``barnabas.log`` does it, and its warnings are reported.
"""

import contextlib
import logging
from collections.abc import Callable, Iterator
from pathlib import Path

from barnabas.cli.checking import cluster, texts
from barnabas.cli.checking.directories import CLEAN, CLEANER, META, RECOVERY
from barnabas.cli.checking.findings import Findings
from barnabas.cli.checking.partitions import EPOCHS
from barnabas.clock import SystemClock
from barnabas.cluster.image.image import MetadataImage
from barnabas.cluster.quorum.metadata_log import topic_config
from barnabas.config import BrokerConfig
from barnabas.config.dynamic import TOPIC_RESOURCE
from barnabas.config.topic import TopicConfig
from barnabas.errors import KafkaError
from barnabas.log import meta_properties
from barnabas.log.files import DiskFiles
from barnabas.log.log_directory import LogDirectoryError
from barnabas.log.log_manager import LogManager
from barnabas.log.meta_properties import InvalidMetaProperties, MetaProperties

Report = Callable[[str], object]


class CannotRepair(Exception):
    """The directories cannot be opened; the message says why."""


def repair(directories: list[Path], findings: Findings, report: Report) -> None:
    """Recovers every log from its beginning, as after a crash.

    :param report: called with the text of each repair
    :raises CannotRepair: the directories cannot be opened
    :raises OSError: a file cannot be read or written
    """
    owner = _owner(directories[0])
    manager = LogManager(DiskFiles(), [str(each) for each in directories], clock=SystemClock())
    with _reported(report):
        try:
            _force_recovery(directories, findings, report)
            manager.start(owner.node_id, owner.cluster_id)
            metadata = manager.open(cluster.METADATA_TOPIC, 0, topic_config())
            image = MetadataImage() if metadata is None else cluster.load(Path(metadata.directory))
            manager.open_all(_configs(directories, image))
        except (LogDirectoryError, KafkaError, cluster.Unreadable) as error:
            for directory in manager.directories:
                directory.release()
            raise CannotRepair(str(error)) from error
        for (topic, number), log in manager.logs.items():
            partition = image.partition(topic, number)
            if partition is not None and len(partition.replicas) == 1:
                log.maybe_set_high_watermark(log.log_end_offset)  # there is no other replica
        broker = image.brokers.get(owner.node_id)
        manager.close(broker.epoch if broker is not None else -1)
    offline = next((each for each in manager.directories if each.offline is not None), None)
    if offline is not None:
        raise CannotRepair(f"{offline.path}: {offline.offline}")
    report(f"{len(manager.logs)} logs were opened, checked from their beginning, and closed")


def _owner(directory: Path) -> MetaProperties:
    try:
        owner = meta_properties.read(DiskFiles(), str(directory))
    except InvalidMetaProperties as error:
        raise CannotRepair(str(error)) from error
    if owner is None:
        raise CannotRepair(f"{directory / META} is missing")
    return owner


def _force_recovery(directories: list[Path], findings: Findings, report: Report) -> None:
    """Deletes the files that let the broker skip recovery, and leader epoch checkpoints that contradict the batches."""
    for directory in directories:
        (directory / CLEAN).unlink(missing_ok=True)
        (directory / RECOVERY).unlink(missing_ok=True)
    wrong = {Path(each.path).parent for each in findings.all if each.kind in ("epoch", "epochs")}
    for directory in sorted(wrong):
        if directory.parent in directories and (directory / EPOCHS).exists():
            (directory / EPOCHS).unlink()
            report(f"{directory / EPOCHS} was deleted, to be rebuilt from the batches")


def _configs(directories: list[Path], image: MetadataImage) -> Callable[[str], TopicConfig]:
    """Returns a function that returns a topic's configs, by the metadata and the cleaner's checkpoints."""
    config = BrokerConfig.from_properties({})
    offsets = [texts.read_offsets(directory / CLEANER, Findings()) or {} for directory in directories]
    compacted = {topic for each in offsets for topic, _ in each}

    def config_of(topic: str) -> TopicConfig:
        overrides = dict(image.configs_of(TOPIC_RESOURCE, topic))
        if topic in compacted:
            overrides.setdefault("cleanup.policy", "compact")
        return config.topic(overrides)

    return config_of


@contextlib.contextmanager
def _reported(report: Report) -> Iterator[None]:
    """Reports the warnings and errors that the broker's modules log within the block."""

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            report(record.getMessage())

    logger, handler = logging.getLogger("barnabas"), Handler(logging.WARNING)
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
