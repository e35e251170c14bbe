"""How Spark is told to write values as text, so that nothing of them is lost.

Knows nothing of which values they are, nor of Spark: these are options of its writers and of ``to_json``.
"""

TIMES = {
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}
"""Spark's own formats end at milliseconds."""

AS_JSON = {"ignoreNullFields": "false", **TIMES}
"""Nothing is left out: no column that is null, and no microsecond."""

AS_CSV = {
    "escape": '"',  # quotes are doubled, as RFC 4180 has it and as others read
    "ignoreLeadingWhiteSpace": "false",  # Spark's writer trims unless told not to
    "ignoreTrailingWhiteSpace": "false",
    **TIMES,
}

IN_UTC = {"timeZone": "UTC"}
"""Whatever the session's time zone is."""
