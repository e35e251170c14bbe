"""DescribeTransactions, ListTransactions with all filters, and the coordinators of transactions."""

from ..steps import ask, create, pause, scenario
from ..transaction_steps import add, begin, described, end, ended, transaction

LISTS = [
    scenario(
        "in each state",
        "DescribeTransactions",
        create("~t"),
        *(
            [
                begin(),
                described(),
                add(quiet=True),
                described(),
                end(commit, quiet=True, v=4),
                ended(commit),
                described(),
                transaction(commit=commit),
                described(),
            ]
            for commit in (True, False)
        ),
    ),
    scenario(
        "unknown, none, and one twice",
        "DescribeTransactions",
        begin(),
        described("~none"),
        described("~none", "~x", "", "~x"),
        ask("DescribeTransactions", TransactionalIds=[]),
    ),
    scenario(
        "by state",
        "ListTransactions",
        create("~t"),
        begin("~a", save="a"),
        begin("~b", save="b"),
        add("~b", pid="$b", quiet=True, v=3),
        begin("~c", save="c"),
        transaction(txn="~c", pid="$c"),
        begin("~d", save="d"),
        transaction(txn="~d", pid="$d", commit=False),
        *(
            ask("ListTransactions", mine=True, StateFilters=list(states), ProducerIdFilters=["$a", "$b", "$c", "$d"])
            for states in (
                [],
                ["Empty"],
                ["Ongoing", "CompleteCommit"],
                ["CompleteAbort", "nonsense"],
                ["ongoing"],
                [""],
                ["Dead", "PrepareEpochFence", "PrepareCommit"],
                ["nonsense", "more nonsense", "nonsense"],
            )
        ),
        alone=True,
    ),
    scenario(
        "by producer",
        "ListTransactions",
        begin("~a", save="a"),
        begin("~b", save="b"),
        *(
            ask("ListTransactions", mine=True, ProducerIdFilters=pids)
            for pids in (["$a"], ["$b", "$a"], [123456789], [-1], ["$a", 123456789])
        ),
        ask("ListTransactions", mine=True, ProducerIdFilters=["$a"], StateFilters=["Ongoing"]),
        alone=True,
    ),
    scenario(
        "by duration",
        "ListTransactions",
        create("~t"),
        begin("~a", save="a"),
        begin("~b", save="b"),
        add("~b", pid="$b", quiet=True, v=3),
        begin("~c", save="c"),
        transaction(txn="~c", pid="$c"),
        pause(0.05),
        *(
            ask("ListTransactions", mine=True, DurationFilter=each, ProducerIdFilters=["$a", "$b", "$c"])
            for each in (-1, 0, 1, 20, 3_600_000, -2, 2**63 - 1)
        ),
        versions="1+",
        alone=True,
    ),
    scenario(
        "by pattern",
        "ListTransactions",
        begin("~ab"),
        begin("~abc"),
        begin("~ä.x"),
        *(
            ask("ListTransactions", mine=True, TransactionalIdPattern=each)
            for each in (
                None,
                "",
                "~ab",
                "~ab.*",
                "~a",
                ".*c",
                ".*ä.*",
                ".*\\.x",
                "[",
                "(?i).*AB",
                "~(ab|abc)",
                "*",
                "(?P<n>.*)ab",
                ".*ab\\pL",
                ".*(?=b).*",
            )
        ),
        versions="2+",
        alone=True,
    ),
]

COORDINATORS = [
    scenario(
        "of transactions",
        "FindCoordinator",
        ask("FindCoordinator", Key="~x", KeyType=1, CoordinatorKeys=["~x"]),
        ask("FindCoordinator", Key="", KeyType=1, CoordinatorKeys=[""]),
        ask("FindCoordinator", Key="~x", KeyType=1, CoordinatorKeys=["~x", "~y", "~x"]),
        ask("FindCoordinator", Key="~x", KeyType=1, CoordinatorKeys=[]),
        versions="1+",
    ),
]

SCENARIOS = [*LISTS, *COORDINATORS]
