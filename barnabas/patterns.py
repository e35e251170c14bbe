"""Patterns of names, in the syntax of RE2, whose matching takes linear time.

Knows nothing of the names. Python's own ``re`` has another syntax, and may take exponential time.
"""

from collections.abc import Callable

from barnabas.errors import InvalidRegularExpression

DESCRIPTIONS = {
    "missing ]": "missing closing ]",
    "missing )": "missing closing )",
    "unexpected )": "regexp/syntax: internal error",
    "trailing \\": "trailing backslash at end of expression",
    "no argument for repetition operator": "missing argument to repetition operator",
    "bad repetition operator": "invalid nested repetition operator",
    "invalid repetition size": "invalid repeat count",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid named capture group": "invalid named capture",
}
"""The messages of Kafka's RE2/J for errors of RE2, where they differ."""


def matcher(pattern: str) -> Callable[[str], bool]:
    """Returns a function that returns whether a whole name matches ``pattern``.

    :raises InvalidRegularExpression: the pattern is not valid; the message is RE2/J's

    >>> is_ours = matcher("orders-[0-9]+")
    >>> is_ours("orders-12"), is_ours("orders-12-eu")
    (True, False)
    """
    try:
        import re2  # here, since the import takes longer than all others of the broker together
    except ImportError as error:
        raise InvalidRegularExpression("The package google-re2 is not installed") from error
    options = re2.Options()
    options.log_errors = False
    try:
        compiled = re2.compile(pattern, options)
    except re2.error as error:
        (reason,) = error.args
        text = reason.decode(errors="replace") if isinstance(reason, bytes) else reason
        name = next((each for each in DESCRIPTIONS if text.startswith(each)), "")
        raise InvalidRegularExpression(DESCRIPTIONS.get(name) or text.partition(":")[0]) from error
    return lambda name: compiled.fullmatch(name) is not None
