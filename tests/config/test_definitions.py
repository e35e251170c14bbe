"""Each declaration, compared with Apache Kafka 4.3.1's."""

import ast
import re
from pathlib import Path

import pytest

import barnabas
from barnabas.config.bounds import BOUNDS
from barnabas.config.definition import ConfigDef, text_of
from barnabas.config.definitions import BROKER, BROKER_MODULES, TOPIC, of_client_metrics, of_groups, topic_name_of

GOLDEN = Path(__file__).parent / "golden" / "kafka_4_3_1.tsv"
ROWS = [line.split("\t") for line in GOLDEN.read_text().splitlines() if not line.startswith("#")]
TABLES = {"broker": BROKER, "topic": TOPIC, "group": of_groups(), "client-metrics": of_client_metrics()}
#: Kafka declares these three separately: they can be set dynamically, but not in the broker's file.
DYNAMIC_ONLY = {
    "leader.replication.throttled.rate",
    "follower.replication.throttled.rate",
    "replica.alter.log.dirs.io.max.bytes.per.second",
}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row[0]}-{row[1]}")
def test_a_config_is_declared_as_in_kafka(row):
    resource, name, kind, default, importance, scope, internal = row
    definition = TABLES[resource][name]
    written = text_of(definition.type, definition.default)
    assert definition.type.name.lower() == kind
    assert ("null" if written is None else f'"{written}"') == default
    assert (definition.importance, definition.scope, definition.internal) == (importance, scope, internal == "internal")


@pytest.mark.parametrize("resource", TABLES)
def test_nothing_is_declared_that_kafka_does_not_have(resource):
    theirs = {row[1] for row in ROWS if row[0] == resource}
    ours = {name for name in TABLES[resource] if name.startswith("barnabas.")}
    assert set(TABLES[resource]) - theirs - ours == (DYNAMIC_ONLY if resource == "broker" else set())
    assert all(TABLES[resource][name].internal for name in ours)


def test_no_config_is_declared_twice():
    assert sum(len(module.CONFIGS) for module in BROKER_MODULES) == len(BROKER)


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_a_default_is_a_value_that_its_own_rule_accepts(table: dict[str, ConfigDef]):
    for definition in table.values():
        if definition.default is not None:
            text = text_of(definition.type, definition.default)
            assert definition.parse(text) == definition.default, definition.name


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_a_doc_is_one_or_two_short_sentences(table: dict[str, ConfigDef]):
    for definition in table.values():
        assert re.fullmatch(r".{15,130}\.", definition.doc), definition.name


def test_synonyms_are_configs_of_the_broker_and_have_its_default():
    for table in (TOPIC, of_groups()):
        for definition in table.values():
            for synonym in definition.synonyms:
                assert BROKER[synonym.name].scope != "per-broker"
            if definition.synonyms:
                weakest = definition.synonyms[-1]
                assert definition.default == BROKER[weakest.name].default * weakest.scale or weakest.scale == 1


def test_a_brokers_config_knows_the_topics_config_that_falls_back_to_it():
    assert topic_name_of("log.retention.hours") == "retention.ms"
    assert topic_name_of("message.max.bytes") == "max.message.bytes"
    assert topic_name_of("num.partitions") is None


PACKAGE = Path(barnabas.__file__).parent
#: Classes whose fields are configs, with underscores for dots.
SETTINGS = {
    PACKAGE / name
    for name in (
        "groups/config.py",
        "transactions/config.py",
        "share/config.py",
        "log/housekeeping.py",
        "log/cleaner.py",
    )
}
#: Names that consist of a prefix and a suffix of all internal topics.
PREFIXED = {
    f"{prefix}.{name}"
    for prefix in ("offsets.topic", "transaction.state.log", "share.coordinator.state.topic")
    for name in ("num.partitions", "replication.factor", "segment.bytes")
} | {"transaction.state.log.min.isr", "share.coordinator.state.topic.min.isr"}


def modules_of_the_broker():
    """Returns all modules but those of clients, such as the pipeline, whose configs are those of clients."""
    paths = ((path, path.relative_to(PACKAGE).parts[0]) for path in sorted(PACKAGE.rglob("*.py")))
    clients = PACKAGE / "security" / "clients"
    return [(path, room) for path, room in paths if room not in ("pipelines", "columnar") and path.parent != clients]


def names_in_code():
    """Returns the configs that code outside of config/ and cli/ uses by name, and the used settings of topics."""
    configs, fields = set(PREFIXED), set()
    for path, room in modules_of_the_broker():
        if room == "cli" or (room == "config" and path.name not in ("broker.py", "roles.py")):
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                configs.add(node.value)
            elif isinstance(node, ast.Attribute):
                fields.add(node.attr)
            elif isinstance(node, ast.AnnAssign) and path in SETTINGS:
                configs.add(ast.unparse(node.target).replace("_", "."))
    # Streams groups use theirs without the common prefix.
    configs.update(name for name in of_groups() if name.partition("streams.")[2] in configs)
    for name in configs & of_groups().keys():
        configs.update(synonym.name for synonym in of_groups()[name].synonyms)
        configs.update(bound for bound in BOUNDS.get(name, ()) if bound is not None)
    return configs, fields


def test_a_config_counts_as_in_effect_only_if_something_asks_for_it():
    configs, fields = names_in_code()
    for name, definition in TOPIC.items():
        if definition.in_effect and not definition.internal:
            assert name.replace(".", "_") in fields or name in configs, f"nobody reads {name} of a topic"
    for name, definition in BROKER.items():
        topic = topic_name_of(name)
        if definition.in_effect and name not in configs:
            assert topic is not None and TOPIC[topic].in_effect, f"nobody asks for {name}"


#: Used in code, but not as a config.
NAMED_ONLY = {"compression.type"}


def test_a_config_that_something_asks_for_counts_as_in_effect():
    configs, _ = names_in_code()
    forgotten = {name for name in configs & set(BROKER) - NAMED_ONLY if not BROKER[name].in_effect}
    assert not forgotten - {"cordoned.log.dirs", "log.roll.jitter.ms"}


@pytest.mark.parametrize(
    "path", [path for path, _ in modules_of_the_broker()], ids=lambda path: path.relative_to(PACKAGE).as_posix()
)
def test_nothing_asks_for_a_config_that_there_is_not(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Subscript) and ast.unparse(node.value).endswith("config"):
            index = node.slice
            if isinstance(index, ast.Constant) and isinstance(index.value, str):
                assert index.value in BROKER
