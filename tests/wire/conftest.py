"""Fixtures of the codec's tests: values of every declared structure at every version, for Hypothesis."""

import functools
import os
import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from barnabas.wire.message import Message
from barnabas.wire.messages import declared
from barnabas.wire.schema import Field, Struct
from barnabas.wire.types import Fixed

INTEGERS = {"b": 8, "h": 16, "i": 32, "q": 64}
NATURALS = {"H": 16, "I": 32}
TEXTS = st.text(max_size=8) | st.sampled_from(["x" * 126, "x" * 127, "ä" * 100, "x" * 20_000])
BLOBS = st.binary(max_size=8) | st.sampled_from([b"y" * 126, b"y" * 127, bytes(300)])

# Few examples that are the same in each run; BARNABAS_EXAMPLES=500 uses more.
settings.register_profile(
    "wire",
    max_examples=int(os.environ.get("BARNABAS_EXAMPLES", "6")),
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example],
)

Leaf = Callable[[Field], st.SearchStrategy[Any] | None]


def leaf(field: Field) -> st.SearchStrategy[Any]:
    """Returns any value of a field of that type, except arrays and null."""
    if isinstance(field.kind, Fixed):
        format = field.kind.format
        if format in INTEGERS:
            end = 2 ** (INTEGERS[format] - 1)
            return st.integers(-end, end - 1)
        if format in NATURALS:
            return st.integers(0, 2 ** NATURALS[format] - 1)
        return {"?": st.booleans(), "d": st.floats(allow_nan=False), "16s": st.binary(min_size=16, max_size=16)}[format]
    assert not isinstance(field.kind, type)
    return TEXTS if field.kind.shape == "text" else BLOBS


@functools.cache
def values(cls: type[Struct], version: int, chosen: Leaf = lambda field: None) -> st.SearchStrategy[Any]:
    """Returns structures with the fields of that version; ``chosen`` may restrict the leaves."""
    given = {}
    for field in cls.wire_fields():
        if version in field.versions:
            if isinstance(field.kind, type):
                strategy = values(field.kind, version, chosen)
            else:
                narrowed = chosen(field)
                strategy = leaf(field) if narrowed is None else narrowed
            if field.is_array:
                strategy = st.lists(strategy, max_size=3)
            if version in field.nullable:
                strategy = st.none() | strategy
            if field.tag is not None:
                strategy = st.just(field.default) | strategy
            given[field.name] = strategy
    return st.builds(cls, **given)


@pytest.fixture(scope="session")
def any_value() -> Callable[..., st.SearchStrategy[Any]]:
    return values


def random_value(cls: type[Struct], version: int, chance: random.Random) -> Struct:
    """Returns a small structure with a value in every field: one or two elements, rarely null, mostly with tags."""
    given = {}
    for field in cls.wire_fields():
        if version in field.versions:
            if version in field.nullable and chance.random() < 0.2:
                given[field.name] = None
            elif field.is_array:
                given[field.name] = [random_leaf(field, version, chance) for _ in range(chance.randint(1, 2))]
            elif field.tag is None or chance.random() < 0.7:
                given[field.name] = random_leaf(field, version, chance)
    return cls(**given)


def random_leaf(field: Field, version: int, chance: random.Random) -> Any:
    if isinstance(field.kind, type):
        return random_value(field.kind, version, chance)
    if isinstance(field.kind, Fixed):
        if field.kind.format == "16s":
            return chance.randbytes(16)
        return {"?": True, "d": 0.5}.get(field.kind.format, chance.randint(0, 127))
    content = chance.randbytes(chance.randint(0, 9)).hex()
    return content if field.kind.shape == "text" else content.encode()


Sample = tuple[type[Message], int, bytes]


@pytest.fixture(scope="session")
def samples() -> list[Sample]:
    """Returns a valid sample of every declared message at every version: class, version, bytes."""
    chance = random.Random(18)
    return [
        (cls, version, random_value(cls, version, chance).encode(version=version))
        for cls in declared().values()
        for version in range(cls.versions.first, cls.versions.last + 1)
    ]
