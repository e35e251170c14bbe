"""Extracts the cause of a failed query from Spark's message, without stack traces, wrapping exceptions and ids.

Knows nothing of queries.
"""

import re

_TRACEBACK = re.compile(
    r"Traceback \(most recent call last\):\n(?:[ \t].*\n)*(?P<cause>\S.*(?:\n(?!\s*$|\s+at |\S*Traceback).*)*)"
)
_ENDS = re.compile(
    r"\n\s+at |\n\s*JVM stacktrace|\n=== Streaming Query ===|\n\s*Driver stacktrace|\n\s*\n|; line \d+ pos \d+"
)
_WRAPPINGS = [
    re.compile(pattern, re.DOTALL)
    for pattern in (
        r"^\[STREAM_FAILED\] Query .*?terminated with exception: ",
        r"^Job aborted due to stage failure: .*?(?:most recent failure: |: (?=\S+Exception))",
        r"^Lost task .*?\): ",
        r"^Writing job aborted(?:\.|:)?\s*",
        r"^An error occurred while calling \S+\s*",
        r"^(?:[a-z]\w*\.)+(?:[A-Z]\w*\$?)+(?:Exception|Error): ",
        r"^\[(?:PYTHON_DATA_SOURCE_ERROR|PYTHON_STREAMING_DATA_SOURCE_RUNTIME_ERROR)\] ",
    )
]
_SQLSTATE = re.compile(r"\s*SQLSTATE: \w{5}")


def cause_of(error: BaseException | str) -> str:
    """Returns the message of the last Python error in the text, or else of the first Java exception."""
    text = str(error)
    python = [found["cause"] for found in _TRACEBACK.finditer(text)]
    if python:
        cause = _ENDS.split(python[-1], maxsplit=1)[0]
        cause = re.sub(r"^(?:\w+\.)+(?=[A-Z]\w*(?::|$))", "", cause)
    else:
        cause = _ENDS.split(_unwrapped(text), maxsplit=1)[0]
    return _SQLSTATE.sub("", cause).strip() or type(error).__name__


def _unwrapped(text: str) -> str:
    """Returns the text without the prefixes of wrapping exceptions."""
    while True:
        for wrapping in _WRAPPINGS:
            shorter = wrapping.sub("", text, count=1)
            if shorter != text and shorter.strip():
                text = shorter.lstrip()
                break
        else:
            return text
