"""Topologies of streams groups: how they are checked, and what they need.

Knows nothing of how members live and are described.
"""

from ..steps import ask, create, pause, ready, scenario
from .streams import BEAT, beat, copartition, enter, internal, shown, subtopology, topology

SCENARIOS = [
    scenario(
        "source topics that are not there",
        BEAT,
        create("~t", 2),
        enter("~m", subtopology(source=["~t", "~u", "~v"])),
        beat(),
        shown(),
        create("~u", 3),
        beat(),
        create("~v"),
        beat(until=("Status", [])),
        shown(),
    ),
    scenario(
        "topics that are made",
        BEAT,
        create("~t", 3),
        enter(
            "~m",
            subtopology(
                RepartitionSinkTopics=["~g-r"],
                StateChangelogTopics=[internal("~g-c", 0, 1, cleanup_policy="compact", segment_bytes="2000000")],
            ),
            subtopology(
                "1",
                [],
                RepartitionSourceTopics=[internal("~g-r", cleanup_policy="delete", retention_ms="-1")],
                StateChangelogTopics=[internal("~g-d", cleanup_policy="compact")],
            ),
        ),
        [ready(f"~g-{each}", 3) for each in "rcd"],
        beat(until=("Status", []), quiet=True),
        beat(),
        shown(),
        ask(
            "Metadata",
            v=8,
            Topics=[{"Name": f"~g-{each}"} for each in "rcd"],
            AllowAutoTopicCreation=False,
        ),
        ask(
            "DescribeConfigs",
            v=4,
            Resources=[
                {
                    "ResourceType": 2,
                    "ResourceName": f"~g-{each}",
                    "ConfigurationKeys": ["cleanup.policy", "segment.bytes", "retention.ms"],
                }
                for each in "rcd"
            ],
            IncludeSynonyms=False,
            IncludeDocumentation=False,
        ),
    ),
    scenario(
        "a topic that cannot be made",
        BEAT,
        create("~t", 1),
        enter("~m", subtopology(StateChangelogTopics=[internal("~g-c", no_such="config")])),
        pause(0.3),
        beat(),
        beat(),
        shown(),
    ),
    scenario(
        "internal topics that do not fit",
        BEAT,
        create("~t", 2),
        create("~g-c", 3),
        enter("~m", subtopology(StateChangelogTopics=[internal("~g-c")])),
        beat(),
        shown(),
    ),
    scenario(
        "topics that are read together",
        BEAT,
        create("~t", 2),
        create("~u", 3),
        create("~v", 2),
        enter("~m", subtopology(source=["~t", "~u"], CopartitionGroups=[copartition([0, 1])]), group="~g"),
        enter("~m", subtopology(source=["~t", "~v"], CopartitionGroups=[copartition([0, 1])]), group="~h"),
        enter(
            "~m",
            subtopology("0", ["~u"], RepartitionSinkTopics=["~i-r"]),
            subtopology(
                "1",
                ["~t"],
                RepartitionSourceTopics=[internal("~i-r")],
                CopartitionGroups=[copartition([0], [0])],
            ),
            group="~i",
        ),
        ready("~i-r", 2),
        enter(
            "~m",
            subtopology("0", ["~u"], RepartitionSinkTopics=["~j-r"]),
            subtopology(
                "1",
                ["~t"],
                RepartitionSourceTopics=[internal("~j-r", 5)],
                CopartitionGroups=[copartition([0], [0])],
            ),
            group="~j",
        ),
        enter(
            "~m",
            subtopology("0", ["~u"], RepartitionSinkTopics=["~k-r", "~k-s"]),
            subtopology(
                "1",
                [],
                RepartitionSourceTopics=[internal("~k-r", 5), internal("~k-s")],
                CopartitionGroups=[copartition([], [0, 1])],
            ),
            group="~k",
        ),
        ready("~k-r", 5),
        ready("~k-s", 5),
        [shown(f"~{each}") for each in "ghijk"],
    ),
    scenario(
        "another topology",
        BEAT,
        create("~t", 2),
        create("~u", 2),
        enter(),
        enter("~m", subtopology(source=["~u"])),
        enter("~n", Topology=topology(epoch=1)),
        enter("~n", Topology=topology(subtopology(source=["~u"]), epoch=-1)),
        beat("~n"),
        beat("~m"),
        shown(),
        beat("~m", -1),
        beat("~n", -1),
        enter("~n", Topology=topology(epoch=1)),
    ),
    scenario(
        "a topic grows",
        BEAT,
        create("~t", 1),
        enter(),
        beat(),
        ask(
            "CreatePartitions",
            v=3,
            quiet=True,
            Topics=[{"Name": "~t", "Count": 3, "Assignments": None}],
            TimeoutMs=10000,
        ),
        ready("~t", 3),
        beat(until=("MemberEpoch", 3), quiet=True),
        beat(),
        shown(),
        ask("DeleteTopics", v=6, quiet=True, Topics=[{"Name": "~t"}], TimeoutMs=10000),
        beat(until=("Status.0.StatusCode", 1), quiet=True),
        beat(),
        shown(),
    ),
]
