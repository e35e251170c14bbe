"""``barnabas spark``: downloads the jars that Spark's own Kafka connector needs.

Knows nothing of topics; the jobs on Spark are ``barnabas pipeline``.
"""

from pathlib import Path

import click

from barnabas.cli.verbs import Verbs


@click.group(cls=Verbs)
def spark() -> None:
    """Download the jars of Spark's own Kafka connector.

    \b
    barnabas spark jars
    barnabas spark jars --to jars
    """


@spark.command()
@click.option(
    "--to",
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    help="The folder for the jars; by default one in the user's cache.",
)
def jars(to: Path | None) -> None:
    """Download the four jars of Spark's own connector with mvn, and print how to use them.

    They are of the release of the installed pyspark, or of the newest release if there are none for it. Only queries
    with format("kafka") need them; format("barnabas") does not.
    """
    try:
        from barnabas.pipelines.jars import JarsUnavailable, fetch, installed_release

        release = installed_release()
    except ImportError:
        raise click.ClickException("pyspark is not installed: pip install 'barnabas[spark]'") from None
    try:
        found = fetch(to, say=lambda line: click.echo(line, err=True))
    except (JarsUnavailable, OSError) as error:
        raise click.ClickException(str(error)) from None
    names = ",".join(map(str, found))
    click.echo(f"Spark's connector for pyspark {release}, in {found[0].parent}:")
    for jar in found:
        click.echo(f"  {jar.name}")
    click.echo("\nFor spark-submit:")
    click.echo(f"  spark-submit --jars {names} job.py")
    click.echo("\nFor a session in Python:")
    click.echo(f'  SparkSession.builder.config("spark.jars", "{names}")')
