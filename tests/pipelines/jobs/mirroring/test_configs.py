"""The configs of a topic that are mirrored."""

import re

from barnabas.pipelines.jobs.mirroring.configs import EXCLUDED_CONFIGS, Changes, changes, wanted


def test_what_belongs_to_a_cluster_stays_there() -> None:
    source = {
        "cleanup.policy": "compact",
        "min.insync.replicas": "2",
        "message.timestamp.type": "LogAppendTime",
        "leader.replication.throttled.replicas": "*",
        "retention.ms": "1000",
    }
    assert wanted(source, EXCLUDED_CONFIGS) == {"cleanup.policy": "compact", "retention.ms": "1000"}
    assert wanted(source, ()) == source


def test_changes() -> None:
    here = {"cleanup.policy": "compact", "retention.ms": "1000", "min.insync.replicas": "2"}
    there = {"cleanup.policy": "compact", "retention.ms": "5", "max.message.bytes": "9", "min.insync.replicas": "1"}
    assert changes(here, there, EXCLUDED_CONFIGS) == Changes({"retention.ms": "1000"}, ("max.message.bytes",))
    assert not changes(here, {**here, "min.insync.replicas": "1"}, EXCLUDED_CONFIGS)


def test_all_exclusions_are_expressions() -> None:
    for pattern in EXCLUDED_CONFIGS:
        re.compile(pattern)
