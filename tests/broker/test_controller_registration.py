"""When a controller registers itself (KIP-919)."""

import pytest

from barnabas.broker.controller_registration import ControllerRegistration
from barnabas.cluster.features import CONTROLLER_REGISTRATION, METADATA_VERSION
from barnabas.cluster.image.image import MetadataImage
from barnabas.errors import UnsupportedVersion
from barnabas.wire.messages.controller_registration import (
    ControllerRegistrationRequest,
    ControllerRegistrationResponse,
)


class Sent:
    """The channel: the callbacks of the requests."""

    def __init__(self):
        self.callbacks = []

    def send(self, request, done, *, timeout_ms=None, lane=""):
        self.callbacks.append(done)


@pytest.fixture
def sent():
    return Sent()


@pytest.fixture
def results():
    return []


@pytest.fixture
def registration(sent, results):
    request = ControllerRegistrationRequest(
        controller_id=1, incarnation_id=b"incarnation-of-1", listeners=[], features=[]
    )
    return ControllerRegistration(request, sent, results.append)


def image_at(level):
    return MetadataImage(features={METADATA_VERSION: level})


def test_a_new_cluster_has_no_metadata_version_at_first(registration, sent, results):
    registration.follow(MetadataImage())
    assert (sent.callbacks, results) == ([], [])
    registration.follow(image_at(CONTROLLER_REGISTRATION - 1))
    assert (sent.callbacks, results) == ([], [None])


def test_the_first_result_is_told_once(registration, sent, results):
    registration.follow(image_at(CONTROLLER_REGISTRATION))
    registration.follow(image_at(CONTROLLER_REGISTRATION))
    (answered,) = sent.callbacks
    answered(ControllerRegistrationResponse(), None)
    assert results == [None]
    registration.follow(image_at(CONTROLLER_REGISTRATION))  # its record is not in the image
    assert len(sent.callbacks) == 2
    assert results == [None]


def test_what_is_refused_later_is_a_line_in_the_log(registration, sent, results, caplog):
    registration.follow(image_at(CONTROLLER_REGISTRATION - 1))
    registration.follow(image_at(CONTROLLER_REGISTRATION))
    sent.callbacks[0](None, UnsupportedVersion("too old"))
    assert results == [None]
    assert "Cannot record the registration of this controller: too old" in caplog.text
