import json

import pytest

from barnabas.cluster.quorum.quorum_state import CorruptQuorumState, QuorumState, read_quorum_state, write_quorum_state
from barnabas.log.files import MemoryFiles

PATH = "/data/quorum-state"


@pytest.fixture
def files():
    made = MemoryFiles()
    made.makedirs("/data")
    return made


@pytest.mark.parametrize("state", [QuorumState(1, 5, (1,)), QuorumState(3, 9, None), QuorumState(-1, 0, ())])
def test_it_comes_back(files, state):
    write_quorum_state(files, PATH, state)
    assert read_quorum_state(files, PATH) == state


def test_the_text_is_apaches(files):
    write_quorum_state(files, PATH, QuorumState(1, 5, (1,)))
    assert files.read(PATH) == (
        b'{"clusterId":"","leaderId":1,"leaderEpoch":5,"votedId":-1,"appliedOffset":0,'
        b'"currentVoters":[{"voterId":1}],"data_version":0}'
    )
    write_quorum_state(files, PATH, QuorumState(1, 2, None))
    assert files.read(PATH) == (
        b'{"leaderId":1,"leaderEpoch":2,"votedId":-1,"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA","data_version":1}'
    )


def test_there_may_be_none(files):
    assert read_quorum_state(files, PATH) is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "[]",
        '{"leaderId":1,"leaderEpoch":"x","data_version":0}',
        '{"leaderId":1,"leaderEpoch":1,"data_version":9}',
    ],
)
def test_what_cannot_be_read_is_no_epoch_0(files, text):
    files.write_atomically(PATH, text.encode(), sync=False)
    with pytest.raises(CorruptQuorumState):
        read_quorum_state(files, PATH)


def test_it_is_json(files):
    write_quorum_state(files, PATH, QuorumState(1, 5, (1, 2)))
    assert json.loads(files.read(PATH))["currentVoters"] == [{"voterId": 1}, {"voterId": 2}]
