"""The state of share partitions: InitializeShareGroupState and the APIs that read, write and delete it (KIP-932)."""

from collections.abc import Callable
from itertools import product

from ..play import Step
from ..share_state_steps import NOBODY, delete, found, initialize, read, summary, write
from ..steps import ask, create, gone, scenario

REQUESTS: dict[str, Callable[..., Step]] = {
    "InitializeShareGroupState": initialize,
    "ReadShareGroupState": read,
    "WriteShareGroupState": write,
    "DeleteShareGroupState": delete,
    "ReadShareGroupStateSummary": summary,
}

BEGUN = [create("~t", 3), create("~u", 3), found()]
"""Two topics of three partitions, without share state."""

SET_UP = [*BEGUN, initialize(state=5, start=10, quiet=True), read(leader=3, quiet=True)]
"""0 of ``~t`` has state epoch 5, and was read by a leader of epoch 3."""

RESULT = [summary(v=1), read(v=0)]
"""Reads the resulting state."""

STRAY = [("~t", -1), ("~t", 3), ("~t", 2**31 - 1), ("~t", -(2**31)), (NOBODY, 0), (NOBODY, -1)]

SHAPES = [
    scenario(
        name,
        api,
        SET_UP,
        [make(*places, group=group) for places, group in requests],
        RESULT,
    )
    for api, make in REQUESTS.items()
    for name, requests in {
        "what was never set up": [([("~t", 1)], "~g"), ([("~t", 0)], "~h"), ([("~t", 0)], "~G")],
        "partitions that there are not": [([place], "~g") for place in STRAY],
        "several at once": [
            ([("~t", 2), ("~u", 1), ("~t", 0), (NOBODY, 0), ("~t", 7), ("~u", 0)], "~g"),
            ([("~t", 0), ("~t", 0)], "~g"),
            ([("~t", index) for index in (40, 17, 33, 1, 16, 0, 2)], "~g"),
        ],
        "a group without a name": [([("~t", 0)], "")],
    }.items()
] + [
    scenario(
        "nothing asked",
        api,
        SET_UP,
        ask(api, GroupId="~g", Topics=[]),
        ask(api, GroupId="~g", Topics=[{"TopicId": "$id ~t", "Partitions": []}]),
        ask(api, GroupId="", Topics=[]),
        ask(
            api,
            GroupId="~g",
            Topics=[
                {"TopicId": "$id ~u", "Partitions": []},
                *make().body["Topics"],
            ],
        ),
        ask(api, GroupId="~g", Topics=[*make().body["Topics"], *make(("~t", 1)).body["Topics"]]),
        RESULT,
    )
    for api, make in REQUESTS.items()
]

BEGINNING = [
    scenario(
        "start offsets",
        "InitializeShareGroupState",
        BEGUN,
        [[initialize(start=start), RESULT] for start in (0, 7, -1, 2**63 - 1, -2)],
    ),
    scenario(
        "state epochs",
        "InitializeShareGroupState",
        SET_UP,
        [[initialize(state=state, start=20 + state), RESULT] for state in (5, 4, 6, -1, 5, 6, -2, 2**31 - 1, 6)],
    ),
    scenario(
        "begun anew, it knows of no records, and of its leaders",
        "InitializeShareGroupState",
        SET_UP,
        write(leader=3, start=10, done=2, batches=[(10, 11, 2, 1)], v=1),
        initialize(state=6, start=0),
        RESULT,
        [read(leader=each, v=0) for each in (2, 3, 4)],
        RESULT,
    ),
    scenario(
        "again after it was deleted",
        "InitializeShareGroupState",
        SET_UP,
        delete(v=0),
        initialize(state=0, start=1),
        read(leader=0, v=0),
        RESULT,
    ),
]

READING = [
    scenario(
        "leader epochs",
        "ReadShareGroupState",
        SET_UP,
        [[read(leader=leader), summary(v=1)] for leader in (3, 2, -1, 4, 4, 3, 2**31 - 1, -1, -2, 0)],
    ),
    scenario(
        "as often as there is a snapshot",
        "ReadShareGroupState",
        SET_UP,
        [[read(leader=leader), summary(v=1)] for leader in range(4, 16)],
    ),
    scenario(
        "batches of all states",
        "ReadShareGroupState",
        SET_UP,
        write(
            leader=3,
            batches=[(10, 10, 0, 1), (11, 11, 1, 1), (12, 12, 2, 1), (13, 13, 3, 1), (14, 14, 4, 1), (15, 15, 99, -1)],
            v=1,
        ),
        read(),
        read(leader=3),
    ),
]

SUMMARIES = [
    scenario(
        "what is done",
        "ReadShareGroupStateSummary",
        BEGUN,
        summary(),
        initialize(quiet=True),
        summary(),
        [
            [write(start=start, done=done, quiet=True, v=1), summary()]
            for start, done in ((1, 0), (2, 7), (-1, 3), (3, -1), (4, -5), (4, 2**31 - 1))
        ],
        write(start=5, quiet=True, v=0),
        summary(),
        [summary(leader=leader) for leader in (0, 5, -2)],
    )
]

EPOCHS = list(product((-1, 4, 5, 6, -2), (-1, 2, 3, 4, -2)))

OVERLAPS = {
    "neighbours": [[(10, 14, 0, 1), (15, 19, 0, 1)], [(20, 24, 0, 1)], [(25, 29, 0, 2)]],
    "within": [[(10, 29, 0, 1)], [(15, 19, 2, 1)], [(16, 17, 4, 2)]],
    "around": [[(15, 19, 2, 1)], [(10, 29, 0, 1)], [(10, 29, 0, 2)]],
    "over the end": [[(10, 19, 0, 1)], [(15, 24, 2, 1)], [(20, 30, 0, 1)]],
    "over the beginning": [[(20, 29, 2, 2)], [(15, 24, 0, 1)], [(10, 15, 0, 3)]],
    "the same twice": [[(10, 19, 0, 1), (10, 19, 0, 1)], [(10, 19, 0, 1)], [(10, 19, 2, 1)]],
    "many at once": [
        [(5, 9, 2, 1), (6, 7, 2, 2), (9, 12, 2, 2), (13, 13, 2, 2), (0, 3, 0, 1), (0, 1, 0, 2)],
        [(5, 9, 2, 1), (5, 9, 2, 1), (9, 12, 2, 2), (13, 13, 2, 2), (0, 4, 2, 2), (5, 6, 4, 1), (5, 8, 2, 2)],
        [(0, 100, 3, 4), (1, 2, 4, 1)],
    ],
    "a comb": [
        [(at, at, 0, 1) for at in range(10, 40, 2)],
        [(at, at, 2, 1) for at in range(11, 40, 2)],
        [(10, 40, 0, 1), (15, 35, 0, 2)],
    ],
}

WRITING = [
    scenario(
        f"leader epoch {leader}",
        "WriteShareGroupState",
        SET_UP,
        [
            [write(state=state, leader=leader, start=11 + at)]
            for at, (state, each) in enumerate(EPOCHS)
            if each == leader
        ],
        RESULT,
    )
    for leader in (-1, 2, 3, 4, -2)
] + [
    scenario(
        f"batches: {name}",
        "WriteShareGroupState",
        BEGUN,
        initialize(quiet=True),
        [[write(start=0, done=0, batches=each), RESULT] for each in batches],
        [[write(start=start, batches=batches[0]), RESULT] for start in (12, -1, 17, 5)],
    )
    for name, batches in OVERLAPS.items()
]

DELETING = [
    scenario(
        "twice",
        "DeleteShareGroupState",
        SET_UP,
        delete(),
        delete(),
        RESULT,
        write(v=1),
    ),
    scenario(
        "with its topic",
        "DeleteShareGroupState",
        SET_UP,
        initialize(("~u", 0), quiet=True),
        ask("DeleteTopics", v=5, quiet=True, TopicNames=["~t"], TimeoutMs=10000),
        gone("~t"),
        ask(
            "ReadShareGroupState",
            v=0,
            GroupId="~g",
            Topics=[{"TopicId": "$id ~t", "Partitions": [{"Partition": 0, "LeaderEpoch": -1}]}],
            until=("Results.0.Partitions.0.ErrorCode", 42),
        ),
        summary(v=1),
        delete(),
        read(("~u", 0), v=0),
    ),
]

FINDING = [
    scenario(
        "share partitions",
        "FindCoordinator",
        found(),
        ask(
            "FindCoordinator",
            KeyType=2,
            Key="~g:AAAAAAAAAAAAAAAAAAAAAA:0",
            CoordinatorKeys=["~g:AAAAAAAAAAAAAAAAAAAAAA:0", "~g:AAAAAAAAAAAAAAAAAAAAAA:-1", "~g", "a:~g:short:0"],
        ),
        versions="0,3,4,5,6",
    )
]

SCENARIOS = [*SHAPES, *BEGINNING, *READING, *SUMMARIES, *WRITING, *DELETING, *FINDING]
