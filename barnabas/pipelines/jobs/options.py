"""What a job can be told: a frozen class of its options, each field with its help, from which the command line and the
reference page are made.

Knows nothing of the command line, and of no job. Imports nothing of Spark, and neither may a module that declares
options (but inside functions): ``barnabas pipeline --help`` reads them all.
"""

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, dataclass_transform, get_args, get_origin, get_type_hints

T = TypeVar("T")

REQUIRED = dataclasses.MISSING


@dataclasses.dataclass(frozen=True)
class Option:
    """What is said of a field beside its name, its type and its default."""

    help: str
    choices: tuple[str, ...] = ()
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


def option(
    help: str,
    *,
    default: Any = REQUIRED,
    default_factory: Callable[[], Any] | Any = REQUIRED,
    choices: Sequence[str] = (),
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
    said = Option(help, tuple(choices), tuple(flags), metavar, argument, file)
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


def check_choices(given: Any) -> None:
    """Nothing, if each option that has choices is one of them; for ``__post_init__``.

    Raises:
        ValueError: it is not; the message names the option and what would be right.
    """
    for each in described(type(given)):
        value = getattr(given, each.name)
        if each.option.choices and value is not None:
            for one in value if each.many else (value,):
                if one not in each.option.choices:
                    raise ValueError(f"{each.name} is {one!r}, but must be one of {', '.join(each.option.choices)}")


def configs_of_jars(driver_jars: Sequence[str]) -> dict[str, str]:
    """What Spark has to be started with, so that it has these jars: paths, or URIs.

    Raises:
        ValueError: one of them is not there; the message names ``driver_jars``.
    """
    for jar in driver_jars:
        if "://" not in jar and not Path(jar).is_file():
            raise ValueError(f"driver_jars names {jar}, which is no file")
    return {"spark.jars": ",".join(driver_jars)} if driver_jars else {}
