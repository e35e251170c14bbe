"""The variables of confluentinc/cp-kafka and confluentinc/confluent-local.

Knows nothing of the files that properties come from. Rules are those of ``/etc/confluent/docker/configure``, including
images with ZooKeeper (before 8.0). There is no ZooKeeper here, so a node that names one becomes its own controller.
"""

from collections.abc import Mapping
from pathlib import Path

from barnabas.cli.images.variables import ImageError, completed, ensure
from barnabas.cli.images.variables import properties as all_properties

#: Variables that are refused, with the name of each in the message.
_DEPRECATED = {
    "KAFKA_ADVERTISED_PORT": "advertised.port",
    "KAFKA_ADVERTISED_HOST": "advertised.host",
    "KAFKA_HOST": "host",
    "KAFKA_PORT": "port",
}
#: Prefixes of variables for other programs in the images: the REST proxy, ZooKeeper's client and Confluent's programs.
_OF_OTHERS = ("KAFKA_REST_", "KAFKA_ZOOKEEPER_", "KAFKA_CONFLUENT_", "KAFKA_CUB_", "KAFKA_DATA_DIRS")
LOG_DIRS = "var/lib/kafka/data"


def properties(variables: Mapping[str, str], root: Path) -> tuple[dict[str, str], list[str]]:
    """Returns the properties for the variables, and the messages to print.

    :param root: the root directory of the image's paths
    :raises ImageError: a variable is missing, is no longer supported, or contradicts another one
    """
    said = []
    if variables.get("KAFKA_PROCESS_ROLES"):
        said.append("Running in KRaft mode...")
    elif variables.get("KAFKA_ZOOKEEPER_CONNECT"):
        said.append("KAFKA_ZOOKEEPER_CONNECT is ignored: without ZooKeeper, this node is its own controller.")
    if variables.get("KAFKA_PROCESS_ROLES") != "controller":
        ensure(variables, "KAFKA_ADVERTISED_LISTENERS")
    for variable, name in _DEPRECATED.items():
        if variables.get(variable):
            raise ImageError(f"{name} is deprecated. Please use KAFKA_ADVERTISED_LISTENERS instead.")
    found, more = completed(variables, root / "etc/kafka/secrets")
    if not found.get("KAFKA_LOG_DIRS"):
        found["KAFKA_LOG_DIRS"] = str(root / LOG_DIRS)
    return all_properties(found, [name for name in found if name.startswith(_OF_OTHERS)]), said + more
