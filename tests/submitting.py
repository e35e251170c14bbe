"""Controller commands in tests: the background is inline there, so a command is committed when ``submit`` returns."""

from barnabas.cluster.controller.commands.topics import CreateTopics, NewTopic
from barnabas.testing.resetting import AtStart, reset


def submitted(controller, command):
    """Returns the result of a command that has been committed. :raises KafkaError: it was refused or lost"""
    answers = []
    controller.submit(command, lambda result, error: answers.append((result, error)))
    ((result, error),) = answers
    if error is not None:
        raise error
    return result


def append(broker, *records):
    """Appends records without a decision, and applies them."""
    controller = broker.controller
    controller._append(controller._encoded(records))


def create_topic(broker, name, partitions=1, configs=None):
    """Creates a topic with one replica. :raises KafkaError: it cannot be created"""
    topic = NewTopic(name, partitions, 1, configs=list((configs or {}).items()))
    (created,) = submitted(broker.controller, CreateTopics([topic]))
    if created.error is not None:
        raise created.error


def ready(error):
    """Checks that a callback gets no error."""
    if error is not None:
        raise error


def reset_to_start(broker):
    """Resets a broker with unchanged features to the state of a new one."""
    finished = []
    reset(broker, AtStart(broker.image.features), lambda: finished.append(True))
    assert finished
