"""``barnabas console``: pages that show any Kafka in the browser.

Knows nothing of the pages.
"""

import click

from barnabas.cli.client import Cluster, cluster_options
from barnabas.config.validators import ConfigError
from barnabas.server.http import Address
from barnabas.server.http_services import has_packages

LISTENER = "--listener"


@click.command()
@click.option(LISTENER, default="127.0.0.1:8080", show_default=True, help="Where the pages are, on this machine.")
@cluster_options
def console(cluster: Cluster, listener: str) -> None:
    """Show a cluster's topics and records in the browser.

    \b
    barnabas console --bootstrap-server localhost:9092
    """
    if not has_packages("starlette", "uvicorn", "jinja2"):
        raise click.ClickException("The console is an extra: pip install 'barnabas[console]'")
    try:
        address = Address.parse(LISTENER, listener)
    except ConfigError as error:
        raise click.ClickException(str(error)) from None
    if not address.is_local:
        raise click.UsageError(f"{LISTENER} is {address}, but must be an address of this machine")
    import uvicorn

    from barnabas.console.application import Console
    from barnabas.server.http_access import guarded

    click.echo(f"The console of {cluster.bootstrap_server} is at http://{address}")
    application = guarded(Console(cluster).application(), None)
    uvicorn.run(application, host=address.host, port=address.port, log_level="warning", server_header=False)
