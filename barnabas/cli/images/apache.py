"""The variables of apache/kafka and apache/kafka-native.

Knows nothing of the files that properties come from. Rules are those of ``kafka.docker.KafkaDockerWrapper`` and of the
scripts that call it.
"""

from collections.abc import Mapping
from pathlib import Path

from barnabas.cli.images.variables import completed, ensure
from barnabas.cli.images.variables import properties as all_properties


def properties(variables: Mapping[str, str], root: Path) -> tuple[dict[str, str], list[str]]:
    """Returns the properties for the variables, and the messages to print.

    :param root: the root directory of the image's paths
    :raises ImageError: a variable is missing, or contradicts another one
    """
    said = []
    if variables.get("KAFKA_PROCESS_ROLES"):
        said.append("Running in KRaft mode...")
        ensure(variables, "CLUSTER_ID")
    found, more = completed(variables, root / "etc/kafka/secrets")
    return all_properties(found), said + more
