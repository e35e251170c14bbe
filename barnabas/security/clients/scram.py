"""Adds to kafka-python's SCRAM what it lacks: user names with ``=`` or ``,``, and delegation tokens.

Knows nothing of properties. RFC 5802, and KIP-48 for the extension ``tokenauth``.
"""

from kafka.net.sasl import register_sasl_mechanism
from kafka.net.sasl.scram import SaslMechanismScram


class _ScramUser(str):
    """The name of a user as SCRAM sends it, and whether it is a delegation token."""

    __slots__ = ("extension",)
    extension: bytes


class _Scram(SaslMechanismScram):  # type: ignore[misc]  # kafka-python has no types
    """kafka-python's SCRAM, with the extension of the user in the first message."""

    def auth_bytes(self) -> bytes:
        is_first = self._state == 0
        message: bytes = super().auth_bytes()
        extension = getattr(self.username, "extension", b"")
        if is_first and extension:
            self._scram_client.auth_message += extension
            message += extension
        return message


def scram_user(name: str, *, is_token: bool) -> str:
    """Returns ``sasl_plain_username`` for a user, or for a delegation token by its id."""
    for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
        register_sasl_mechanism(mechanism, _Scram, overwrite=True)
    user = _ScramUser(name.replace("=", "=3D").replace(",", "=2C"))
    user.extension = b",tokenauth=true" if is_token else b""
    return user
