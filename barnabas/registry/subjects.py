"""Names of subjects and their contexts: ``orders-value``, or ``:.staging:orders-value`` in the context ``.staging``.

Knows nothing of the schemas under them (Confluent's ``QualifiedSubject``).
"""

from typing import Final

DEFAULT_CONTEXT: Final = "."
ALL_CONTEXTS: Final = ":*:"


def split(subject: str) -> tuple[str, str]:
    """Returns the context of a subject, and its name within it; the name is empty for a context itself."""
    if subject.startswith(":."):
        context, colon, name = subject[1:].partition(":")
        if colon:
            return context, name
    return DEFAULT_CONTEXT, subject


def context_of(subject: str) -> str:
    return split(subject)[0]


def qualified(context: str, name: str) -> str:
    """Returns the subject of that name in a context."""
    if context in ("", DEFAULT_CONTEXT):
        return name
    return f":{context}:{name}"


def within(subject: str, context: str) -> str:
    """Returns a subject that a request names in a context; a subject with a context of its own keeps it."""
    if subject.startswith((":.", ":*:")):
        return subject
    return qualified(context, subject)


def matches(subject: str, prefix: str) -> bool:
    """Returns whether a subject begins with a prefix, which may name a context, or all of them."""
    if prefix.startswith(ALL_CONTEXTS):
        return split(subject)[1].startswith(prefix.removeprefix(ALL_CONTEXTS))
    context, name = split(prefix)
    return context_of(subject) == context and split(subject)[1].startswith(name)


def is_valid(subject: str) -> bool:
    """Returns whether schemas may be registered under a subject."""
    name = split(subject)[1]
    return bool(name.strip()) and name != "__GLOBAL" and all(each.isprintable() for each in name)
