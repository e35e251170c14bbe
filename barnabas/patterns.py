"""Patterns of names, in the syntax of RE2: what it refuses is refused, and no pattern takes long.

Knows nothing of what is named. Python's own ``re`` would take other patterns, and with some of them for ever.
"""

from collections.abc import Callable

from barnabas.errors import InvalidRegularExpression


def matcher(pattern: str) -> Callable[[str], bool]:
    """Whether a whole name is as ``pattern`` says. :raises InvalidRegularExpression: RE2 refuses it

    >>> is_ours = matcher("orders-[0-9]+")
    >>> is_ours("orders-12"), is_ours("orders-12-eu")
    (True, False)
    """
    try:
        import re2  # here, as it costs more than all else that a broker imports to start
    except ImportError as error:
        raise InvalidRegularExpression("without the package google-re2 no pattern can be read here") from error
    options = re2.Options()
    options.log_errors = False
    try:
        compiled = re2.compile(pattern, options)
    except re2.error as error:
        (reason,) = error.args
        told = reason.decode(errors="replace") if isinstance(reason, bytes) else reason
        raise InvalidRegularExpression(f"{pattern}: {told}") from error
    return lambda name: compiled.fullmatch(name) is not None
