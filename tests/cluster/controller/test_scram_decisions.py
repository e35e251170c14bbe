"""Valid changes of SCRAM credentials, and their records."""

import hashlib
import hmac

import pytest

from barnabas.cluster.controller.commands.scram import AlterUserScramCredentials, ScramDeletion, ScramUpsertion
from barnabas.wire.messages.metadata_records import RemoveUserScramCredentialRecord, UserScramCredentialRecord

SHA_256, SHA_512 = 1, 2
TWICE = "A user credential cannot be altered twice in the same request"
NOT_THERE = "Attempt to delete a user credential that does not exist"


@pytest.fixture
def cluster(make_cluster):
    return make_cluster()


def upsert(user="alice", mechanism=SHA_256, iterations=4096, salted=b"salted password"):
    return ScramUpsertion(user, mechanism, iterations, b"salt", salted)


def delete(user="alice", mechanism=SHA_256):
    return ScramDeletion(user, mechanism)


def alter(cluster, *changes):
    """Returns the message of each user's error, or None."""
    deletions = [each for each in changes if isinstance(each, ScramDeletion)]
    upsertions = [each for each in changes if isinstance(each, ScramUpsertion)]
    results = cluster.submit(AlterUserScramCredentials(deletions, upsertions))
    return {each.user: None if each.error is None else str(each.error) for each in results}


@pytest.mark.parametrize(("mechanism", "hash_name"), [(SHA_256, "sha256"), (SHA_512, "sha512")])
def test_of_a_password_two_keys_are_written(cluster, mechanism, hash_name):
    assert alter(cluster, upsert(mechanism=mechanism)) == {"alice": None}
    client_key = hmac.digest(b"salted password", b"Client Key", hash_name)
    (record,) = cluster.records
    assert record == UserScramCredentialRecord(
        name="alice",
        mechanism=mechanism,
        salt=b"salt",
        stored_key=hashlib.new(hash_name, client_key).digest(),
        server_key=hmac.digest(b"salted password", b"Server Key", hash_name),
        iterations=4096,
    )
    assert cluster.image.credentials == {("alice", mechanism): record}


def test_a_credential_is_removed(cluster):
    alter(cluster, upsert())
    assert alter(cluster, delete(mechanism=SHA_512)) == {"alice": NOT_THERE}
    assert alter(cluster, delete()) == {"alice": None}
    assert cluster.records == [RemoveUserScramCredentialRecord(name="alice", mechanism=SHA_256)]
    assert alter(cluster, delete()) == {"alice": NOT_THERE}
    assert not cluster.image.credentials


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (upsert(iterations=4095), "Too few iterations"),
        (upsert(iterations=-1), "Too few iterations"),
        (upsert(iterations=16385), "Too many iterations"),
        (upsert(iterations=2**31 - 1), "Too many iterations"),
        (upsert(mechanism=0, iterations=1), "Unknown SCRAM mechanism"),
        (delete(mechanism=3), "Unknown SCRAM mechanism"),
        (upsert("", mechanism=0), "Username must not be empty"),
        (delete("", mechanism=0), "Username must not be empty"),
        (upsert(iterations=16384), None),
    ],
)
def test_bounds(cluster, change, text):
    assert alter(cluster, change) == {change.user: text}
    assert bool(cluster.image.credentials) is (text is None)


def test_an_empty_salted_password_is_no_credential(cluster):
    results = cluster.submit(AlterUserScramCredentials([], [upsert(salted=b""), upsert("bob")]))
    assert {each.user: each.error and each.error.code for each in results} == {"alice": -1, "bob": None}
    assert set(cluster.image.credentials) == {("bob", SHA_256)}


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ([upsert(), upsert(mechanism=SHA_512)], TWICE),
        ([upsert(), upsert(), upsert()], TWICE),
        ([upsert(), upsert(iterations=1)], TWICE),
        ([upsert(iterations=1), upsert()], "Too few iterations"),
        ([delete(mechanism=SHA_512), upsert()], NOT_THERE),
    ],
)
def test_a_user_is_named_once(cluster, changes, text):
    assert alter(cluster, *changes, upsert("bob")) == {"alice": text, "bob": None}
    assert set(cluster.image.credentials) == {("bob", SHA_256)}


def test_what_is_deleted_cannot_be_set_in_the_same_request(cluster):
    alter(cluster, upsert())
    assert alter(cluster, delete(), upsert()) == {"alice": TWICE}
    assert set(cluster.image.credentials) == {("alice", SHA_256)}


def test_a_command_shows_no_secret(cluster):
    assert "salt" not in repr(AlterUserScramCredentials([], [upsert()]))
