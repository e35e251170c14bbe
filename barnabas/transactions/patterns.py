"""Patterns of transactional ids, as RE2 takes them.

Knows nothing of transactions.
"""

import re
from collections.abc import Callable

from barnabas.errors import InvalidRegularExpression


def matcher(pattern: str) -> Callable[[str], bool]:
    """Whether a whole name is as ``pattern`` says. :raises InvalidRegularExpression: RE2 refuses the pattern"""
    try:
        compiled = re.compile(pattern)
    except re.error as error:
        raise InvalidRegularExpression(f"{pattern}: {error}") from error
    return lambda name: compiled.fullmatch(name) is not None
