"""The levels of features beside Apache Kafka's: upgrades from old metadata, and directories used by both brokers.

Apache Kafka's own tool reads the metadata logs of both.
"""

import json
import re
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import NewTopic

from compat_tests.running import BarnabasProcess

from .apache import CURRENT, PREVIOUS, ApacheKafka, KafkaUnavailable, jars, run_java
from .hand_over import (
    BROKER,
    SETTINGS,
    TOPIC,
    admin_of,
    alter,
    apache_on,
    barnabas_on,
    commit,
    complaints,
    differences,
    facts,
    play,
    running,
    wait,
    write,
)
from .play import error_codes
from .scenarios.features import ELR, KRAFT, METADATA, SAFE, SHARE, TRANSACTIONS, UPGRADE, update
from .steps import ask, ready

pytestmark = pytest.mark.xdist_group("hand_over")

OLD = {METADATA: 8}
"""3.4-IV0: without metadata transactions, registered controllers, directories, eligible leader replicas."""

RISEN = r"Upgrading metadata.version from"
"""Levels with a warning of Apache Kafka."""

CLIMB = (
    [(ELR, 1, UPGRADE)],
    [(METADATA, 12, UPGRADE)],
    [(METADATA, 16, UPGRADE)],
    [(METADATA, 15, SAFE)],
    [(METADATA, 17, UPGRADE)],
    [(METADATA, 16, SAFE)],
    [(METADATA, 25, UPGRADE), (TRANSACTIONS, 2, UPGRADE)],
    [(METADATA, 24, SAFE), (TRANSACTIONS, 1, SAFE)],
    [(TRANSACTIONS, 2, SAFE)],
    [(METADATA, 24, UPGRADE), (ELR, 1, UPGRADE), (SHARE, 1, UPGRADE)],
    [(SHARE, 0, SAFE)],
    [(KRAFT, 1, UPGRADE)],
    [(METADATA, 30, UPGRADE)],
)


def update_features(bootstrap: str, *updates: tuple[str, int, int]) -> int:
    """Returns the error code of a request that is carried out."""
    step = update(*updates, validate=False)
    (answer,) = play(bootstrap, ask("UpdateFeatures", v=2, **step.body))
    return int(answer["ErrorCode"])


def api_versions(bootstrap: str) -> Any:
    (found,) = play(bootstrap, ask("ApiVersions", v=4, ClientSoftwareName="compat", ClientSoftwareVersion="1"))
    return found


def finalized(bootstrap: str) -> dict[str, int]:
    return {each["Name"]: each["MaxVersionLevel"] for each in api_versions(bootstrap)["FinalizedFeatures"]}


def supported(bootstrap: str) -> dict[str, tuple[int, int]]:
    found = api_versions(bootstrap)["SupportedFeatures"]
    return {each["Name"]: (each["MinVersion"], each["MaxVersion"]) for each in found}


def await_levels(bootstrap: str, levels: dict[str, int]) -> None:
    """Waits until clients get the levels: Apache Kafka's brokers apply a change after its controller."""
    deadline = time.monotonic() + 60
    while not levels.items() <= (dict.fromkeys(levels, 0) | (found := finalized(bootstrap))).items():
        assert time.monotonic() < deadline, f"{found} instead of {levels}"
        time.sleep(0.02)


def climb(bootstrap: str) -> list[Any]:
    """Returns the result of each step, with changes made in between at the lower and at the higher levels."""
    admin = admin_of(bootstrap)
    seen: list[Any] = [supported(bootstrap), finalized(bootstrap)]
    wait(admin.create_topics([NewTopic("low", 2, 1, config={"min.insync.replicas": "1"})]))
    alter(bootstrap, BROKER, "1", "min.insync.replicas", "2")
    cordon = {"Name": "cordoned.log.dirs", "ConfigOperation": 0, "Value": "*"}
    body = {"Resources": [{"ResourceType": BROKER, "ResourceName": "1", "Configs": [cordon]}]}
    seen.append(error_codes(play(bootstrap, ask("IncrementalAlterConfigs", v=1, **body))))
    for updates in CLIMB:
        code = update_features(bootstrap, *updates)
        if not code:
            await_levels(bootstrap, {name: level for name, level, _ in updates})
        seen.append((updates, code, finalized(bootstrap)))
    alter(bootstrap, TOPIC, "low", "min.insync.replicas", "2")
    wait(admin.create_topics([NewTopic("high", 1, 1)]))
    return seen


def metadata_records(home: Path) -> dict[str, Counter[str]]:
    """Returns the records of each type in a metadata log: counts by version, and the levels and configs they set."""
    log = home / "data" / "__cluster_metadata-0" / "00000000000000000000.log"
    options = ("--cluster-metadata-decoder", "--skip-record-metadata", "--files", str(log))
    dumped = run_java(CURRENT, "org.apache.kafka.tools.DumpLogSegments", *options)
    found: dict[str, Counter[str]] = {}
    for text in re.findall(r"payload: (\{.*\})", dumped.stdout):
        record = json.loads(text)
        kind = record["type"]
        data = record["data"] if kind in ("FEATURE_LEVEL_RECORD", "CONFIG_RECORD", "CLEAR_ELR_RECORD") else ""
        found.setdefault(kind, Counter())[f"{record['version']} {data}"] += 1
    registered = found["REGISTER_BROKER_RECORD"]  # more than one if a response was late and a broker retried
    found["REGISTER_BROKER_RECORD"] = Counter(set(registered))
    return found


COMPARED = (
    "FEATURE_LEVEL_RECORD", "CONFIG_RECORD", "CLEAR_ELR_RECORD", "TOPIC_RECORD", "PARTITION_RECORD",
    "REGISTER_BROKER_RECORD", "REGISTER_CONTROLLER_RECORD", "BEGIN_TRANSACTION_RECORD",
)  # fmt: skip
"""Excluded: the records of a broker's log directories, which Barnabas writes at once."""


def test_levels_rise_alike(kafka_jars: Path, tmp_path: Path) -> None:
    """Compares every response, every finalized level, and the records and versions in the metadata log."""
    theirs = ApacheKafka(tmp_path / "theirs", SETTINGS, features=OLD)
    ours = BarnabasProcess(tmp_path / "ours", SETTINGS, OLD)
    with running(theirs) as bootstrap:
        wanted = climb(bootstrap)
    with running(ours) as bootstrap:
        assert climb(bootstrap) == wanted
    expected, found = metadata_records(theirs.home), metadata_records(ours.home)
    assert expected["FEATURE_LEVEL_RECORD"]
    assert {kind: found.get(kind) for kind in COMPARED} == {kind: expected.get(kind) for kind in COMPARED}
    with running(barnabas_on(ours.home)) as bootstrap:
        assert finalized(bootstrap) == wanted[-1][-1]
    assert not ours.complaints()


def test_levels_of_barnabas_upgraded_by_apache_kafka(kafka_jars: Path, tmp_path: Path) -> None:
    levels = {METADATA: 25, TRANSACTIONS: 1}
    theirs = apache_on(tmp_path)
    ours = BarnabasProcess(tmp_path, SETTINGS, levels)
    with running(ours) as bootstrap:
        fill(bootstrap, "before")
        assert finalized(bootstrap) == {**levels, "group.version": 1}
        filled = facts(bootstrap)
    with running(theirs) as bootstrap:
        assert not differences(facts(bootstrap), filled)
        assert update_features(bootstrap, (TRANSACTIONS, 2, UPGRADE), (METADATA, 30, UPGRADE), (KRAFT, 1, UPGRADE)) == 0
        await_levels(bootstrap, {METADATA: 30, KRAFT: 1})
        fill(bootstrap, "after")
        risen = facts(bootstrap)
    with pytest.raises(RuntimeError, match="barnabas features upgrade"):
        ours.start()
    with running(barnabas_on(tmp_path)) as bootstrap:
        assert not differences(facts(bootstrap), risen)
    assert not complaints(theirs.log, (RISEN,))


def test_a_directory_for_an_older_release(kafka_jars: Path, tmp_path: Path) -> None:
    """The last Apache Kafka before 4.0 starts without warnings on a directory of its level."""
    try:
        jars(PREVIOUS)
    except KafkaUnavailable as missing:
        pytest.skip(str(missing))
    theirs = apache_on(tmp_path, version=PREVIOUS)
    ours = BarnabasProcess(tmp_path, SETTINGS, {METADATA: 21})
    with running(ours) as bootstrap:
        fill(bootstrap, "before")
        filled = facts(bootstrap)
    with running(theirs) as bootstrap:
        assert not differences(facts(bootstrap), filled)
        fill(bootstrap, "after")
        added = facts(bootstrap)
    with running(ours) as bootstrap:
        assert not differences(facts(bootstrap), added)
    assert not complaints(theirs.log)
    assert not ours.complaints()


def test_levels_of_apache_kafka_upgraded_by_barnabas(kafka_jars: Path, tmp_path: Path) -> None:
    """Old metadata on two unregistered log directories is upgraded by Barnabas to a level that registers them."""
    where = {"log.dirs": f"{tmp_path}/data,{tmp_path}/more"}
    theirs, ours = apache_on(tmp_path, where, features={METADATA: 7}), barnabas_on(tmp_path, where)
    with running(theirs) as bootstrap:
        fill(bootstrap, "before")
        filled = facts(bootstrap)
    with running(ours) as bootstrap:
        assert not differences(facts(bootstrap), filled)
        fill(bootstrap, "between")
        assert update_features(bootstrap, (METADATA, 17, UPGRADE)) == 0
        fill(bootstrap, "after")
        risen = facts(bootstrap)
    with running(theirs) as bootstrap:
        assert not differences(facts(bootstrap), risen)
    assert not complaints(theirs.log, (r"Multiple log directories \(aka JBOD\)",))
    assert not ours.complaints()


def fill(bootstrap: str, topic: str) -> None:
    admin = admin_of(bootstrap)
    wait(admin.create_topics([NewTopic(topic, 3, 1, config={"retention.ms": "-1"})]))
    play(bootstrap, *ready(topic, 3))
    write(bootstrap, topic, 30)
    commit(bootstrap, "settled", {(topic, 0): 5})
