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

    source: str = option("The cluster to read from.", metavar="HOST:PORT[,...]", flags=("--source", "--from"))
    target: str = option("The cluster to write to.", metavar="HOST:PORT[,...]", flags=("--target", "--to"))
    source_client: Mapping[str, str] = properties_option(
        "Settings of the source's client, by Kafka's names, such as those for TLS and SASL.", "--source-config"
    )
    target_client: Mapping[str, str] = properties_option(
        "Settings of the target's client and producer, by Kafka's names, such as those for TLS and SASL, and "
        "`compression.type`.",
        "--target-config",
    )
    source_alias: str = option("The alias of the source, the prefix of mirrored topics.", default="source")
    target_alias: str = option(
        "The alias of the target: topics with this prefix are not mirrored back.",
        default="target",
    )

    topics: tuple[str, ...] = option(
        "The topics to mirror, as regular expressions, including new topics.",
        default=(".*",),
        metavar="REGEX[,...]",
    )
    exclude_topics: tuple[str, ...] = option(
        "Topics that are not mirrored. Internal topics never are.", default=EXCLUDED_TOPICS, metavar="REGEX[,...]"
    )
    policy: str = option(
        "The names of topics in the target: default adds the alias of the source as a prefix (`source.orders`), "
        "identity keeps the names.",
        default="default",
        choices=POLICIES,
    )
    separator: str = option("The separator between alias and name.", default=".")
    starting_offsets: str = option(
        "The start of partitions that are not in the target, at the first start of the mirror. Partitions that are "
        "added later start with their first record.",
        default="earliest",
        choices=("earliest", "latest"),
    )
    isolation: str = isolation_option()
    fail_on_data_loss: bool = option(
        "Fail if the source has lost records before they were mirrored: by retention, or because a topic was deleted "
        "and created again. Otherwise continue with the existing records.",
        default=True,
    )

    replication_factor: int = option(
        "The replication factor of new topics in the target; -1 is the brokers' default.",
        default=-1,
    )
    sync_configs: bool = option("Sync the configs of topics from the source.", default=True)
    exclude_configs: tuple[str, ...] = option(
        "Configs that are not synced.", default=EXCLUDED_CONFIGS, metavar="REGEX[,...]"
    )
    sync_groups: bool = option(
        "Commit the translated offsets of the source's groups in the target, while they have no members there. "
        "Offsets never move backwards.",
        default=True,
    )
    groups: tuple[str, ...] = option("The groups whose offsets are translated.", default=(".*",), metavar="REGEX[,...]")
    exclude_groups: tuple[str, ...] = option(
        "Groups whose offsets are not translated.", default=EXCLUDED_GROUPS, metavar="REGEX[,...]"
    )
    checkpoints: bool = option(
        "Write translated offsets also to `source.checkpoints.internal`, for MirrorMaker's `RemoteClusterUtils`.",
        default=True,
    )

    refresh_seconds: float = option(
        "How often to check for new topics and partitions, changed configs and committed offsets of groups.",
        default=10.0,
        above=0,
    )
    poll_seconds: float = option("How often to check for new records.", default=0.5, least=0)
    max_offsets_per_batch: int | None = max_offsets_option()
    commit_group: str | None = commit_group_option()
    tasks: int | None = option(
        "The maximum number of tasks of a batch. Default: four for each core. A partition belongs to one task.",
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
