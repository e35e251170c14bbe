"""The principal of a forwarded request, as ``DefaultKafkaPrincipalBuilder`` serializes it (KIP-590).

Knows nothing of envelopes. The version goes before the bytes (``MessageUtil.toVersionPrefixedBytes``).
"""

from barnabas.wire.message import Message
from barnabas.wire.types import string


class DefaultPrincipalData(Message, versions="0", flexible="0+"):
    type: string
    name: string
    token_authenticated: bool = False
