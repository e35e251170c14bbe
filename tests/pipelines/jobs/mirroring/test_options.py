"""The options of the mirror: errors name the option, and all options reach the workers."""

from typing import Any

import pytest

from barnabas.pipelines.jobs.mirroring.options import MirrorOptions
from barnabas.pipelines.jobs.mirroring.policy import EXCLUDED_TOPICS
from barnabas.pipelines.jobs.mirroring.spec import Spec
from barnabas.records.batch import Compression

TWO = {"source": "here:9092", "target": "there:9092"}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"target": "here:9092"}, "source and target are both here:9092"),
        ({"source": "here"}, "source: kafka.bootstrap.servers 'here'"),
        ({"target_client": {"sasl.mechanismus": "PLAIN"}}, "target: kafka.sasl.mechanismus .* did you mean"),
        ({"target_client": {"compression.type": "rar"}}, "target: kafka.compression.type"),
        ({"source_client": {"compression.type": "lz4"}}, "source: kafka.compression.type"),
        ({"source_alias": "x", "target_alias": "x"}, "source_alias and target_alias are both 'x'"),
        ({"source_alias": ""}, "must not be empty"),
        ({"policy": "upside-down"}, "policy is 'upside-down', but must be one of default, identity"),
        ({"separator": ""}, "separator is empty"),
        ({"topics": ()}, "topics is empty"),
        ({"topics": ("a(",)}, r"topics: 'a\(' is not a regular expression"),
        ({"exclude_groups": ("ok", "[")}, r"exclude_groups: '\['"),
        ({"replication_factor": 0}, "replication_factor is 0"),
        ({"refresh_seconds": 0.0}, "refresh_seconds is 0.0"),
        ({"poll_seconds": -1.0}, "poll_seconds is -1.0"),
        ({"max_offsets_per_batch": 0}, "max_offsets_per_batch is 0"),
        ({"tasks": 0}, "tasks is 0"),
        ({"starting_offsets": "yesterday"}, "starting_offsets is 'yesterday'"),
        ({"isolation": "splendid"}, "isolation is 'splendid'"),
    ],
)
def test_mistakes(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        MirrorOptions(**{**TWO, **given})


def test_all_of_it_reaches_the_workers() -> None:
    spec = MirrorOptions(
        **TWO,
        topics=("orders,payments.*", "stock{1,2}"),
        target_client={"security.protocol": "SSL", "compression.type": "zstd"},
        commit_group="mirror",
    ).spec()
    again = Spec.from_json(spec.to_json())
    assert again == spec
    assert again.topics == ("orders", "payments.*", "stock{1,2}")
    assert again.exclude_topics == EXCLUDED_TOPICS
    assert again.target_settings["security.protocol"] == "SSL"
    assert again.target_settings["bootstrap.servers"] == "there:9092"
    assert again.source_settings["security.protocol"] == "PLAINTEXT"
    assert again.write_settings.compression is Compression.ZSTD
    assert again.write_settings.transaction_timeout_ms == 120_000
