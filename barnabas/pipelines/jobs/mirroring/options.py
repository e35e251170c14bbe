"""The options of the mirror job: source and target, the topics, their names, and what is synced.

Knows nothing of how the job works. Imported without Spark.
"""

from collections.abc import Mapping

from barnabas.pipelines.client.settings import BadSetting
from barnabas.pipelines.jobs.mirroring.configs import EXCLUDED_CONFIGS
from barnabas.pipelines.jobs.mirroring.policy import (
    EXCLUDED_GROUPS,
    EXCLUDED_TOPICS,
    POLICIES,
    any_of,
    split,
)
from barnabas.pipelines.jobs.mirroring.spec import Spec
from barnabas.pipelines.jobs.options import (
    Rules,
    check,
    commit_group_option,
    isolation_option,
    max_offsets_option,
    option,
    options,
    properties_option,
)


@options
class MirrorOptions:
    """The options of ``barnabas pipeline mirror``: source and target, the topics, their names, and what is synced."""

    source: str = option("The cluster that is read.", metavar="HOST:PORT[,...]", flags=("--source", "--from"))
    target: str = option("The cluster that is written.", metavar="HOST:PORT[,...]", flags=("--target", "--to"))
    source_client: Mapping[str, str] = properties_option(
        "Settings of the client of the source, by Kafka's names: for TLS and SASL.", "--source-config"
    )
    target_client: Mapping[str, str] = properties_option(
        "Settings of the client of the target, and of its producer, by Kafka's names: for TLS, SASL, "
        "`compression.type` and the like.",
        "--target-config",
    )
    source_alias: str = option("What the source is called; mirrored topics begin with it.", default="source")
    target_alias: str = option(
        "What the target is called: topics that came from there, by their names, are not mirrored back.",
        default="target",
    )

    topics: tuple[str, ...] = option(
        "Topics that are mirrored, as regular expressions; those that come to match later too.",
        default=(".*",),
        metavar="REGEX[,...]",
    )
    exclude_topics: tuple[str, ...] = option(
        "Topics that are not. Internal ones never are.", default=EXCLUDED_TOPICS, metavar="REGEX[,...]"
    )
    policy: str = option(
        "What a topic is called at the target: default puts the alias of the source before its name (`source.orders`), "
        "identity leaves it as it is.",
        default="default",
        choices=POLICIES,
    )
    separator: str = option("What stands between alias and name.", default=".")
    starting_offsets: str = option(
        "Where a partition begins that the target has nothing of, when the mirror is started first. Partitions that "
        "come later begin with their first record.",
        default="earliest",
        choices=("earliest", "latest"),
    )
    isolation: str = isolation_option()
    fail_on_data_loss: bool = option(
        "End with an error when the source has lost records before they were mirrored: by retention, or as a topic "
        "was deleted and made again. Otherwise go on with what there is.",
        default=True,
    )

    replication_factor: int = option(
        "How many replicas topics have that are made at the target; -1: as many as its brokers give by default.",
        default=-1,
    )
    sync_configs: bool = option("Have the configs of topics follow those of the source.", default=True)
    exclude_configs: tuple[str, ...] = option(
        "Configs of topics that do not.", default=EXCLUDED_CONFIGS, metavar="REGEX[,...]"
    )
    sync_groups: bool = option(
        "Commit at the target where groups of the source would go on there, as long as they have no members there. "
        "Never moves a group backwards.",
        default=True,
    )
    groups: tuple[str, ...] = option("Groups whose offsets are translated.", default=(".*",), metavar="REGEX[,...]")
    exclude_groups: tuple[str, ...] = option(
        "Groups whose offsets are not.", default=EXCLUDED_GROUPS, metavar="REGEX[,...]"
    )
    checkpoints: bool = option(
        "Write translated offsets to `source.checkpoints.internal` too, for MirrorMaker's `RemoteClusterUtils`.",
        default=True,
    )

    refresh_seconds: float = option(
        "How often to look for new topics and partitions, changed configs and what groups have committed.",
        default=10.0,
        above=0,
    )
    poll_seconds: float = option("How often to look for new records.", default=0.5, least=0)
    max_offsets_per_batch: int | None = max_offsets_option()
    commit_group: str | None = commit_group_option()
    tasks: int | None = option(
        "How many tasks a batch has at most; else four for each core that Spark has. A partition is one task's.",
        default=None,
        least=1,
    )

    def __post_init__(self) -> None:
        check(self, self._rules)
        for name in ("topics", "exclude_topics", "groups", "exclude_groups", "exclude_configs"):
            try:
                any_of(split(getattr(self, name)))
            except ValueError as problem:
                raise ValueError(f"{name}: {problem}") from None
        self.spec()

    def _rules(self) -> Rules:
        return (
            (self.source == self.target, f"source and target are both {self.source}, but must be two clusters"),
            (
                self.source_alias == self.target_alias,
                f"source_alias and target_alias are both {self.source_alias!r}: then no topic could be told to have "
                "come from the other cluster",
            ),
            (not self.source_alias or not self.target_alias, "source_alias and target_alias must not be empty"),
            (not split(self.topics), "topics is empty: .* mirrors all"),
            (not self.separator, "separator is empty; policy identity leaves names as they are"),
            (
                self.replication_factor < 1 and self.replication_factor != -1,
                f"replication_factor is {self.replication_factor}, but must be at least 1, or -1",
            ),
        )

    def spec(self) -> Spec:
        """Returns the configuration for the tasks.

        :raises ValueError: a client setting is wrong; the message names it.
        """
        spec = Spec(
            source=tuple({**self.source_client, "bootstrap.servers": self.source}.items()),
            target=tuple({**self.target_client, "bootstrap.servers": self.target}.items()),
            source_alias=self.source_alias,
            target_alias=self.target_alias,
            policy_kind=self.policy,
            separator=self.separator,
            topics=split(self.topics),
            exclude_topics=split(self.exclude_topics),
            sync_configs=self.sync_configs,
            exclude_configs=split(self.exclude_configs),
            replication_factor=self.replication_factor,
            sync_groups=self.sync_groups,
            groups=split(self.groups),
            exclude_groups=split(self.exclude_groups),
            checkpoints=self.checkpoints,
            starting_offsets=self.starting_offsets,
            isolation=self.isolation,
            fail_on_data_loss=self.fail_on_data_loss,
            max_offsets_per_batch=self.max_offsets_per_batch,
            commit_group=self.commit_group,
            refresh_seconds=self.refresh_seconds,
        )
        for side, settings in (("source", "source"), ("target", "target"), ("target", "write")):
            try:
                getattr(spec, f"{settings}_settings")
            except BadSetting as problem:
                raise ValueError(f"{side}: {problem}") from None
        return spec
