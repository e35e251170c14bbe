"""Classes of options, which can be imported without Spark for each job."""

import dataclasses
import subprocess
import sys
from collections.abc import Mapping

import pytest

from barnabas.pipelines.jobs import JOBS
from barnabas.pipelines.jobs.options import REQUIRED, check, described, option, options


@options
class Sample:
    to: str = option("Where to.")
    size: int | None = option("How big.", default=None, least=1)
    pause: float = option("How long.", default=1.0, above=0)
    topics: tuple[str, ...] = option("Which.", default=())
    client: Mapping[str, str] = option("Settings.", default_factory=dict, file=True)
    kind: str = option("What.", default="a", choices=("a", "b"))
    fast: bool = option("Whether.", default=False)
    hidden: int = dataclasses.field(default=3)

    def __post_init__(self):
        check(self)


def test_fields_are_described_in_their_order():
    found = {each.name: each for each in described(Sample)}
    assert list(found) == ["to", "size", "pause", "topics", "client", "kind", "fast"]
    assert found["to"].default is REQUIRED
    assert (found["size"].type, found["size"].default) == (int, None)
    assert (found["topics"].type, found["topics"].many) == (str, True)
    assert found["client"].pairs
    assert found["client"].default == {}
    assert found["kind"].option.choices == ("a", "b")
    assert found["fast"].type is bool


def test_options_are_keywords_and_frozen():
    made = Sample(to="x", topics=("a",))
    assert (made.to, made.size, made.client, made.hidden) == ("x", None, {}, 3)
    with pytest.raises(dataclasses.FrozenInstanceError):
        made.to = "y"
    with pytest.raises(TypeError, match="to"):
        Sample()
    with pytest.raises(TypeError):
        Sample("x")


def test_what_may_be_a_password_is_not_shown():
    assert "swordfish" not in repr(Sample(to="x", client={"ssl.key.password": "swordfish"}))


def test_an_invalid_choice_is_refused_by_name():
    with pytest.raises(ValueError, match="kind is 'c', but must be one of a, b"):
        Sample(to="x", kind="c")


def test_a_number_out_of_its_bounds_is_refused_by_name():
    assert Sample(to="x", size=1, pause=0.1).size == 1
    with pytest.raises(ValueError, match="size is 0, but must be at least 1"):
        Sample(to="x", size=0)
    with pytest.raises(ValueError, match="pause is 0, but must be above 0"):
        Sample(to="x", pause=0)


@pytest.mark.parametrize("name", JOBS)
def test_each_option_of_each_job_says_what_it_is(name):
    found = list(described(JOBS[name].options_class()))
    assert found
    for each in found:
        assert len(each.option.help) > 10, each.name
        if each.option.choices and each.default not in (REQUIRED, None) and not each.many:
            assert each.default in each.option.choices


@pytest.mark.parametrize("name", JOBS)
def test_options_are_read_without_spark(name):
    program = (
        f"import sys; from barnabas.pipelines.jobs import JOBS; JOBS[{name!r}].options_class(); "
        "print([each for each in ('pyspark', 'pyarrow', 'numpy', 'pandas', 'kafka') if each in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert ran.stdout == "[]\n"
