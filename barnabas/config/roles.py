"""The rules for ``process.roles``, and for the listeners and voters of a node with each role.

Knows nothing of what a role does. The rules and messages are those of Apache Kafka's ``KafkaConfig.validateValues``,
except that a single combined node needs neither voters nor a controller's listener.
"""

from barnabas.config.settings import Settings
from barnabas.config.validators import InvalidValue

BROKER, CONTROLLER = "broker", "controller"

NO_QUORUM = (
    "If using process.roles, either controller.quorum.bootstrap.servers must contain the set of bootstrap controllers "
    "or controller.quorum.voters must contain a parseable set of controllers."
)


def check_roles(settings: Settings, listeners: list[str]) -> None:
    """Checks the configs that the roles of a node require.

    :param listeners: the names of the entries of ``listeners``, in upper case
    :raises InvalidValue: a required config is missing, or another one is not allowed
    """
    roles = settings["process.roles"]
    names = [name.upper() for name in settings["controller.listener.names"]]
    voters = [voter.partition("@")[0] for voter in settings["controller.quorum.voters"]]
    node_id = str(settings["node.id"])
    if not voters and not settings["controller.quorum.bootstrap.servers"] and set(roles) != {BROKER, CONTROLLER}:
        raise InvalidValue("controller.quorum.bootstrap.servers", NO_QUORUM)
    if CONTROLLER in roles:
        _check_controller(names, voters, node_id, listeners, is_broker=BROKER in roles)
        if len(voters) > 1 or settings["controller.quorum.bootstrap.servers"]:
            _check_reachable(names, listeners)
    else:
        _check_broker(names, voters, node_id, listeners)
    if BROKER in roles and not set(listeners) - set(names):
        text = "There must be at least one broker advertised listener. "
        raise InvalidValue("listeners", f"{text}Perhaps all listeners appear in controller.listener.names?")


def _check_broker(names: list[str], voters: list[str], node_id: str, listeners: list[str]) -> None:
    if node_id in voters:
        text = f"the node id {node_id} must not be included in the set of voters"
        raise InvalidValue(
            "controller.quorum.voters",
            f"If process.roles contains just the 'broker' role, {text} controller.quorum.voters={_java_set(voters)}",
        )
    if set(names) & set(listeners):
        raise InvalidValue(
            "controller.listener.names",
            "controller.listener.names must not contain a value appearing in the 'listeners' configuration when "
            "running KRaft with just the broker role",
        )


def _check_controller(
    names: list[str], voters: list[str], node_id: str, listeners: list[str], *, is_broker: bool
) -> None:
    if voters and node_id not in voters:
        text = f"the node id {node_id} must be included in the set of voters"
        raise InvalidValue(
            "controller.quorum.voters",
            f"If process.roles contains the 'controller' role, {text} controller.quorum.voters={_java_set(voters)}",
        )
    if not is_broker and set(listeners) - set(names):
        raise InvalidValue(
            "listeners",
            "The listeners config must only contain KRaft controller listeners from controller.listener.names when "
            "process.roles=controller",
        )
    found = set(names) & set(listeners)
    if found and found != set(names):
        raise InvalidValue(
            "controller.listener.names",
            "controller.listener.names must only contain values appearing in the 'listeners' configuration when "
            "running the KRaft controller role",
        )


def _check_reachable(names: list[str], listeners: list[str]) -> None:
    """Checks that other controllers can connect to this one."""
    if not set(names) & set(listeners):
        raise InvalidValue(
            "controller.listener.names",
            "controller.listener.names must contain at least one value appearing in the 'listeners' configuration when "
            "running the KRaft controller role",
        )


def _java_set(ids: list[str]) -> str:
    return f"Set({', '.join(ids)})"
