"""AlterUserScramCredentials and DescribeUserScramCredentials, without a socket."""

import pytest

from barnabas.api_handlers.alter_user_scram_credentials import alter_user_scram_credentials
from barnabas.api_handlers.answering import Later
from barnabas.api_handlers.describe_user_scram_credentials import describe_user_scram_credentials
from barnabas.api_handlers.error_responses import error_response
from barnabas.broker.credentials import ImageCredentials
from barnabas.clock import ManualClock
from barnabas.errors import ClusterAuthorizationFailed
from barnabas.security.sasl.scram import credential_of
from barnabas.wire.messages.alter_user_scram_credentials import AlterUserScramCredentialsRequest
from barnabas.wire.messages.describe_user_scram_credentials import DescribeUserScramCredentialsRequest
from tests.asking import context_of, handled

from .conftest import ConfigCluster

Upsertion = AlterUserScramCredentialsRequest.ScramCredentialUpsertion
Deletion = AlterUserScramCredentialsRequest.ScramCredentialDeletion
SHA_256, SHA_512 = 1, 2
SALTED = bytes.fromhex("d9")  # any bytes: the client derives them from the password


def upsert(name, mechanism=SHA_256, iterations=4096):
    return Upsertion(name=name, mechanism=mechanism, iterations=iterations, salt=b"salt", salted_password=SALTED)


def request(*changes):
    return AlterUserScramCredentialsRequest(
        deletions=[each for each in changes if isinstance(each, Deletion)],
        upsertions=[each for each in changes if isinstance(each, Upsertion)],
    )


class Node(ConfigCluster):
    def alter(self, *changes):
        answer = handled(alter_user_scram_credentials, request(*changes), context_of(self, 0))
        response = answer.response if isinstance(answer, Later) else answer
        return {each.user: (each.error_code, each.error_message) for each in response.results}

    def describe(self, *names):
        """Returns the mechanisms and iterations of each user, or the code and the message of the error."""
        users = [DescribeUserScramCredentialsRequest.UserName(name=name) for name in names]
        response = handled(
            describe_user_scram_credentials,
            DescribeUserScramCredentialsRequest(users=users or None),
            context_of(self, 0),
        )
        assert (response.error_code, response.error_message) == (0, "")
        return {
            each.user: (each.error_code, each.error_message)
            if each.error_code
            else {info.mechanism: info.iterations for info in each.credential_infos}
            for each in response.results
        }


@pytest.fixture
def node():
    return Node()


def test_credentials_are_set_and_shown(node):
    assert node.describe() == {}
    assert node.alter(upsert("alice"), upsert("bob", SHA_512, 8192)) == {"alice": (0, None), "bob": (0, None)}
    node.alter(upsert("alice", SHA_512))
    assert node.describe() == {"alice": {SHA_256: 4096, SHA_512: 4096}, "bob": {SHA_512: 8192}}
    assert node.describe("bob") == {"bob": {SHA_512: 8192}}


def test_who_is_described(node):
    node.alter(upsert("alice"))
    assert node.describe("carol", "alice", "alice") == {
        "carol": (91, "Attempt to describe a user credential that does not exist: carol"),
        "alice": (92, "Cannot describe SCRAM credentials for the same user twice in a single request: alice"),
    }


def test_errors_are_of_users(node):
    assert node.alter(upsert("alice", iterations=1), Deletion(name="bob", mechanism=SHA_256), upsert("carol")) == {
        "alice": (93, "Too few iterations"),
        "bob": (91, "Attempt to delete a user credential that does not exist"),
        "carol": (0, None),
    }


def test_a_refused_request_names_each_user_once(node):
    response = error_response(
        request(upsert("alice"), upsert("bob"), Deletion(name="alice", mechanism=1)), ClusterAuthorizationFailed(), 0
    )
    assert [(each.user, each.error_code) for each in response.results] == [("alice", 31), ("bob", 31)]


def test_a_credential_counts_at_once(node):
    credentials = ImageCredentials(lambda: node.image, ManualClock(), bytes, None)
    assert credentials.of_user("alice", "SCRAM-SHA-256") is None
    node.alter(upsert("alice"))
    held = credentials.of_user("alice", "SCRAM-SHA-256")
    assert (held.salt, held.iterations) == (b"salt", 4096)
    assert credentials.of_user("alice", "SCRAM-SHA-512") is None
    node.alter(Deletion(name="alice", mechanism=SHA_256))
    assert credentials.of_user("alice", "SCRAM-SHA-256") is None


def test_no_secret_is_shown():
    shown = repr(request(upsert("alice"))) + repr(credential_of("SCRAM-SHA-256", b"secret", b"salt"))
    assert "xd9" not in shown and "secret" not in shown and "<1 bytes>" in shown
