"""A session lives as long as its connection, and calls its listeners when it has ended."""

import pytest

from barnabas.api_handlers.api_versions import api_versions
from barnabas.api_handlers.session import Session
from barnabas.errors import InvalidRequest
from barnabas.security.principals import ANONYMOUS
from barnabas.wire.messages.api_versions import ApiVersionsRequest
from tests.asking import context_of


def session(**fields):
    return Session(listener="PLAINTEXT", client_host="127.0.0.1", **fields)


def test_whoever_asks_is_told_once_of_the_end():
    results, others, ending = [], [], session(number=7)
    for callback in (results.append, others.append, results.append):
        ending.on_close(callback)
    ending.close()
    ending.close()
    assert (results, others) == ([7], [7])


def test_a_client_that_has_not_authenticated_is_anonymous():
    assert session().principal is ANONYMOUS
    assert str(session().principal) == "User:ANONYMOUS"


@pytest.mark.parametrize(
    ("version", "name", "software"),
    [(2, "librdkafka", ("", "")), (3, "librdkafka", ("librdkafka", "2.3.0")), (4, "no name", ("", ""))],
)
def test_the_software_of_a_client_is_remembered_where_it_says_so(node, version, name, software):
    context = context_of(node.broker, version)
    answer = api_versions(ApiVersionsRequest(client_software_name=name, client_software_version="2.3.0"), context)
    assert answer.error_code == (InvalidRequest.code if version == 4 else 0)
    assert (context.session.client_software_name, context.session.client_software_version) == software
