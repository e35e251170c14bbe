"""A broker without HTTP services imports nothing of them, nor of the packages that only they need."""

import subprocess
import sys
import tomllib
from pathlib import Path

from barnabas.server.http_services import MODULES

PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
ROOMS = {module.removesuffix(".service") for module in MODULES.values()}
IMPORTED = {
    "fastavro": "fastavro",
    "googleapis-common-protos": "google.type",
    "grpcio-tools": "grpc_tools",
    "jinja2": "jinja2",
    "jsonschema": "jsonschema",
    "kafka-python": "kafka",
    "opentelemetry-proto": "opentelemetry",
    "prometheus-client": "prometheus_client",
    "protobuf": "google.protobuf",
    "pyyaml": "yaml",
    "rich": "rich",
    "starlette": "starlette",
    "uvicorn": "uvicorn",
}
"""The modules of the extras' packages."""
EXTRAS = [room.removeprefix("barnabas.") for room in ROOMS]


def test_the_table_has_each_package_of_the_extras():
    packages = {each.partition(">")[0] for extra in EXTRAS for each in PROJECT["optional-dependencies"][extra]}
    assert packages == IMPORTED.keys()


def test_a_plain_broker_imports_nothing_of_them():
    program = (
        "import sys\n"
        "from barnabas.testing import Broker\n"
        "with Broker(): pass\n"
        f"unwanted = {sorted({*ROOMS, *IMPORTED.values()})}\n"
        "print([each for each in unwanted if each in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert result.stdout == "[]\n"
