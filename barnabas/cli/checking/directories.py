"""Checks whole data directories: their owner, their partitions, and their checkpoints.

Knows nothing of the files of a partition. Each partition is checked by itself; the results are compared here.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from barnabas.cli.checking import cluster, partitions, quorum, texts
from barnabas.cli.checking.cluster import Cluster
from barnabas.cli.checking.findings import ERROR, WARNING, Findings
from barnabas.cli.checking.partitions import Extent, Known
from barnabas.cluster.image.image import MetadataImage

LOCK, CLEAN, META = ".lock", ".kafka_cleanshutdown", "meta.properties"
RECOVERY, STARTS, HIGH, CLEANER = (
    "recovery-point-offset-checkpoint",
    "log-start-offset-checkpoint",
    "replication-offset-checkpoint",
    "cleaner-offset-checkpoint",
)
BOOTSTRAP: Final = "bootstrap.checkpoint"
ORDINARY: Final = (LOCK, CLEAN, META, RECOVERY, STARTS, HIGH, CLEANER, BOOTSTRAP)
PASSING: Final = {
    "-delete": "of a deleted partition; the next start deletes it",
    "-future": "of a partition that was being moved here; the next start continues the move",
    "-stray": "of a stray partition; kept for inspection",
}

Offsets = Mapping[tuple[str, int], int]
Progress = Callable[[int], object]


class PartitionDirectory(NamedTuple):
    """A partition's directory."""

    path: Path
    topic: str
    number: int


class DataDirectory:
    """One of the ``log.dirs``."""

    def __init__(self, path: Path, findings: Findings) -> None:
        self.path, self.findings = path, findings
        self.partition_directories = sorted(filter(None, map(partition_directory, path.iterdir())))
        self.node_id: int | None = None
        self.cluster_id: str | None = None
        self.directory_id: bytes | None = None
        self.is_clean = (path / CLEAN).exists()
        self.extents: dict[tuple[str, int], Extent] = {}
        self.offsets: dict[str, Offsets] = {}

    def read_small_files(self) -> None:
        """Reads the files about the directory as a whole."""
        self._read_properties()
        for name in (RECOVERY, STARTS, HIGH, CLEANER):
            self.offsets[name] = texts.read_offsets(self.path / name, self.findings) or {}
        if (self.path / BOOTSTRAP).exists():
            quorum.check_snapshot(self.path / BOOTSTRAP, self.findings)
        lock = self.path / LOCK
        if lock.exists() and lock.stat().st_size:
            self.findings.warning("unknown", str(lock), "it is not empty")
        for path in sorted(self.path.iterdir()):
            ending = next((ending for ending in PASSING if path.name.endswith(ending)), None)
            if ending is not None:
                self.findings.warning("leftover", str(path), PASSING[ending])
            elif path.name.endswith(".tmp"):
                self.findings.warning("leftover", str(path), "an unfinished replacement of a file")
            elif path.name not in ORDINARY and partition_directory(path) is None:
                self.findings.warning("unknown", str(path), "it does not belong in a data directory")

    def _read_properties(self) -> None:
        path = self.path / META
        if not path.exists():
            self.findings.error("meta", str(path), "it is missing: the owner of the directory is unknown")
            return
        wanted = ("version", "cluster.id", "node.id", "directory.id")
        found = texts.read_properties(path, "=", wanted, self.findings)
        if found is None:
            return
        self.cluster_id, self.directory_id = found["cluster.id"], texts.uuid_of(found["directory.id"])
        number = found["node.id"]
        if (
            found["version"] != "1"
            or self.directory_id is None
            or not (number.isdecimal() and str(int(number)) == number)
        ):
            text = f"version {found['version']!r}, node {number!r}, directory {found['directory.id']!r}"
            self.findings.error("meta", str(path), text)
        else:
            self.node_id = int(number)

    # ------------------------------------------------------------ partitions

    def check_partitions(self, known: Cluster, progress: Progress) -> None:
        for partition_dir in self.partition_directories:
            extent = partitions.check(
                partition_dir.path, self.known_about(partition_dir, known), self.findings, progress
            )
            self.extents[partition_dir.topic, partition_dir.number] = extent
            if partition_dir.topic == cluster.METADATA_TOPIC:
                quorum.check(partition_dir.path, extent, self.node_id, self.findings, is_clean=self.is_clean)

    def known_about(self, partition_dir: PartitionDirectory, known: Cluster) -> Known:
        """Returns what the checkpoints and the metadata contain about a partition."""
        key = (partition_dir.topic, partition_dir.number)
        partition, compacts = known.partition(*key), known.compacts(partition_dir.topic)
        if key in self.offsets.get(CLEANER, {}):
            compacts = True  # by the broker's default, or in the past
        elif known.image is not None and partition_dir.topic in known.image.topics_by_name:
            compacts = bool(compacts)
        return Known(
            topic_id=known.topic_id(partition_dir.topic),
            compacts=compacts,
            cleaned_up_to=self.offsets.get(CLEANER, {}).get(key, 0),
            log_start_offset=self.offsets.get(STARTS, {}).get(key, 0),
            leader_epoch=partition.leader_epoch if partition is not None else None,
            is_clean=self.is_clean,
        )

    # ------------------------------------------------------------ metadata

    def check_against(self, known: Cluster) -> None:
        """Compares the directory, its owner and its partitions with the metadata."""
        image = known.image
        if image is None:
            return
        broker = image.brokers.get(self.node_id) if self.node_id is not None else None
        meta = str(self.path / META)
        if self.node_id is not None and image.brokers and broker is None:
            self.findings.error("meta", meta, f"node {self.node_id} is not in the metadata: {sorted(image.brokers)}")
        if broker is not None and broker.log_dirs and self.directory_id not in (None, *broker.log_dirs):
            self.findings.error("meta", meta, f"the directory id is not in the metadata of node {self.node_id}")
        self._check_clean_marker(broker.epoch if broker is not None else None)
        for partition_dir in self.partition_directories:
            self._check_assignment(partition_dir, known)
        for name, topic in image.topics_by_name.items():
            for index, partition in topic.partitions.items():
                replicas = dict(zip(partition.replicas, partition.directories, strict=False))
                is_here = self.node_id in replicas and replicas[self.node_id] == self.directory_id
                if is_here and (name, index) not in self.extents and self.is_clean:
                    path = str(self.path / f"{name}-{index}")
                    self.findings.error(
                        "missing", path, "it is missing, but assigned to this directory in the metadata"
                    )

    def _check_clean_marker(self, broker_epoch: int | None) -> None:
        path = self.path / CLEAN
        if not path.exists():
            return
        found = texts.read_json(path, self.findings)
        if not found:
            return  # empty before Kafka 3.7
        epoch = found.get("brokerEpoch")
        is_known = broker_epoch is None or epoch in (-1, broker_epoch)
        if sorted(found) != ["brokerEpoch", "version"] or found["version"] != 0 or not is_known:
            self.findings.error(
                "clean-shutdown", str(path), f"it contains {found}, but the broker epoch is {broker_epoch}"
            )

    def _check_assignment(self, partition_dir: PartitionDirectory, known: Cluster) -> None:
        if partition_dir.topic == cluster.METADATA_TOPIC or self.node_id is None:
            return
        partition, path = known.partition(partition_dir.topic, partition_dir.number), str(partition_dir.path)
        if partition is None or self.node_id not in partition.replicas:
            text = "the partition is not assigned to this node in the metadata; the next start renames it to -stray"
            self.findings.warning("stray", path, text)

    # ------------------------------------------------------------ checkpoints

    def check_checkpoints(self, known: Cluster) -> None:
        """Compares the four offset checkpoints with the logs."""
        for key, offset in self.offsets[RECOVERY].items():
            self._check_offset(RECOVERY, key, offset, must_be_end=self.is_clean)
        for key, offset in self.offsets[HIGH].items():
            partition = known.partition(*key)
            is_alone = partition is not None and len(partition.replicas) == 1
            self._check_offset(HIGH, key, offset, must_be_end=self.is_clean and is_alone)
        for key, offset in self.offsets[STARTS].items():
            self._check_start(key, offset)
        for key, offset in self.offsets[CLEANER].items():
            self._check_offset(CLEANER, key, offset, must_be_end=False)
        if self.is_clean:
            for name in (RECOVERY, HIGH):
                for key in self.extents.keys() - self.offsets[name].keys():
                    if key[0] != cluster.METADATA_TOPIC and (name == RECOVERY or known.partition(*key) is not None):
                        text = f"it has no line for {key[0]}-{key[1]}"
                        self.findings.error("checkpoint", str(self.path / name), text)

    def _check_offset(self, name: str, key: tuple[str, int], offset: int, *, must_be_end: bool) -> None:
        path, extent = str(self.path / name), self.extents.get(key)
        if extent is None:
            severity = ERROR if self.is_clean else WARNING
            self.findings.add(severity, "checkpoint", path, f"{key[0]}-{key[1]} is not in this directory", None, offset)
        elif offset > extent.end_offset or (must_be_end and offset != extent.end_offset):
            text = f"{key[0]}-{key[1]} has offset {offset}, but its log ends at {extent.end_offset}"
            self.findings.error("checkpoint", path, text, None, offset)

    def _check_start(self, key: tuple[str, int], offset: int) -> None:
        path, extent = str(self.path / STARTS), self.extents.get(key)
        self._check_offset(STARTS, key, offset, must_be_end=False)
        if extent is None or not self.is_clean:
            return
        first_epoch = extent.epochs[0][1] if extent.epochs else offset
        if offset <= extent.first_offset:
            text = f"{key[0]}-{key[1]} has offset {offset}, but its first segment begins at {extent.first_offset}"
            self.findings.error("checkpoint", path, text, None, offset)
        elif first_epoch != offset:
            text = f"{key[0]}-{key[1]} has offset {offset}, but its first leader epoch starts at {first_epoch}"
            self.findings.error("checkpoint", path, text, None, offset)


def partition_directory(path: Path) -> PartitionDirectory | None:
    """Returns the partition directory at the path; None if the path is something else."""
    topic, dash, number = path.name.rpartition("-")
    if dash and topic and number.isascii() and number.isdecimal() and path.is_dir():
        return PartitionDirectory(path, topic, int(number))
    return None


def check(paths: list[Path], findings: Findings, progress: Progress) -> list[DataDirectory]:
    """Checks the data directories of one broker. :raises OSError: a file cannot be read"""
    found = [DataDirectory(path, findings) for path in paths]
    for directory in found:
        directory.read_small_files()
    _check_identities(found, findings)
    known = Cluster(_image(found, findings))
    for directory in found:
        directory.check_partitions(known, progress)
    _check_doubles(found, findings)
    for directory in found:
        directory.check_against(known)
        directory.check_checkpoints(known)
    findings.finish()
    return found


def check_partition(path: Path, findings: Findings, progress: Progress) -> Extent:
    """Checks the directory of one partition, using the checkpoints and the metadata of its data directory.

    :raises OSError: a file cannot be read
    """
    real = path.resolve()
    around = DataDirectory(real.parent, Findings())
    around.read_small_files()
    known = Cluster(_image([around], Findings()))
    partition_dir = partition_directory(real) or PartitionDirectory(real, real.name, 0)
    extent = partitions.check(path, around.known_about(partition_dir, known), findings, progress)
    if partition_dir.topic == cluster.METADATA_TOPIC:
        quorum.check(path, extent, around.node_id, findings, is_clean=around.is_clean)
    findings.finish()
    return extent


def _image(found: list[DataDirectory], findings: Findings) -> MetadataImage | None:
    for directory in found:
        path = directory.path / cluster.METADATA_DIRECTORY
        if path.is_dir():
            try:
                return cluster.load(path)
            except cluster.Unreadable as error:
                findings.error("metadata", str(path), str(error))
    return None


def _check_identities(found: list[DataDirectory], findings: Findings) -> None:
    first = next((each for each in found if each.cluster_id is not None), None)
    for each in found:
        if first is not None and each is not first and each.cluster_id is not None:
            if (each.cluster_id, each.node_id) != (first.cluster_id, first.node_id):
                text = f"node {each.node_id} of cluster {each.cluster_id}, but {first.path} is of node {first.node_id}"
                findings.error("meta", str(each.path / META), f"{text} of cluster {first.cluster_id}")
            if each.directory_id == first.directory_id:
                findings.error("meta", str(each.path / META), f"it has the directory id of {first.path}")


def _check_doubles(found: list[DataDirectory], findings: Findings) -> None:
    seen: dict[tuple[str, int], Path] = {}
    for directory in found:
        for partition_dir in directory.partition_directories:
            other = seen.setdefault((partition_dir.topic, partition_dir.number), partition_dir.path)
            if other is not partition_dir.path:
                findings.error("twice", str(partition_dir.path), f"the partition is in {other} as well")
