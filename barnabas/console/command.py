"""``barnabas console``: pages that show any Kafka in the browser.

Knows nothing of the pages.
"""

from typing import Any

import click

from barnabas.cli.client import Cluster, cluster_options
from barnabas.config.validators import ConfigError
from barnabas.server.http import Address
from barnabas.server.http_access import check_access, guarded
from barnabas.server.http_services import has_packages

LISTENER = "--listener"
TOKEN = "BARNABAS_CONSOLE_TOKEN"


@click.command()
@click.option(LISTENER, default="127.0.0.1:8080", show_default=True, help="Where the pages are.")
@click.option("--schema-registry", metavar="URL", envvar="SCHEMA_REGISTRY_URL", help="The schema registry to show.")
@click.option("--admin-api", metavar="URL", help="The admin API of a Barnabas broker for tests: its faults are shown.")
@cluster_options
def console(cluster: Cluster, listener: str, schema_registry: str | None, admin_api: str | None) -> None:
    """Show a cluster in the browser.

    The pages are for this machine only. With a token in the variable BARNABAS_CONSOLE_TOKEN, the password of users,
    they may have another address.

    \b
    barnabas console --bootstrap-server localhost:9092
    """
    if not has_packages("starlette", "uvicorn", "jinja2"):
        raise click.ClickException("The console is an extra: pip install 'barnabas[console]'")
    import os

    token = os.environ.get(TOKEN) or None
    try:
        address = Address.parse(LISTENER, listener)
        check_access(LISTENER, address, f"the variable {TOKEN}", token)
    except ConfigError as error:
        raise click.ClickException(str(error)) from None
    import uvicorn

    from barnabas.console.application import Console

    click.echo(f"The console of {cluster.bootstrap_server} is at http://{address}")
    made: Any = Console(cluster, token, registry=schema_registry, admin_api=admin_api).application()
    application = made if token else guarded(made, None)
    uvicorn.run(application, host=address.host, port=address.port, log_level="warning", server_header=False)
