"""The errors of the protocol beside Apache Kafka's: codes, messages, and which are retriable.

``java/ErrorTexts.java`` prints Apache Kafka's.
"""

from pathlib import Path

from barnabas.errors import KafkaError

from .apache import CURRENT, run_java

PROGRAM = Path(__file__).parent / "java" / "ErrorTexts.java"


def test_errors_are_apache_kafkas(kafka_jars: Path) -> None:
    printed = run_java(CURRENT, str(PROGRAM)).stdout.splitlines()
    theirs = {int(code): (is_retriable == "true", text) for code, is_retriable, text in map(split, printed)}
    assert theirs == {code: (error.retriable, error.message) for code, error in KafkaError.by_code.items()}


def split(line: str) -> list[str]:
    return line.split("\t")
