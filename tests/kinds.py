"""The kinds of errors, for comparisons: two instances of an error are not equal.

Knows nothing of the code that raises them.
"""

from barnabas.errors import KafkaError


def kind(error: KafkaError | None) -> type[KafkaError] | None:
    """Returns the class of the error, or None."""
    return None if error is None else type(error)
