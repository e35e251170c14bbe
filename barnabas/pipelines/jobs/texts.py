"""Options of Spark's writers and of ``to_json`` that write values as text without loss.

Knows nothing of the values, and does not import Spark.
"""

TIMES = {
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}
"""Spark's default formats stop at milliseconds."""

AS_JSON = {"ignoreNullFields": "false", **TIMES}
"""Writes null columns too, and microseconds."""

AS_CSV = {
    "escape": '"',  # quotes are doubled, as RFC 4180 says and other readers expect
    "ignoreLeadingWhiteSpace": "false",  # by default Spark's writer trims
    "ignoreTrailingWhiteSpace": "false",
    **TIMES,
}

IN_UTC = {"timeZone": "UTC"}
"""Independent of the session's time zone."""
