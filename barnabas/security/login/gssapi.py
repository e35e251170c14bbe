"""The login by GSSAPI: a Kerberos ticket for the other node's service.

Knows nothing of Kerberos itself: the package ``gssapi``, an extra of this one, implements it. Follows RFC 4752 without
security layers, as Java's ``GssKrb5Client`` does.
"""

import importlib
from collections.abc import Mapping
from typing import Any

from barnabas.config.validators import ConfigError
from barnabas.security.login.login import Login, LoginFailed, Tokens
from barnabas.security.sasl.gssapi import NAME, NO_LAYER, check_service


def from_login(options: Mapping[str, str], service_name: str | None) -> Login:
    """Returns the login with the options of a ``Krb5LoginModule``: with its keytab, or with the ticket cache.

    :raises ConfigError: the service has no name, or the package is missing
    """
    check_service(options, service_name)
    try:
        gssapi: Any = importlib.import_module("gssapi")  # It has types only where it is installed.
    except ImportError as error:
        rule = f"another mechanism than {NAME}, or the extra barnabas[gssapi]: {error}"
        raise ConfigError("sasl.mechanism.inter.broker.protocol", NAME, rule) from error
    service = service_name or options["serviceName"]

    def login(host: str) -> Tokens:
        return _login(gssapi, options, f"{service}@{host}")

    return login


def _login(gssapi: Any, options: Mapping[str, str], service: str) -> Tokens:
    try:
        mechanism = gssapi.MechType.kerberos
        principal = options.get("principal")
        name = gssapi.Name(principal, gssapi.NameType.kerberos_principal) if principal else None
        store = {"client_keytab": options["keyTab"]} if options.get("keyTab") else None
        credentials = gssapi.Credentials(name=name, usage="initiate", mechs=[mechanism], store=store)
        target = gssapi.Name(service, gssapi.NameType.hostbased_service)
        context = gssapi.SecurityContext(name=target, creds=credentials, usage="initiate", mech=mechanism)
        token: bytes | None = context.step()
        while not context.complete:
            token = context.step((yield token or b""))
        # The last token may be empty instead of one of the ticket. It requests the security layers.
        offer = yield token or b""
        layers: bytes = context.unwrap(offer).message
        if len(layers) != 4 or not layers[0] & NO_LAYER:
            raise LoginFailed("The other node requires a security layer")
        answer: bytes = context.wrap(bytes([NO_LAYER, 0, 0, 0]), False).message
        yield answer
    except gssapi.exceptions.GSSError as error:
        raise LoginFailed(f"Kerberos: {error}") from error
