"""A file with the metrics that clients push, a line of OTLP's JSON for each push (``barnabas.metrics.clients.file``).

Knows nothing of subscriptions, nor of what /metrics shows. The OpenTelemetry Collector's ``otlpjsonfile`` receiver
reads such files. Imported with the first push.
"""

import logging
from collections.abc import Callable
from io import SEEK_END, FileIO

from google.protobuf.json_format import MessageToJson
from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData

from barnabas.broker.telemetry import Pushed

logger = logging.getLogger(__name__)

WARNS_EACH_S = 60
"""A disk that is full fails each push: one warning in this time is enough."""


class PushedFile:
    """Appends each push in one write, so that a line is whole also where the file is truncated in between.

    A full disk or a killed broker may leave a torn line. The next push begins a line of its own.

    :param file: the file, opened for reading and appending without a buffer
    :param now: the monotonic time in seconds
    """

    def __init__(self, file: FileIO, now: Callable[[], float]) -> None:
        self._file = file
        self._now = now
        self._warned_s = -float(WARNS_EACH_S)
        self._is_torn = _is_torn(file)

    def receive(self, pushed: Pushed) -> None:
        """Appends what a client has pushed, which :func:`barnabas.metrics.otlp.points_of` can read.

        The push counts as received even if it cannot be written: a client would only send it again.
        """
        line = line_of(pushed)
        if self._is_torn:
            line = b"\n" + line
        try:
            written = self._file.write(line)
        except OSError as error:
            self._warn(error.strerror or str(error))
            return
        if written == len(line):
            self._is_torn = False
        elif written:
            self._is_torn = True
            self._warn(f"{written} of {len(line)} bytes were written")

    def _warn(self, problem: str) -> None:
        if self._now() - self._warned_s >= WARNS_EACH_S:
            self._warned_s = self._now()
            logger.warning("Cannot append metrics of clients to %s: %s", self._file.name, problem)


def _is_torn(file: FileIO) -> bool:
    """Returns whether the last line has no end. What cannot be sought, as a pipe, has no such line."""
    if not file.seekable() or not file.seek(0, SEEK_END):
        return False
    file.seek(-1, SEEK_END)
    return file.read(1) != b"\n"


def line_of(pushed: Pushed) -> bytes:
    """Returns a push as a line of JSON. Attributes of its resources say which client has pushed it."""
    data = MetricsData.FromString(pushed.data)
    for resource in data.resource_metrics:
        own = {name: value or "" for name, value in pushed.instance.attributes.items()}
        others = [each for each in resource.resource.attributes if each.key not in own]
        del resource.resource.attributes[:]
        resource.resource.attributes.extend(others)
        for name, value in own.items():
            resource.resource.attributes.add(key=name).value.string_value = value
    line: str = MessageToJson(data, indent=None, use_integers_for_enums=True)
    return line.encode() + b"\n"
