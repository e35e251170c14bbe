"""The mechanism GSSAPI: the client authenticates by a Kerberos ticket for the broker's service.

Knows nothing of Kerberos itself: the package ``gssapi``, an extra of this one, implements it. Follows RFC 4752 without
security layers, as Java's ``GssKrb5Server`` and Kafka's ``SaslServerCallbackHandler`` do.
"""

import importlib
import logging
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from barnabas.config.validators import ConfigError
from barnabas.errors import CloseConnection
from barnabas.security.principals import USER, Principal
from barnabas.security.sasl.kerberos_names import KerberosNames
from barnabas.security.sasl.mechanism import Authenticated, AuthenticationRefused
from barnabas.security.tls.principal_mapping import NoMatchingRule

logger = logging.getLogger(__name__)

NAME: Final = "GSSAPI"
SERVICE_NAME: Final = "sasl.kerberos.service.name"
NO_LAYER: Final = 1
OFFER: Final = bytes([NO_LAYER, 0, 0, 0])
"""The security layers that the broker offers, which is none, and the maximum size of messages under one."""

NewContext = Callable[[], Any]
"""Returns the acceptor's ``gssapi.SecurityContext`` of a new client."""


class Gssapi:
    """The mechanism with the key and the rules of one listener."""

    name = NAME

    def __init__(self, new_context: NewContext, failure: type[Exception], names: KerberosNames) -> None:
        """:param failure: the exception that the library raises"""
        self._new_context = new_context
        self._failure = failure
        self._names = names

    def begin(self, time_ms: Callable[[], int]) -> "GssapiExchange":
        return GssapiExchange(self._new_context, self._failure, self._names)


class GssapiExchange:
    """The exchange: the client's ticket, then its choice among the offered security layers."""

    __slots__ = ("_context", "_failure", "_has_offered", "_names", "_new_context")

    def __init__(self, new_context: NewContext, failure: type[Exception], names: KerberosNames) -> None:
        self._new_context = new_context
        self._failure = failure
        self._names = names
        self._context: Any = None
        self._has_offered = False

    def evaluate(self, token: bytes) -> tuple[bytes, Authenticated | None]:
        """Takes the tokens of the client.

        :raises AuthenticationRefused: the ticket is not valid for this broker, or the message is malformed
        :raises CloseConnection: no rule maps the principal to a name, as in Apache Kafka
        """
        try:
            if self._has_offered:
                return b"", self._chosen(self._context.unwrap(token).message)
            return self._next(token), None
        except self._failure as error:
            logger.info("A client failed to authenticate by Kerberos: %s", error)
            raise AuthenticationRefused from None

    def _next(self, token: bytes) -> bytes:
        if self._context is None:
            self._context = self._new_context()
        if not self._context.complete:
            answer: bytes | None = self._context.step(token)
            if answer or not self._context.complete:
                return answer or b""
        self._has_offered = True
        offer: bytes = self._context.wrap(OFFER, False).message
        return offer

    def _chosen(self, message: bytes) -> Authenticated:
        if len(message) < len(OFFER) or message[0] != NO_LAYER:
            raise AuthenticationRefused
        try:
            return Authenticated(Principal(USER, self._names.name_of(str(self._context.initiator_name))))
        except NoMatchingRule as error:
            raise CloseConnection(str(error)) from None


def from_login(options: Mapping[str, str], service_name: str | None, rules: list[str]) -> Gssapi:
    """Returns the mechanism with the options of a ``Krb5LoginModule``.

    :raises ConfigError: the service has no name, the package is missing, or there is no key
    """
    check_service(options, service_name)
    try:
        gssapi: Any = importlib.import_module("gssapi")  # It has types only where it is installed.
    except ImportError as error:
        raise ConfigError(
            "sasl.enabled.mechanisms", NAME, f"without {NAME}, or with the extra barnabas[gssapi]: {error}"
        ) from error
    try:
        mechanism = gssapi.MechType.kerberos
        store = {"keytab": options["keyTab"]} if options.get("keyTab") else None
        principal = options.get("principal")
        name = gssapi.Name(principal, gssapi.NameType.kerberos_principal) if principal else None
        credentials = gssapi.Credentials(name=name, usage="accept", mechs=[mechanism], store=store)
        realm = re.sub(r".*@", "", str(gssapi.Name("user", gssapi.NameType.user).canonicalize(mechanism)))
    except gssapi.exceptions.GSSError as error:
        raise ConfigError("sasl.jaas.config", None, f"the login of a Kerberos principal: {error}") from error

    def new_context() -> Any:
        return gssapi.SecurityContext(creds=credentials, usage="accept")

    return Gssapi(new_context, gssapi.exceptions.GSSError, KerberosNames(rules, realm))


def check_service(options: Mapping[str, str], service_name: str | None) -> None:
    """Checks that the service has exactly one name. The texts are those of Apache Kafka's ``KerberosLogin``.

    :raises ConfigError: it has none, or two
    """
    of_module = options.get("serviceName")
    if of_module is not None and service_name is not None and of_module != service_name:
        raise ConfigError(SERVICE_NAME, service_name, f"{of_module!r}, as serviceName in the JAAS config")
    if not (of_module or service_name):
        raise ConfigError(SERVICE_NAME, "", "set: No serviceName defined in either JAAS or Kafka config")
