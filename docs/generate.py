"""Writes docs/reference/ from the code: configs, APIs, errors, options of the pipeline, each from its one declaration.

And what other pages show of the code's tables, between ``<!-- name: ... -->`` and ``<!-- /name -->``.
``make docs`` runs it; a test fails while a file differs from what the code says.
"""

import enum
import importlib
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

import click

from barnabas.api_handlers.registry import APIS, Scope
from barnabas.api_handlers.rights.table import RIGHTS
from barnabas.cli import pipeline as pipeline_command
from barnabas.config import definitions
from barnabas.config.definition import DOUBLE, MAX_DOUBLE, ConfigDef, text_of
from barnabas.errors import KafkaError
from barnabas.integers import MAX_INT, MAX_LONG
from barnabas.metrics.declared import METRICS
from barnabas.pipelines import option_tables
from barnabas.pipelines.client.settings import REFUSED, SETTINGS
from barnabas.pipelines.jobs import JOBS
from barnabas.pipelines.jobs.options import REQUIRED, Described, described
from barnabas.pipelines.jobs.streaming import spec
from barnabas.pipelines.values import formats
from barnabas.transactions import ending
from barnabas.transactions.ending import Verdict
from barnabas.transactions.states import FROM, State

REFERENCE = Path(__file__).parent / "reference"
TRANSACTIONS = Path(__file__).parent / "internals" / "transactions.md"
GROUPS = Path(__file__).parent / "internals" / "groups.md"
GENERATED = "<!-- Written by docs/generate.py from the code: `make docs`. Changes made here are lost. -->\n"

THEMES = {
    "server": "The broker and its sockets",
    "log": "Logs",
    "groups": "Groups and offsets",
    "transactions": "Transactions and idempotence",
    "replication": "Replication",
    "kraft": "Controller and metadata",
    "shares": "Share groups",
    "metrics": "Metrics and quotas",
    "security": "TLS, principals, tokens",
    "sasl": "SASL",
    "remote": "Remote storage",
    "own": "Our own",
}
LIMITS = {
    str(MAX_INT): "2³¹ - 1",
    str(MAX_LONG): "2⁶³ - 1",
    text_of(DOUBLE, MAX_DOUBLE): "the largest double",
}


def main() -> None:
    """Write each file of the reference."""
    REFERENCE.mkdir(exist_ok=True)
    for name, text in pages().items():
        (REFERENCE / name).write_text(text, "utf-8")
    TRANSACTIONS.write_text(transactions(TRANSACTIONS.read_text("utf-8")), "utf-8")
    GROUPS.write_text(groups(GROUPS.read_text("utf-8")), "utf-8")


def pages() -> dict[str, str]:
    """Each file's text by its name."""
    return {
        "configs.md": configs(),
        "apis.md": apis(),
        "rights.md": rights(),
        "errors.md": errors(),
        "pipeline.md": pipeline(),
        "metrics.md": metrics(),
    }


def configs() -> str:
    """Every config of Apache Kafka 4.3.1, with what it does here."""
    count, in_effect = len(definitions.BROKER), sum(config.in_effect for config in definitions.BROKER.values())
    parts = [
        "# Configs\n",
        GENERATED,
        "Names, types, defaults and rules are Apache Kafka 4.3's. All of them are taken, and told by DescribeConfigs. "
        f"**Of the {count} of a broker, {in_effect} make a difference in this version**, marked ✓. If one of the "
        "others is set to something else than its default, the broker says so when it starts. How to set them: "
        "[configure](../how-to/configure.md).\n",
        "*Changes* says when: at the next start (no), while the broker runs for one broker, or for all (cluster).\n",
        "## Configs of a topic\n",
        "Where a topic has none of its own, the first of the broker's configs in the last column that is set counts.\n",
        table(
            ("", "name", "meaning", "type", "default", "must be", "falls back to"),
            (
                (*facts(config), "<br>".join(f"`{synonym.name}`" for synonym in config.synonyms))
                for config in definitions.TOPIC.values()
                if not config.internal
            ),
        ),
        "## Configs of a broker\n",
    ]
    for module in definitions.BROKER_MODULES:
        parts.append(f"### {THEMES[module.__name__.rpartition('.')[2]]}\n")
        parts.append(
            table(
                ("", "name", "meaning", "type", "default", "must be", "changes"),
                ((*facts(config), CHANGES[config.scope]) for config in module.CONFIGS if not config.internal),
            )
        )
    for title, words, those in (
        (
            "Configs of a group",
            "Where a group has none of its own, the broker's with `group.` before its name counts, if there is one.",
            definitions.of_groups(),
        ),
        (
            "Configs of a subscription to clients' metrics",
            "Clients ask for them where metrics are on (`barnabas.metrics.listener`).",
            definitions.of_client_metrics(),
        ),
    ):
        parts.append(f"## {title}\n")
        parts.append(f"{words}\n")
        parts.append(table(("", "name", "meaning", "type", "default", "must be"), map(facts, those.values())))
    hidden = [
        config for those in (definitions.BROKER, definitions.TOPIC) for config in those.values() if config.internal
    ]
    for title, words, wanted in (
        ("Configs of a running broker", "They can be set while a broker runs, and not in its file.", DYNAMIC_ONLY),
        ("Configs for tests", "Kafka has these, too, and shows them only where they are set.", not DYNAMIC_ONLY),
    ):
        those_hidden = [facts(config) for config in hidden if config.name.endswith(RATES) is wanted]
        parts.append(f"## {title}\n")
        parts.append(f"{words}\n")
        parts.append(table(("", "name", "meaning", "type", "default", "must be"), those_hidden))
    return "\n".join(parts)


DYNAMIC_ONLY = True
RATES = (".throttled.rate", "alter.log.dirs.io.max.bytes.per.second")
CHANGES = {"read-only": "no", "per-broker": "broker", "cluster-wide": "cluster"}


def facts(config: ConfigDef) -> tuple[str, ...]:
    """The cells that all tables of configs have in common."""
    default = text_of(config.type, config.default)
    shown = "" if default is None else LIMITS.get(default) or (f"`{default}`" if default else "empty")
    rule = config.validator.rule if config.validator is not None else ""
    return "✓" if config.in_effect else "", f"`{config.name}`", config.doc, config.type.name.lower(), shown, rule


def apis() -> str:
    """Every API that is answered, with its versions."""
    rows = [
        (
            str(key),
            f"[{name_of(api.request)}]({PROTOCOL}{name_of(api.request)})",
            str(api.versions),
            ANSWERED_BY[api.scope],
        )
        for key, api in sorted(APIS.items())
    ]
    return "\n".join([
        "# APIs\n",
        GENERATED,
        "What ApiVersions promises, and what is answered: from the registered handlers, as ApiVersions itself. "
        "Produce 0-2 and Fetch 0-3 are for [clients from before 0.11](../how-to/old-clients.md).\n",
        "A listener in `controller.listener.names` answers what controllers answer, any other what brokers answer. A "
        "broker that is not the active controller forwards what is marked so, as its client.\n",
        table(("key", "name", "versions", "answered by"), rows),
    ])  # fmt: skip


ANSWERED_BY = {
    Scope.BROKER: "brokers",
    Scope.CONTROLLER: "controllers",
    Scope.BOTH: "brokers and controllers",
    Scope.FORWARDED: "controllers; brokers forward it",
    Scope.PREPARED: "controllers; brokers check it and forward the rest",
    Scope.MEASURED: "brokers, where metrics are on",
}


PROTOCOL = "https://kafka.apache.org/protocol.html#The_Messages_"


def name_of(request: type) -> str:
    """The API's name."""
    return request.__name__.removesuffix("Request")


def rights() -> str:
    """What each API needs the right for."""
    rows = []
    for key, api in APIS.items():
        name, entry = api.request.__name__.removesuffix("Request"), RIGHTS[key]
        if not entry.needs:
            rows.append((name, str(key), "", "", entry.note))
        for number, need in enumerate(entry.needs):
            kind = need.kind.name.title().replace("_", "")
            rows.append(
                (*((name, str(key)) if number == 0 else ("", "")), f"`{need.operation.name}`", kind, need.without)
            )
        if entry.needs and entry.note:
            rows.append(("", "", "", "", entry.note))
    return "\n".join(
        [
            "# Rights\n",
            GENERATED,
            "With `authorizer.class.name`, each API asks for these rights, as Apache Kafka 4.3 does. Without an "
            "authorizer everybody may do everything. READ, WRITE, DELETE and ALTER imply DESCRIBE, and ALTER_CONFIGS "
            "implies DESCRIBE_CONFIGS. An API without an operation needs no right.\n",
            table(("API", "key", "operation", "on", "without it"), rows),
        ]
    )


def errors() -> str:
    """Every error of the protocol."""
    rows = [
        (str(code), f"`{error.__name__}`", "yes" if error.retriable else "", error.message)
        for code, error in sorted(KafkaError.by_code.items())
    ]
    return "\n".join([
        "# Errors\n",
        GENERATED,
        "The errors of the protocol: their codes, whether it is worth trying again, and what they mean. "
        "`barnabas explain 22` says the same.\n",
        table(("code", "name", "retriable", "meaning"), rows),
    ])  # fmt: skip


def metrics() -> str:
    """Every metric that a scrape shows."""
    rows = [(f"`{each.name}`", each.kind, ", ".join(each.labels), each.help) for each in METRICS]
    return "\n".join([
        "# Metrics\n",
        GENERATED,
        "What `/metrics` of `barnabas.metrics.listener` shows ([how](../how-to/metrics.md)), beside `process_*` and "
        "`python_*`. A counter's samples end in `_total`; a summary has quantiles, and samples that end in `_count` "
        "and `_sum`. The names are those that the JMX exporter's usual rules give the MBeans of Apache Kafka; those of "
        "groups are kafka_exporter's.\n",
        table(("metric", "kind", "labels", "meaning"), rows),
    ])  # fmt: skip


def pipeline() -> str:
    """Every option of the data source and sink, of their client, and of the jobs."""
    parts = [
        "# The data pipeline\n",
        GENERATED,
        "Options of [the jobs](#options-of-every-job) (`barnabas pipeline`), and of the data source that they are made "
        'with (`spark.read.format("barnabas")` and the other three ways). From zero: '
        "[the tutorial](../tutorial/pipeline.md).\n",
        'From Python a job is `run_job(ImportOptions(topic="orders", files="in"), once=True)` of '
        "`barnabas.pipelines.jobs`, with the options below in snake case; each job's class of options is in the module "
        "of its name (`barnabas.pipelines.jobs.export`; `import_`, as `import` is a word of Python's).\n",
        "## Options of every job\n",
        table(
            ("option", "meaning"),
            (
                (f"`{' '.join(filter(None, (each.opts[0], each.metavar)))}`", each.help or "")
                for each in pipeline_command.COMMON
                if isinstance(each, click.Option)
            ),
        ),
    ]
    for name, entry in JOBS.items():
        parts += [
            f"## {name}\n",
            f"{entry.help}\n",
            table(("option", "meaning", "must be", "default"), map(job_option, described(entry.options_class()))),
        ]
        if name == "stream":
            parts += [
                "What a table (`--table NAME=topic:TOPIC,option=value,...`) can be told:\n",
                table(("option", "meaning"), ((f"`{option}`", meaning) for option, meaning in spec.OPTIONS.items())),
            ]
    parts += [
        "## Formats of values\n",
        f"{', '.join(f'`{each}`' for each in formats.FORMATS)}, each with options after it: "
        "`avro,registry=http://localhost:8081`. [How](../how-to/decode-values.md).\n",
        table(("option", "meaning"), ((f"`{option}`", meaning) for option, meaning in formats.OPTIONS.items())),
    ]
    for title, words, scope in (
        ("Reading topics", "Of `spark.read` and `spark.readStream` with the format `barnabas`.", option_tables.READ),
        ("Writing topics", "Of `df.write` and `df.writeStream` with the format `barnabas`.", option_tables.WRITE),
    ):
        rows = ((f"`{each.name}`", each.doc, used_in(each), code(each.default)) for each in scope.values())
        parts += [f"## {title}\n", f"{words}\n", table(("option", "meaning", "for", "default"), rows)]
    parts += [
        "## The client\n",
        "Kafka's own settings by their Java names, with `kafka.` before them as options of the data source, as they "
        "are in a job's file of properties (`--command-config`).\n",
        table(
            ("setting", "meaning", "default"),
            ((f"`{each.name}`", each.doc, code(each.default)) for each in SETTINGS.values()),
        ),
        "These are refused, as they would break what is meant or do nothing:\n",
        table(("setting", "why"), ((f"`{name}`", why) for name, why in REFUSED.items())),
        "And these options of others:\n",
        table(("option", "why"), ((f"`{name}`", why) for name, why in option_tables.NO_EFFECT.items())),
    ]
    return "\n".join(parts)


def job_option(each: Described) -> tuple[str, str, str, str]:
    """An option of a job: its flag, its meaning, what it must be, its default."""
    said = each.option
    flags = each.flags
    if each.type is bool and each.default is not False:
        flags = (*flags, f"--no-{flags[0].removeprefix('--')}")
    names = " ".join(f"`{flag}`" for flag in flags) if not said.argument else f"`{said.metavar or each.name}`"
    if said.flags and f"--{each.name.replace('_', '-')}" not in said.flags:
        names += f" (`{each.name}`)"
    kind = ", ".join(f"`{choice}`" for choice in said.choices) or KINDS.get(each.type, "")
    if each.pairs:
        kind = "file of properties" if said.file else "`key=value`, several times"
    elif each.many:
        kind = f"{kind}, several times".removeprefix(", ")
    default = "**required**" if each.default is REQUIRED else code(each.default)
    return names, said.help, kind, default


KINDS = {int: "whole number", float: "number", bool: "yes or no"}


def used_in(option: option_tables.OptionDef) -> str:
    """Whether an option is for batches, for streams, or for both."""
    return " and ".join(kind for kind in ("batch", "stream") if any(scope.startswith(kind) for scope in option.scopes))


def code(default: object) -> str:
    """A default as it is written; nothing where there is none."""
    if default is None or default == () or default == {}:
        return ""
    if isinstance(default, bool):
        return "yes" if default else "no"
    if isinstance(default, tuple):
        return " ".join(f"`{each}`" for each in default)
    return f"`{default}`" if str(default) else "empty"


def transactions(page: str) -> str:
    """The page about transactions with its diagram and its table of ends as the code has them."""
    for name, text in (("states", states()), ("ends", ends())):
        page = re.sub(rf"(<!-- {name}: .*? -->\n).*?(<!-- /{name} -->)", rf"\1\n{text}\n\2", page, flags=re.DOTALL)
    return page


CAUSES = {
    State.EMPTY: "InitProducerId",
    State.ONGOING: "partitions are added",
    State.PREPARE_COMMIT: "EndTxn, commit",
    State.PREPARE_ABORT: "EndTxn, abort",
    State.COMPLETE_COMMIT: "all markers are written",
    State.COMPLETE_ABORT: "all markers are written",
    State.DEAD: "not used for long",
    State.PREPARE_EPOCH_FENCE: "InitProducerId, or time-out",
}


def states() -> str:
    """The states of a transactional id, and what leads from each to which, for Mermaid."""
    lines = ["```mermaid", "stateDiagram-v2", f"    [*] --> {State.EMPTY.title}: {CAUSES[State.EMPTY]}"]
    for state, former_ones in FROM.items():
        for former in sorted(former_ones):
            cause = "" if former is State.PREPARE_EPOCH_FENCE else f": {CAUSES[state]}"
            lines.append(f"    {former.title} --> {state.title}{cause}")
    return "\n".join([*lines, f"    {State.DEAD.title} --> [*]", "```\n"])


def ends() -> str:
    """What EndTxn is answered, by state, generation and epoch."""
    words = {Verdict.END: "**done**", Verdict.DONE: "already done"}
    columns = [(rules, is_commit) for rules in (ending.V1, ending.V2, ending.V2_AGAIN) for is_commit in (True, False)]
    head = ["", "older: commit", "abort", "newer: commit", "abort", "newer, epoch before: commit", "abort"]
    rows = []
    for state in sorted({state for state, _ in ending.V1}):
        verdicts = [rules.get((state, is_commit), "PRODUCER_FENCED") for rules, is_commit in columns]
        cells = [words.get(each) or (each if isinstance(each, str) else constant(each)) for each in verdicts]
        rows.append([f"`{state.title}`", *cells])
    return table(head, rows)


DIAGRAM = re.compile(
    r"(?P<begin><!-- (?P<name>states of [a-z ]+): written by docs/generate.py from barnabas/(?P<path>\S+)\.py -->\n)"
    r".*?(?P<end><!-- /(?P=name) -->)",
    re.DOTALL,
)
"""Where a page wants the diagram of the states that a module's ``PREVIOUS_STATES`` lists."""


def groups(page: str) -> str:
    """The page about groups with the diagrams of the modules that it names."""
    return DIAGRAM.sub(lambda found: f"{found['begin']}\n{diagram(found['path'])}\n{found['end']}", page)


def diagram(path: str) -> str:
    """The states of a module, and from which each can be reached, for Mermaid; the first one is where all begins."""
    module = importlib.import_module("barnabas." + path.replace("/", "."))
    previous_states: dict[enum.Enum, set[enum.Enum]] = module.PREVIOUS_STATES
    order = list(type(next(iter(previous_states))))
    lines = ["```mermaid", "stateDiagram-v2", f"    [*] --> {title(order[0])}"]
    for state, former_ones in previous_states.items():
        if former_ones == set(order):  # a deletion, say, which would only be many lines
            lines.append(f"    note right of {title(state)}: from every state")
        else:
            lines += [f"    {title(former)} --> {title(state)}" for former in sorted(former_ones, key=order.index)]
    return "\n".join([*lines, "```\n"])


def title(state: enum.Enum) -> str:
    """The state's name as clients see it, without spaces."""
    name = state.value if isinstance(state.value, str) else state.name.title()
    return re.sub(r"[^A-Za-z]", "", name)


def constant(error: type[KafkaError]) -> str:
    """An error as Kafka writes it."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", error.__name__).upper()


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |\n" for line in lines)


if __name__ == "__main__":
    main()
