"""What a job can be told: a frozen class of its options, each field with its help, from which the command line and the
reference page are made; and the options that several jobs have.

Knows nothing of the command line, and of no job. Imports nothing of Spark, and neither may a module that declares
options (but inside functions): ``barnabas pipeline --help`` reads them all.
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
    """What is said of a field beside its name, its type and its default."""

    help: str
    choices: tuple[str, ...] = ()
    least: float | None = None  #: what a number must be at least
    above: float | None = None  #: or what it must be above
    flags: tuple[str, ...] = ()  #: on the command line, where they are others than the field's name with dashes
    metavar: str | None = None
    argument: bool = False  #: stands on the command line without a flag
    file: bool = False  #: of a Mapping: the command line takes the name of a file of Java properties


class Described(NamedTuple):
    """A field of a class of options."""

    name: str
    type: Any  #: str, int, float or bool: of the value, or of each where there are several
    many: bool  #: a tuple of them
    pairs: bool  #: a Mapping of str to str
    default: Any  #: REQUIRED without one
    option: Option

    @property
    def flags(self) -> tuple[str, ...]:
        """What it is called on the command line."""
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
    """A field of a class of options; required, unless it has a default. ``help`` is a sentence or two, in Markdown.

    The field's type may be str, int, float, bool, any of them ``| None``, ``tuple[str, ...]`` (given several times)
    or ``Mapping[str, str]`` (``key=value``, several times; or with ``file`` a file of properties, which the ``repr`` of
    the options leaves out, as there may be passwords in it).
    """
    said = Option(help, tuple(choices), least, above, tuple(flags), metavar, argument, file)
    field: Any = dataclasses.field  # its overloads know either default alone
    return field(
        default=default, default_factory=default_factory, metadata={"option": said}, kw_only=True, repr=not file
    )


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(option,))
def options(declared: type[T]) -> type[T]:
    """Make a frozen dataclass of keywords of it: ``@options class ExportOptions: to: str = option("Where to …")``."""
    return dataclasses.dataclass(frozen=True, kw_only=True)(declared)


def described(declared: type) -> Iterator[Described]:
    """The options that this class declares, in its order."""
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
    """Settings that may hold passwords: on the command line, the name of a file of Java properties."""
    return option(help, default_factory=dict, flags=flags, file=True)


Mistakes = Iterable[tuple[bool, str]]
"""Each with whether it was made, and what to say of it."""


def check(given: Any, mistakes: Callable[[], Mistakes] = tuple) -> None:
    """Nothing, if options keep to their choices and bounds, and no mistake was made; for ``__post_init__``.

    Raises:
        ValueError: otherwise; the message names the option and what would be right.
    """
    for each in described(type(given)):
        value, said = getattr(given, each.name), each.option
        for one in value if each.many else () if value is None else (value,):
            if said.choices and one not in said.choices:
                raise ValueError(f"{each.name} is {one!r}, but must be one of {', '.join(said.choices)}")
            if said.least is not None and one < said.least:
                raise ValueError(f"{each.name} is {one}, but must be at least {said.least:g}")
            if said.above is not None and one <= said.above:
                raise ValueError(f"{each.name} is {one}, but must be above {said.above:g}")
    for is_made, words in mistakes():
        if is_made:
            raise ValueError(words)


@options
class ClusterOptions:
    """What every job of one cluster is told."""

    bootstrap_servers: str = option(
        "Where the cluster is.",
        default="localhost:9092",
        flags=("--bootstrap-server", "--bootstrap-servers"),
        metavar="HOST:PORT[,...]",
    )
    client: Mapping[str, str] = properties_option(
        "Settings of the client, by Kafka's names: for TLS, SASL and the like; where the job writes to topics, those "
        "of its producer too, such as `compression.type`.",
        "--command-config",
    )

    def kafka_options(
        self, *, without: Collection[str] = (), defaults: Mapping[str, str] = MappingProxyType({})
    ) -> dict[str, str]:
        """The data source's options for this cluster: ``kafka.`` and the name of each setting of the client.

        ``without``: settings that are left out. ``defaults``: of settings that are not given.
        """
        given = {name: value for name, value in self.client.items() if name not in without}
        settings = {**defaults, **given, "bootstrap.servers": self.bootstrap_servers}
        return {f"kafka.{name}": value for name, value in settings.items()}


def delivery_option() -> Any:
    """Of jobs that write to topics through the sink."""
    return option(
        "exactly-once writes each batch in transactions, for consumers with `isolation.level=read_committed`, and "
        "leaves out what was aborted where it reads topics; at-least-once may write a batch twice after a crash.",
        default="exactly-once",
        choices=("exactly-once", "at-least-once"),
    )


def isolation_option() -> Any:
    """Of jobs that read topics and do nothing to their records."""
    return option(
        "Whether records of transactions are read once they are committed, or at once, aborted ones too.",
        default="read_committed",
        choices=("read_committed", "read_uncommitted"),
    )


def commit_group_option() -> Any:
    """Of jobs that read topics."""
    return option(
        "Commit how far the job has come in the topics it reads to this consumer group, where any tool of Kafka's "
        "shows its lag.",
        default=None,
        metavar="GROUP",
    )


def max_offsets_option(default: int | None = None) -> Any:
    """Of jobs that read topics."""
    return option(
        "How many offsets a batch goes on at most, over all partitions (`stream`: of each table); else as far as there "
        "are records.",
        default=default,
        least=1,
    )


def trigger_option(default: float | None) -> Any:
    """Of jobs whose batches are started by the clock."""
    return option(
        "How long after a batch has begun the next one begins at the earliest; else as soon as it is done.",
        default=default,
        least=0,
    )


def configs_of_jars(driver_jars: Sequence[str]) -> dict[str, str]:
    """What Spark has to be started with, so that it has these jars: paths, or URIs.

    Raises:
        ValueError: one of them is not there; the message names ``driver_jars``.
    """
    for jar in driver_jars:
        if "://" not in jar and not Path(jar).is_file():
            raise ValueError(f"driver_jars names {jar}, which is no file")
    return {"spark.jars": ",".join(driver_jars)} if driver_jars else {}
