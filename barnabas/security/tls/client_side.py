"""TLS for connections to other nodes, by the configs of the inter-broker listener.

Knows nothing of connections. Follows Apache Kafka's ``SslFactory`` and ``DefaultSslEngineFactory`` in the mode
``CLIENT``.
"""

import ssl

from barnabas.config.settings import Settings
from barnabas.security.tls.engine import add_keys, add_trusted, limit_versions
from barnabas.security.tls.stores import ReadFile, load_key_store, load_trust_store


def client_context(configs: Settings, read: ReadFile) -> ssl.SSLContext:
    """Returns the context with which a node connects. It sends its certificate if the server requests one.

    :param configs: the listener's configs
    :param read: returns the content of a file
    :raises ConfigError: the configs are not valid for TLS
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    limit_versions(context, configs)
    context.check_hostname = bool((configs["ssl.endpoint.identification.algorithm"] or "").strip())
    context.hostname_checks_common_name = True
    trusted = load_trust_store(configs, read)
    if trusted is None:
        context.load_default_certs()
    else:
        add_trusted(context, trusted)
    add_keys(context, load_key_store(configs, read))
    return context
