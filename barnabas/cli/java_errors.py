"""Errors of the protocol as Kafka's tools print them: by the class of Java's exception.

Knows nothing of what has raised them. Names of Apache Kafka's ``org.apache.kafka.common.errors``.
"""

from barnabas.errors import KafkaError

PACKAGE = "org.apache.kafka.common.errors"
#: Classes whose name differs from that of the error.
_CLASSES = {
    "InvalidConfig": "InvalidConfiguration",
    "RequestTimedOut": "Timeout",
    "TopicAuthorizationFailed": "TopicAuthorization",
    "GroupAuthorizationFailed": "GroupAuthorization",
    "ClusterAuthorizationFailed": "ClusterAuthorization",
    "TransactionalIdAuthorizationFailed": "TransactionalIdAuthorization",
    "UnknownServerError": "UnknownServer",
    "NonEmptyGroup": "GroupNotEmpty",
}


def java_class(name: str) -> str:
    """Returns the class of the exception for the name of an error: ``UnknownTopicOrPartition``."""
    return f"{PACKAGE}.{_CLASSES.get(name, name).removesuffix('Exception')}Exception"


def java_text(code: int, message: str | None = None) -> str:
    """Returns an error as Java prints its exception; without a message, with Kafka's text for the code."""
    kind = KafkaError.by_code.get(code)
    if kind is None:
        return f"{PACKAGE}.UnknownServerException: {message or f'Error {code}'}"
    return f"{java_class(kind.__name__)}: {message or kind.message}"
