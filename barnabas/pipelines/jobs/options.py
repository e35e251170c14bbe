"""Declares the options of jobs as frozen dataclasses, from which the command line and the reference page are made.

Knows nothing of the command line and of any job. Neither this module nor one that declares options may import Spark
at module level: ``barnabas pipeline --help`` reads them all.
"""

import dataclasses
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar, dataclass_transform, get_args, get_origin, get_type_hints

T = TypeVar("T")

REQUIRED = dataclasses.MISSING


@dataclasses.dataclass(frozen=True)
class Option:
    """The declaration of an option, without its name, type and default."""

    help: str
    choices: tuple[str, ...] = ()
    least: float | None = None  #: the smallest number allowed
    above: float | None = None  #: an exclusive lower bound
    flags: tuple[str, ...] = ()  #: on the command line, if not the field's name with dashes
    metavar: str | None = None
    argument: bool = False  #: a positional argument of the command line
    file: bool = False  #: for a Mapping: the command line takes the name of a file of Java properties


class Described(NamedTuple):
    """A declared option: a field of a class of options."""

    name: str
    type: Any  #: str, int, float or bool: of the value, or of each of many values
    many: bool  #: a tuple of values
    pairs: bool  #: a Mapping of str to str
    default: Any  #: REQUIRED if there is none
    option: Option

    @property
    def flags(self) -> tuple[str, ...]:
        """Its flags on the command line."""
        return self.option.flags or (f"--{self.name.replace('_', '-')}",)


def option(
    help: str,
    *,
    default: Any = REQUIRED,
    default_factory: Callable[[], Any] | Any = REQUIRED,
    choices: Sequence[str] = (),
    least: float | None = None,
    above: float | None = None,
    flags: Sequence[str] = (),
    metavar: str | None = None,
    argument: bool = False,
    file: bool = False,
) -> Any:
    """Declares a field of a class of options; it is required unless it has a default.

    The field's type may be str, int, float, bool, any of them ``| None``, ``tuple[str, ...]`` (given several times)
    or ``Mapping[str, str]`` (``key=value``, given several times). With ``file`` a Mapping is read from a file of
    properties; the ``repr`` of the options omits it, as it may contain passwords.

    :param help: one or two sentences in Markdown.
    """
    declared = Option(help, tuple(choices), least, above, tuple(flags), metavar, argument, file)
    field: Any = dataclasses.field  # its overloads take only one of the two defaults
    return field(
        default=default, default_factory=default_factory, metadata={"option": declared}, kw_only=True, repr=not file
    )


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(option,))
def options(declared: type[T]) -> type[T]:
    """Makes a class a frozen, keyword-only dataclass: ``@options class ExportOptions: to: str = option("Where …")``."""
    return dataclasses.dataclass(frozen=True, kw_only=True)(declared)


def described(declared: type) -> Iterator[Described]:
    """Yields the options that this class declares, in their order."""
    hints = get_type_hints(declared)
    for field in dataclasses.fields(declared):
        if "option" not in field.metadata:
            continue
        hint = hints[field.name]
        plain = [each for each in get_args(hint) if each is not type(None)] if type(None) in get_args(hint) else [hint]
        origin = get_origin(plain[0])
        default = field.default
        if field.default_factory is not dataclasses.MISSING:
            default = field.default_factory()
        yield Described(
            field.name,
            get_args(plain[0])[0] if origin is tuple else plain[0],
            many=origin is tuple,
            pairs=origin is not None and issubclass(origin, Mapping),
            default=default,
            option=field.metadata["option"],
        )


def properties_option(help: str, *flags: str) -> Any:
    """Declares settings that may contain passwords: the command line takes the name of a file of Java properties."""
    return option(help, default_factory=dict, flags=flags, file=True)


Rules = Iterable[tuple[bool, str]]
"""Pairs of whether a rule is violated, and the message that says so."""


def check(given: Any, rules: Callable[[], Rules] = tuple) -> None:
    """Checks the choices and bounds of options, and then further rules; for ``__post_init__``.

    :raises ValueError: an option is wrong; the message names it and what is allowed.
    """
    for each in described(type(given)):
        value, declared = getattr(given, each.name), each.option
        for one in value if each.many else () if value is None else (value,):
            if declared.choices and one not in declared.choices:
                raise ValueError(f"{each.name} is {one!r}, but must be one of {', '.join(declared.choices)}")
            if declared.least is not None and one < declared.least:
                raise ValueError(f"{each.name} is {one}, but must be at least {declared.least:g}")
            if declared.above is not None and one <= declared.above:
                raise ValueError(f"{each.name} is {one}, but must be above {declared.above:g}")
    for is_violated, message in rules():
        if is_violated:
            raise ValueError(message)


@options
class ClusterOptions:
    """The options of all jobs with one cluster."""

    bootstrap_servers: str = option(
        "The bootstrap servers of the cluster.",
        default="localhost:9092",
        flags=("--bootstrap-server", "--bootstrap-servers"),
        metavar="HOST:PORT[,...]",
    )
    client: Mapping[str, str] = properties_option(
        "Settings of the client by Kafka's names, for example for TLS and SASL. Jobs that write to topics also take "
        "settings of the producer, such as `compression.type`.",
        "--command-config",
    )

    def kafka_options(
        self, *, without: Collection[str] = (), defaults: Mapping[str, str] = MappingProxyType({})
    ) -> dict[str, str]:
        """Returns the data source's options for this cluster: the client's settings with the prefix ``kafka.``.

        :param without: settings to leave out.
        :param defaults: values of settings that were not given.
        """
        given = {name: value for name, value in self.client.items() if name not in without}
        settings = {**defaults, **given, "bootstrap.servers": self.bootstrap_servers}
        return {f"kafka.{name}": value for name, value in settings.items()}


def delivery_option() -> Any:
    """Declares how jobs that write to topics through the sink deliver records."""
    return option(
        "exactly-once writes each batch in transactions, for consumers with `isolation.level=read_committed`, and "
        "skips aborted records when it reads topics; at-least-once may write a batch twice after a crash.",
        default="exactly-once",
        choices=("exactly-once", "at-least-once"),
    )


def isolation_option() -> Any:
    """Declares the isolation level of jobs that read topics and do not change their records."""
    return option(
        "read_committed reads records of transactions once these are committed; read_uncommitted reads them at once, "
        "including aborted ones.",
        default="read_committed",
        choices=("read_committed", "read_uncommitted"),
    )


def commit_group_option() -> Any:
    """Declares the consumer group of jobs that read topics."""
    return option(
        "Commit the job's offsets to this consumer group, so that Kafka's tools show its lag.",
        default=None,
        metavar="GROUP",
    )


def max_offsets_option(default: int | None = None) -> Any:
    """Declares the size of batches of jobs that read topics."""
    return option(
        "The maximum number of offsets in a batch, over all partitions (`stream`: of each table). Without it a batch "
        "reads to the end of the topics.",
        default=default,
        least=1,
    )


def trigger_option(default: float | None) -> Any:
    """Declares the interval between the batches of a job."""
    return option(
        "The minimum time between the starts of two batches. Without it a batch starts when the last one is complete.",
        default=default,
        least=0,
    )


def configs_of_jars(driver_jars: Sequence[str]) -> dict[str, str]:
    """Returns the Spark configs that load these jars.

    :param driver_jars: paths or URIs.
    :raises ValueError: one of the jars does not exist; the message names ``driver_jars``.
    """
    for jar in driver_jars:
        if "://" not in jar and not Path(jar).is_file():
            raise ValueError(f"driver_jars names {jar}, which is not a file")
    return {"spark.jars": ",".join(driver_jars)} if driver_jars else {}
