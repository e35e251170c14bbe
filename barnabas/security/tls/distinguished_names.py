"""Distinguished names as text, in the form of RFC 2253 in which Java writes them (``X500Principal.getName``).

Knows nothing of certificates: it takes the DER encoding of a name. Java's ``AVA.toRFC2253String`` differs from other
implementations: an attribute without a keyword in RFC 2253 is written as its object identifier, with the encoded value
in hexadecimal.
"""

from collections.abc import Callable, Iterator

_KEYWORDS = {
    "2.5.4.3": "CN",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.9": "STREET",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "0.9.2342.19200300.100.1.25": "DC",
    "0.9.2342.19200300.100.1.1": "UID",
}
#: How the text of each of ASN.1's string types is encoded, by tag.
_ENCODINGS = {
    12: "utf-8",  # UTF8String
    19: "ascii",  # PrintableString
    20: "latin-1",  # T61String
    22: "ascii",  # IA5String
    27: "ascii",  # GeneralString
    28: "utf-32-be",  # UniversalString
    30: "utf-16-be",  # BMPString
}
#: Keywords of ``X500Principal.toString`` alone.
_DISPLAYED = {
    **_KEYWORDS,
    "1.2.840.113549.1.9.1": "EMAILADDRESS",
    "2.5.4.4": "SURNAME",
    "2.5.4.5": "SERIALNUMBER",
    "2.5.4.12": "T",
    "2.5.4.42": "GIVENNAME",
    "2.5.4.46": "DNQ",
}
_QUOTED = frozenset(',+=\n<>#;\\"')
_ESCAPED = frozenset(',=+<>#;"\\')
_SPACES = (" ", "\r")


def rfc2253(name: bytes) -> str:
    """Returns the text of a DER-encoded name: the last relative name first.

    :raises ValueError: it is not the encoding of a name
    """
    return _joined(name, _attribute, "+", ",")


def displayed(name: bytes) -> str:
    """Returns the text of a DER-encoded name as Java's errors show it (``X500Principal.toString``).

    :raises ValueError: it is not the encoding of a name
    """
    return _joined(name, _displayed, " + ", ", ")


def _joined(name: bytes, text_of: Callable[[bytes], str], plus: str, comma: str) -> str:
    ((_, relative_names, _),) = _elements(name)
    texts = [
        plus.join(text_of(attribute) for _, attribute, _ in _elements(attributes))
        for _, attributes, _ in _elements(relative_names)
    ]
    return comma.join(reversed(texts))


def _displayed(encoded: bytes) -> str:
    (_, oid, _), (tag, content, whole) = _elements(encoded)
    keyword = _DISPLAYED.get(_dotted(oid), f"OID.{_dotted(oid)}")
    if tag not in _ENCODINGS:
        return f"{keyword}=#{whole.hex().upper()}"
    text = content.decode(_ENCODINGS[tag], errors="replace")
    if not _QUOTED.intersection(text) and text == text.strip() and "  " not in text:
        return f"{keyword}={text}"
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'{keyword}="{escaped}"'


def _attribute(encoded: bytes) -> str:
    (_, oid, _), (tag, content, whole) = _elements(encoded)
    number = _dotted(oid)
    keyword = _KEYWORDS.get(number)
    if keyword is None or tag not in _ENCODINGS:
        return f"{keyword or number}=#{whole.hex()}"
    return f"{keyword}={_escaped(content.decode(_ENCODINGS[tag], errors='replace'))}"


def _escaped(text: str) -> str:
    first, last = 0, len(text) - 1
    while first <= last and text[first] in _SPACES:
        first += 1
    while last > first and text[last] in _SPACES:
        last -= 1
    return "".join(
        "\\00"
        if character == "\0"
        else f"\\{character}"
        if character in _ESCAPED or not first <= index <= last
        else character
        for index, character in enumerate(text)
    )


def _dotted(oid: bytes) -> str:
    numbers, number = [], 0
    for byte in oid:
        number = number << 7 | byte & 0x7F
        if not byte & 0x80:
            numbers.append(number)
            number = 0
    first = min(numbers[0] // 40, 2)
    return ".".join(map(str, (first, numbers[0] - 40 * first, *numbers[1:])))


def _elements(encoded: bytes) -> Iterator[tuple[int, bytes, bytes]]:
    """Yields tag, content and whole encoding of each element.

    :raises ValueError: a length exceeds the encoding
    """
    at = 0
    while at < len(encoded):
        start = at
        tag, length = encoded[at], encoded[at + 1] if at + 1 < len(encoded) else 0
        at += 2
        if length & 0x80:
            octets = length & 0x7F
            length = int.from_bytes(encoded[at : at + octets], "big")
            at += octets
        if at + length > len(encoded):
            raise ValueError("a length beyond the end")
        yield tag, encoded[at : at + length], encoded[start : at + length]
        at += length
