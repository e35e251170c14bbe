"""``barnabas spark``: what is around a Spark that is to read and write topics.

Knows nothing of topics; the jobs themselves are ``barnabas pipeline``.
"""

from pathlib import Path

import click

from barnabas.cli.verbs import Verbs


@click.group(cls=Verbs)
def spark() -> None:
    """Fetch what Spark's own Kafka connector needs.

    \b
    barnabas spark jars
    barnabas spark jars --to jars
    """


@spark.command()
@click.option(
    "--to",
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    help="Where the jars go; a folder in the user's cache by default.",
)
def jars(to: Path | None) -> None:
    """Fetch the four jars of Spark's own connector with mvn, and say how Spark is told of them.

    They are of the installed pyspark's release, or of the newest where that is not to be had. The format "barnabas"
    needs none of them: they are for queries that say format("kafka").
    """
    try:
        from barnabas.pipelines.jars import JarsUnavailable, fetch, installed_release

        release = installed_release()
    except ImportError:
        raise click.ClickException("this needs pyspark: pip install barnabas[spark]") from None
    try:
        found = fetch(to, say=lambda line: click.echo(line, err=True))
    except (JarsUnavailable, OSError) as error:
        raise click.ClickException(str(error)) from None
    names = ",".join(map(str, found))
    click.echo(f"Spark's connector for pyspark {release}, in {found[0].parent}:")
    for jar in found:
        click.echo(f"  {jar.name}")
    click.echo("\nTo a job that is submitted:")
    click.echo(f"  spark-submit --jars {names} job.py")
    click.echo("\nTo a session that Python starts:")
    click.echo(f'  SparkSession.builder.config("spark.jars", "{names}")')
