"""SCRAM credentials in a directory that goes from Barnabas to Apache Kafka and back: the same logins succeed."""

from pathlib import Path
from typing import Any

import pytest

from .sasl_pair import MECHANISMS, PASSWORDS, Pair, Scram, Talk, apache, barnabas, log_in, set_credentials, until_let_in
from .sasl_pair import upsertion as credential

pytestmark = pytest.mark.xdist_group("sasl_hand_over")


def code_of_login(ports: Pair, mechanism: str, user: str, password: str) -> int:
    with Talk(ports.sasl) as talk:
        return int(log_in(talk, Scram(mechanism, user, password), mechanism)["ErrorCode"])


def shown(ports: Pair) -> dict[str, Any]:
    """Returns the credentials of each user, as the broker describes them."""
    with Talk(ports.open) as talk:
        answer = talk.ask("DescribeUserScramCredentials", 0, Users=None)
    return {
        each["User"]: sorted((info["Mechanism"], info["Iterations"]) for info in each["CredentialInfos"])
        for each in answer["Results"]
    }


def test_there_and_back(kafka_jars: Path, tmp_path: Path) -> None:
    with barnabas(tmp_path) as ports:
        with Talk(ports.open) as talk:
            set_credentials(talk)
        before = shown(ports)
    assert before == {"alice": [(1, 4096), (2, 4096)], "bob": [(1, 4096)]}

    with apache(tmp_path) as ports:
        for mechanism in MECHANISMS:
            until_let_in(ports.sasl, mechanism, "alice", PASSWORDS["alice"])
        assert shown(ports) == before
        assert code_of_login(ports, "SCRAM-SHA-256", "bob", "wrong") == 58
        with Talk(ports.open) as talk:
            carol = credential("carol", "SCRAM-SHA-512", "carol-secret")
            deletions = [{"Name": "alice", "Mechanism": 2}]
            answer = talk.ask("AlterUserScramCredentials", 0, Deletions=deletions, Upsertions=[carol])
        assert [each["ErrorCode"] for each in answer["Results"]] == [0, 0]
        until_let_in(ports.sasl, "SCRAM-SHA-512", "carol", "carol-secret")

    with barnabas(tmp_path) as ports:
        assert shown(ports) == {"alice": [(1, 4096)], "bob": [(1, 4096)], "carol": [(2, 4096)]}
        assert code_of_login(ports, "SCRAM-SHA-512", "carol", "carol-secret") == 0
        assert code_of_login(ports, "SCRAM-SHA-512", "carol", "wrong") == 58
        assert code_of_login(ports, "SCRAM-SHA-256", "alice", PASSWORDS["alice"]) == 0
        assert code_of_login(ports, "SCRAM-SHA-512", "alice", PASSWORDS["alice"]) == 58
