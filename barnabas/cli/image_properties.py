"""``barnabas image-properties``: writes the ``server.properties`` that an image of Kafka makes from its environment
variables.

Knows nothing of what a variable means; ``cli/images/`` has the rules of each image. The ``configure`` scripts of our
image call it.
"""

import os
from collections.abc import Callable, Mapping
from pathlib import Path

import click

from barnabas.cli.images import apache, bitnami, confluent
from barnabas.cli.images.variables import ImageError

Properties = Callable[[Mapping[str, str], Path], tuple[dict[str, str], list[str]]]

IMAGES: dict[str, Properties] = {
    "apache": apache.properties,
    "confluent": confluent.properties,
    "bitnami": bitnami.properties,
}


@click.command()
@click.argument("image", type=click.Choice(list(IMAGES)))
@click.option("--output", required=True, metavar="FILE", help="The file to write; only its owner may read it.")
@click.option(
    "--mounted",
    metavar="FILE",
    help="A file whose properties precede those of the variables, if it exists; with bitnami it replaces them.",
)
@click.option("--default", metavar="FILE", help="A file for when there is no mounted one and no variable.")
@click.option("--root", default="/", metavar="DIR", help="The root directory of the image's paths, for tests.")
def image_properties(image: str, output: str, mounted: str | None, default: str | None, root: str) -> None:
    """Write the properties that an image makes of the KAFKA_ variables: apache, confluent or bitnami."""
    try:
        properties, said = IMAGES[image](os.environ, Path(root))
        for line in said:
            click.echo(line)
        _write(Path(output), _text(image, properties, mounted, default))
    except (ImageError, OSError) as error:
        raise click.ClickException(str(error)) from None


def _text(image: str, properties: Mapping[str, str], mounted: str | None, default: str | None) -> str:
    """Returns the text of the file. Values are not escaped, as in the images: a backslash is an escape."""
    lines = [f"{name}={value}" for name, value in properties.items()]
    if mounted is not None and Path(mounted).is_file():
        text = Path(mounted).read_text("utf-8")
        if image == "bitnami":
            click.echo(
                f"Detected mounted server.properties file at {mounted}. Skipping configuration based on env variables"
            )
            return text
        return "\n".join([text, *lines]) + "\n"
    if not lines and default is not None:
        return Path(default).read_text("utf-8")
    return "\n".join(lines) + "\n"


def _write(file: Path, text: str) -> None:
    file.unlink(missing_ok=True)
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as out:
        out.write(text)
