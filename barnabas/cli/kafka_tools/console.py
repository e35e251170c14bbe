"""``kafka-console-producer`` over ``barnabas produce``, ``kafka-console-consumer`` over ``barnabas consume``.

Knows nothing of records. Apache Kafka's ``ConsoleProducer`` and ``ConsoleConsumer``.
"""

import sys
from collections.abc import Mapping, Sequence

import click

from barnabas.cli.client import read_properties
from barnabas.cli.kafka_tools.options import (
    CONNECTION,
    FLAG,
    OWN,
    OWN_FLAG,
    VALUE,
    Given,
    Option,
    Takes,
    UsageProblem,
    require,
)
from barnabas.cli.kafka_tools.tool import Failed, Tool, call, connection, run

LINE_READER = "org.apache.kafka.tools.LineMessageReader"
FORMATTER = "org.apache.kafka.tools.consumer.DefaultMessageFormatter"


def _property(name: str) -> Option:
    return Option(ours="--producer-property", prefix=f"{name}=")


PRODUCER_OPTIONS = {
    **CONNECTION,
    "batch-size": _property("batch.size"),
    "command-property": Option(ours="--producer-property"),
    "compression-codec": Option(Takes.MAYBE, ""),
    "line-reader": OWN,
    "max-block-ms": _property("max.block.ms"),
    "max-memory-bytes": _property("buffer.memory"),
    "max-partition-memory-bytes": _property("batch.size"),
    "message-send-max-retries": _property("retries"),
    "metadata-expiry-ms": _property("metadata.max.age.ms"),
    "producer-property": VALUE,
    "producer.config": VALUE,
    "property": Option(ours="--reader-property"),
    "reader-config": OWN,
    "reader-property": VALUE,
    "request-required-acks": VALUE,
    "request-timeout-ms": _property("request.timeout.ms"),
    "retry-backoff-ms": _property("retry.backoff.ms"),
    "socket-buffer-size": _property("send.buffer.bytes"),
    "sync": FLAG,
    "timeout": _property("linger.ms"),
    "topic": VALUE,
}
CONSUMER_OPTIONS = {
    **CONNECTION,
    "command-property": Option(ours="--consumer-property"),
    "consumer-property": VALUE,
    "consumer.config": VALUE,
    "enable-systest-events": OWN_FLAG,
    "formatter": OWN,
    "formatter-config": OWN,
    "formatter-property": VALUE,
    "from-beginning": FLAG,
    "group": VALUE,
    "include": VALUE,
    "isolation-level": VALUE,
    "key-deserializer": Option(ours="--formatter-property", prefix="key.deserializer="),
    "max-messages": VALUE,
    "offset": VALUE,
    "partition": VALUE,
    "property": Option(ours="--formatter-property"),
    "skip-message-on-error": FLAG,
    "timeout-ms": VALUE,
    "topic": VALUE,
    "value-deserializer": Option(ours="--formatter-property", prefix="value.deserializer="),
}
#: Deprecated options, by the new ones. They cannot be combined.
_PRODUCERS_OLD = {
    "property": "reader-property",
    "producer-property": "command-property",
    "producer.config": "command-config",
}
_CONSUMERS_OLD = {
    "property": "formatter-property",
    "consumer-property": "command-property",
    "consumer.config": "command-config",
}


def console_producer(arguments: Sequence[str]) -> int:
    """``kafka-console-producer``: writes lines as records."""
    return call(PRODUCER, arguments)


def _produce(given: Given) -> int:
    connection_or(given, 'Missing required argument "[bootstrap-server]"')
    require(given, "topic")
    _refuse_both(given, _PRODUCERS_OLD)
    _only(given, "line-reader", LINE_READER)
    for old, new in _PRODUCERS_OLD.items():
        if old in given:
            click.echo(f"Warning: --{old} is deprecated and will be removed in a future version. Use --{new} instead.")
    codec = [f"--compression-codec={given.one('compression-codec') or 'gzip'}"] if "compression-codec" in given else []
    words = [*_file(given, "reader-config", "--reader-property"), *given.words(), *codec]
    try:
        return run(["produce", *connection(given), *words])
    except Failed as error:
        if error.name or not error.message.startswith("No key separator"):
            raise
        raise Failed(f"org.apache.kafka.common.KafkaException: {error.message}") from None


def console_consumer(arguments: Sequence[str]) -> int:
    """``kafka-console-consumer``: prints records as lines."""
    return call(CONSUMER, arguments)


def _consume(given: Given) -> int:
    if ("topic" in given) == ("include" in given):
        raise UsageProblem("Exactly one of the following arguments is required: [topic], [include]")
    connection_or(given, 'Missing required argument "[bootstrap-server]"')
    _refuse_both(given, _CONSUMERS_OLD)
    if "partition" in given and "topic" not in given:
        raise UsageProblem("The topic is required when partition is specified.")
    if "offset" in given and "partition" not in given:
        raise UsageProblem("The partition is required when offset is specified.")
    _only(given, "formatter", FORMATTER)
    for old, new in _CONSUMERS_OLD.items():
        if old in given:
            click.echo(f"Option --{old} is deprecated and will be removed in a future version. Use --{new} instead.")
    sys.stdout.flush()
    return run(
        ["consume", *connection(given), *_file(given, "formatter-config", "--formatter-property"), *given.words()]
    )


def connection_or(given: Given, text: str) -> None:
    """:raises UsageProblem: with this text, if there is no address"""
    if "bootstrap-server" not in given:
        raise UsageProblem(text)


def _refuse_both(given: Given, old: Mapping[str, str]) -> None:
    for name, new in old.items():
        if name in given and new in given:
            first, second = (new, name) if new == "reader-property" else (name, new)
            raise UsageProblem(f"Options --{first} and --{second} cannot be specified together.")


def _only(given: Given, option: str, known: str) -> None:
    """:raises UsageProblem: the class is not one of Kafka's own: Java classes cannot be loaded"""
    if given.one(option, known) not in (known, known.rpartition(".")[2]):
        raise UsageProblem(
            f"--{option} is {given.one(option)}, but only {known} is there: Barnabas runs no Java classes."
        )


def _file(given: Given, option: str, ours: str) -> list[str]:
    """Returns the properties of a file as options of our command; the options of the call override them."""
    if option not in given:
        return []
    return [f"{ours}={name}={value}" for name, value in read_properties(given.one(option)).items()]


PRODUCER = Tool("This tool helps to read data from standard input and publish it to Kafka.", PRODUCER_OPTIONS, _produce)
CONSUMER = Tool(
    "This tool helps to read data from Kafka topics and outputs it to standard output.", CONSUMER_OPTIONS, _consume
)
