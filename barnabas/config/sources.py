"""The sources of settings: a properties file, environment variables ``KAFKA_…``, ``--override``.

Knows nothing of the settings but their names. Files are read as in Java (``java.util.Properties``), variables as in
Kafka's official image (KIP-974).
"""

import logging
from collections.abc import Iterable, Iterator, Mapping

from barnabas.config.listener_configs import declaration_of
from barnabas.config.validators import ConfigError

logger = logging.getLogger(__name__)

ENVIRONMENT_PREFIX = "KAFKA_"
#: Variables of the official image for its JVM and its logging, which are no configs.
NOT_CONFIGS = frozenset({
    "KAFKA_VERSION",
    "KAFKA_HEAP_OPTS",
    "KAFKA_LOG4J_OPTS",
    "KAFKA_OPTS",
    "KAFKA_JMX_OPTS",
    "KAFKA_JMX_PORT",
    "KAFKA_JMX_HOSTNAME",
    "KAFKA_JVM_PERFORMANCE_OPTS",
    "KAFKA_GC_LOG_OPTS",
    "KAFKA_LOG4J_ROOT_LOGLEVEL",
    "KAFKA_LOG4J_LOGGERS",
    "KAFKA_TOOLS_LOG4J_LOGLEVEL",
})  # fmt: skip

_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_WHITE = " \t\f"


def merged(*, file: Mapping[str, str], environment: Mapping[str, str], overrides: Mapping[str, str]) -> dict[str, str]:
    """Returns all settings; overrides have precedence over the environment, and the environment over the file."""
    return {**file, **environment, **overrides}


def parse_overrides(items: Iterable[str]) -> dict[str, str]:
    """Parses ``key=value`` from the command line; the last value of a key is used.

    :raises ConfigError: an item has no ``=``
    """
    overrides = {}
    for item in items:
        name, equals, value = item.partition("=")
        if not equals or not name.strip():
            raise ConfigError("--override", item, "key=value")
        overrides[name.strip()] = value.strip()
    return overrides


def from_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Returns the configs among the variables.

    Other programs use the prefix, too: a variable that is no config is ignored, and logged.
    """
    configs = {}
    for variable, value in environment.items():
        if not variable.startswith(ENVIRONMENT_PREFIX) or variable in NOT_CONFIGS:
            continue
        name = name_of(variable)
        if declaration_of(name) is None:
            logger.warning("%s is ignored: %s is not a config of Apache Kafka 4.3", variable, name)
        else:
            configs[name] = value
    return configs


def name_of(variable: str) -> str:
    """Returns the name of the config of a variable: ``KAFKA_LOG_RETENTION_MS`` is ``log.retention.ms``.

    One underscore is a dot, two are an underscore, three a dash, as in Kafka's ``KafkaDockerWrapper``.
    """
    bare = variable.removeprefix(ENVIRONMENT_PREFIX).lower()
    return bare.replace("_", ".").replace("...", "-").replace("..", "_")


def parse_properties(text: str) -> dict[str, str]:
    """Parses a ``server.properties``; the last value of a name is used.

    :raises ConfigError: ``\\u`` is not followed by four hexadecimal digits
    """
    properties = {}
    for line in _logical_lines(text):
        end = _end_of_name(line)
        rest = line[end:].lstrip(_WHITE)
        if rest[:1] in ("=", ":"):
            rest = rest[1:].lstrip(_WHITE)
        properties[_unescaped(line[:end])] = _unescaped(rest)
    # Kafka trims values when it parses them; those of unknown names are not trimmed.
    return properties


def _logical_lines(text: str) -> Iterator[str]:
    """Yields lines without comments and blank lines; a backslash at the end of a line joins it with the next one."""
    pending = ""
    continued = False
    for natural in text.replace("\r\n", "\n").replace("\r", "\n").split("\n"):
        line = natural.lstrip(_WHITE)
        if not continued and (not line or line[0] in "#!"):
            continue
        backslashes = len(line) - len(line.rstrip("\\"))
        continued = backslashes % 2 == 1
        pending += line[:-1] if continued else line
        if not continued:
            yield pending
            pending = ""
    if pending:
        yield pending


def _end_of_name(line: str) -> int:
    """Returns the end of the name: the first ``=``, ``:`` or white space that is not escaped by a backslash."""
    at = 0
    while at < len(line) and line[at] not in "=:" + _WHITE:
        at += 2 if line[at] == "\\" else 1
    return min(at, len(line))


def _unescaped(text: str) -> str:
    if "\\" not in text:
        return text
    parts = []
    at = 0
    while at < len(text):
        character = text[at]
        at += 1
        if character == "\\":
            character = text[at : at + 1]
            at += 1
            if character == "u":
                digits = text[at : at + 4]
                if len(digits) < 4 or not set(digits) <= set("0123456789abcdefABCDEF"):
                    raise ConfigError("a property", f"\\u{digits}", "\\u and four hexadecimal digits")
                character = chr(int(digits, 16))
                at += 4
            else:
                character = _ESCAPES.get(character, character)
        parts.append(character)
    # Java escapes a character beyond U+FFFF as two surrogates, which are joined here.
    return "".join(parts).encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
