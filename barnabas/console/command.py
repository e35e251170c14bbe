"""``barnabas console``: pages that show any Kafka in the browser.

Knows nothing of the pages.
"""

import contextlib
from functools import partial
from typing import Any

import click

from barnabas.cli.client import Cluster, cluster_options
from barnabas.config.validators import ConfigError
from barnabas.console.users import MECHANISMS, Users
from barnabas.server.http import BACKLOG, Address
from barnabas.server.http_access import check_access, guarded
from barnabas.server.http_services import has_packages
from barnabas.server.listener import bind

LISTENER = "--listener"
TOKEN = "BARNABAS_CONSOLE_TOKEN"


@click.command()
@click.option(LISTENER, default="127.0.0.1:8080", show_default=True, help="Where the pages are.")
@click.option("--certificate", metavar="FILE", help="A PEM file with a key and its certificates: for pages by HTTPS.")
@click.option(
    "--sasl-mechanism", type=click.Choice(MECHANISMS), help="Users log in as the cluster's, by this mechanism."
)
@click.option("--schema-registry", metavar="URL", envvar="SCHEMA_REGISTRY_URL", help="The schema registry to show.")
@click.option("--admin-api", metavar="URL", help="The admin API of a Barnabas broker for tests: its faults are shown.")
@partial(cluster_options, extra="console")
def console(
    cluster: Cluster,
    listener: str,
    certificate: str | None,
    sasl_mechanism: str | None,
    schema_registry: str | None,
    admin_api: str | None,
) -> None:
    """Show a cluster in the browser.

    The pages are for this machine only, unless users have to log in: with a token, if the variable
    BARNABAS_CONSOLE_TOKEN has one, or as users of the cluster (--sasl-mechanism), each with the rights of that user.

    \b
    barnabas console --bootstrap-server localhost:9092
    barnabas console --bootstrap-server kafka:9093 --command-config client.properties
        --sasl-mechanism SCRAM-SHA-512 --listener 0.0.0.0:8443 --certificate console.pem
    """
    if not has_packages("starlette", "uvicorn", "jinja2"):
        raise click.ClickException("The console is an extra: pip install 'barnabas[console]'")
    import os

    token = os.environ.get(TOKEN) or None
    if sasl_mechanism and token:
        raise click.UsageError(f"Users log in by --sasl-mechanism or by {TOKEN}, not by both.")
    if sasl_mechanism and admin_api:
        raise click.UsageError("No ACL protects faults: leave out --admin-api or --sasl-mechanism.")
    try:
        address = Address.parse(LISTENER, listener)
        check_access(LISTENER, address, f"--sasl-mechanism or the variable {TOKEN}", token or sasl_mechanism)
    except ConfigError as error:
        raise click.ClickException(str(error)) from None
    if certificate is not None:
        _check_certificate(certificate)
    try:
        sockets = bind(address.host, address.port, BACKLOG)
    except OSError as error:
        raise click.ClickException(f"{LISTENER}: {error.strerror or error}") from None
    import uvicorn

    from barnabas.console.application import Console

    users = Users(cluster.bootstrap_server, cluster.properties, sasl_mechanism) if sasl_mechanism else None
    console: Any = Console(cluster, token, users, registry=schema_registry, admin_api=admin_api).application()
    application = console if token or users else guarded(console, None)
    config = uvicorn.Config(application, ssl_certfile=certificate, log_level="warning", server_header=False)
    address = address._replace(port=sockets[0].getsockname()[1])
    click.echo(f"The console of {cluster.bootstrap_server} is at {'https' if certificate else 'http'}://{address}")
    with contextlib.suppress(KeyboardInterrupt):
        uvicorn.Server(config).run(sockets)


def _check_certificate(path: str) -> None:
    """Checks that a server can use the file. :raises click.ClickException: it cannot"""
    import ssl

    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(path, password=lambda: "")
    except ssl.SSLError as error:
        problem = f"{path} is not a key in PEM, without a password, with its certificates: {error.reason or error}"
        raise click.ClickException(problem) from None
    except OSError as error:
        raise click.ClickException(f"{path} cannot be read: {error.strerror}") from None
