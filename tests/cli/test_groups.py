import pytest
from click import ClickException

from barnabas.cli.group_offsets import duration_ms, moment, read_file


@pytest.fixture
def read(barnabas, broker):
    """A group without members that has read four records of one partition."""
    broker.create_topic("t", partitions=2)
    broker.create_topic("other")
    barnabas("produce", "--topic", "t", "--property", "parse.key=true", "--property", "key.separator=:",
             stdin=b"k:a\nk:b\nk:c\nk:d\n")  # fmt: skip
    (partition,) = {record.partition for record in broker.records("t")}
    out = barnabas(
        "consume", "--topic", "t", "--group", "g", "--from-beginning", "--max-messages", "4", "--timeout-ms", "20000"
    )
    assert len(out.lines) == 4
    return partition


def offsets(barnabas):
    rows = barnabas("groups", "--describe", "--group", "g", "--json").json
    return {(row["topic"], row["partition"]): row["current_offset"] for row in rows}


def test_list(barnabas, read):
    assert barnabas("groups", "--list").lines == ["g"]
    assert barnabas("groups", "--list", "--state").lines[-1].split() == ["g", "Empty"]
    assert barnabas("groups", "--list", "--state", "stable").lines == ["No groups"]
    assert barnabas("groups", "--list", "--json").json == [
        {"group": "g", "type": "classic", "protocol": "consumer", "state": "Empty"}
    ]


def test_describe(barnabas, read):
    table = barnabas("groups", "--describe", "--group", "g").lines
    assert table[0].split() == ["GROUP", "TOPIC", "PARTITION", "CURRENT", "OFFSET", "LOG", "END", "OFFSET", "LAG",
                                "CONSUMER", "ID", "HOST", "CLIENT", "ID"]  # fmt: skip
    row = next(
        row for row in barnabas("groups", "--describe", "--all-groups", "--json").json if row["partition"] == read
    )
    assert (row["group"], row["topic"], row["current_offset"], row["log_end_offset"], row["lag"]) == ("g", "t", 4, 4, 0)
    (state,) = barnabas("groups", "--describe", "--group", "g", "--state", "--json").json
    assert state.pop("coordinator").endswith(" (1)")
    assert {name: value for name, value in state.items() if value is not None} == {
        "group": "g", "type": "classic", "state": "Empty", "members": 0,
    }  # fmt: skip
    assert barnabas("groups", "--describe", "--group", "g", "--members") == (0, "No members\n", "")
    assert barnabas("groups", "--describe", "--group", "nobody") == (1, "", "Error: There is no group nobody\n")


def test_members(barnabas, broker):
    from kafka import KafkaConsumer

    broker.create_topic("t")
    barnabas("produce", "--topic", "t", stdin=b"read\n")
    consumer = KafkaConsumer("t", bootstrap_servers=broker.bootstrap_servers, group_id="g", client_id="me",
                             auto_offset_reset="earliest", enable_auto_commit=False)  # fmt: skip
    try:
        # One poll for all of it: kafka-python 3.0.12 loses a join that completes between two polls.
        assert consumer.poll(60_000), "the member was given nothing to read"
        (member,) = barnabas("groups", "--describe", "--group", "g", "--members", "--verbose", "--json").json
        assert (member["client_id"], member["host"], member["partitions"]) == ("me", "/127.0.0.1", ["t-0"])
        (row,) = barnabas("groups", "--describe", "--group", "g", "--json").json
        assert (row["partition"], row["current_offset"], row["lag"], row["client_id"]) == (0, None, None, "me")
        reset = barnabas("groups", "--reset-offsets", "--group", "g", "--topic", "t", "--to-earliest", "--execute")
        assert reset.err == "Error: Group g has members (it is Stable): its offsets cannot be reset\n"
        assert barnabas("groups", "--delete", "--group", "g").err == "Error: Not deleted: g (NonEmptyGroup)\n"
    finally:
        consumer.close()


@pytest.mark.parametrize(
    ("target", "offset"),
    [
        (["--to-earliest"], 0),
        (["--to-latest"], 4),
        (["--to-current"], 4),
        (["--to-offset", "3"], 3),
        (["--to-offset", "99"], 4),
        (["--shift-by", "-3"], 1),
        (["--shift-by", "-99"], 0),
        (["--to-datetime", "2001-01-01T00:00:00.000"], 0),
        (["--to-datetime", "2199-01-01T00:00:00+01:00"], 4),
        (["--by-duration", "P1D"], 0),
    ],
)
def test_where_offsets_are_reset_to(barnabas, read, target, offset):
    where = ("groups", "--reset-offsets", "--group", "g", "--topic", f"t:{read}", *target)
    dry = barnabas(*where, "--json")
    assert (dry.json[0]["new_offset"], dry.err) == (
        offset,
        "Nothing was changed. To commit these offsets, add --execute\n",
    )
    assert offsets(barnabas)["t", read] == 4
    assert barnabas(*where, "--execute").code == 0
    assert offsets(barnabas)["t", read] == offset


def test_an_export_can_be_imported(barnabas, read, tmp_path):
    exported = barnabas("groups", "--reset-offsets", "--group", "g", "--all-topics", "--to-offset", "2", "--export")
    assert f"t,{read},2" in exported.lines
    file = tmp_path / "offsets.csv"
    file.write_text(exported.out)
    assert barnabas("groups", "--reset-offsets", "--group", "g", "--from-file", str(file), "--execute").code == 0
    assert offsets(barnabas)["t", read] == 2


def test_an_export_of_several_groups_names_them(barnabas, read, tmp_path):
    barnabas("groups", "--reset-offsets", "--group", "h", "--topic", f"t:{read}", "--to-offset", "3", "--execute")
    where = ("groups", "--reset-offsets", "--group", "g", "--group", "h")
    exported = barnabas(*where, "--topic", f"t:{read}", "--shift-by", "-1", "--export")
    assert exported.lines == [f"g,t,{read},3", f"h,t,{read},2"]
    file = tmp_path / "offsets.csv"
    file.write_text(exported.out)
    assert barnabas(*where, "--from-file", str(file), "--execute").code == 0
    assert offsets(barnabas)["t", read] == 3


def test_a_group_that_was_not_there_gets_offsets(barnabas, read):
    reset = barnabas("groups", "--reset-offsets", "--group", "new", "--topic", "t", "--to-latest", "--execute")
    assert reset.code == 0
    assert len(barnabas("groups", "--describe", "--group", "new", "--json").json) == 2


def test_delete_offsets_and_groups(barnabas, read):
    assert barnabas("groups", "--delete-offsets", "--group", "g", "--topic", f"t:{read}").code == 0
    assert offsets(barnabas).get(("t", read)) is None
    assert barnabas("groups", "--reset-offsets", "--group", "g", "--topic", "t", "--to-latest", "--execute").code == 0
    deleted = barnabas("groups", "--delete", "--group", "g", "--group", "nobody")
    assert deleted == (1, "Deleted group g\n", "Error: Not deleted: nobody (GroupIdNotFound)\n")
    assert barnabas("groups", "--list").out == ""


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["--reset-offsets", "--group", "g", "--topic", "t"], 2),
        (["--reset-offsets", "--group", "g", "--topic", "t", "--to-latest", "--shift-by", "1"], 2),
        (["--reset-offsets", "--group", "g", "--to-latest"], 2),
        (["--reset-offsets", "--group", "g", "--topic", "t", "--to-latest", "--execute", "--dry-run"], 2),
        (["--reset-offsets", "--group", "g", "--topic", "nope", "--to-latest"], 1),
        (["--reset-offsets", "--group", "g", "--topic", "t:9", "--to-latest"], 1),
        (["--reset-offsets", "--group", "g", "--topic", "other", "--shift-by", "1"], 1),
        (["--reset-offsets", "--group", "g", "--topic", "t", "--to-datetime", "yesterday"], 2),
        (["--reset-offsets", "--group", "g", "--topic", "t", "--by-duration", "1h"], 2),
        (["--reset-offsets", "--group", "g", "--from-file", "/no/such/file"], 1),
        (["--describe"], 2),
    ],
)
def test_mistakes(barnabas, read, arguments, code):
    outcome = barnabas("groups", *arguments)
    assert (outcome.code, outcome.out, outcome.err.count("\n")) == (code, "", 1)


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [("P1D", 86_400_000), ("PT1H30M", 5_400_000), ("P1DT0.5S", 86_400_500), ("pt2s", 2000), ("PT0S", 0)],
)
def test_durations(text, milliseconds):
    assert duration_ms(text) == milliseconds


@pytest.mark.parametrize("text", ["", "P", "PT", "1D", "P1H", "P1Y", "-PT1H", "P1DT"])
def test_what_is_no_duration(text):
    with pytest.raises(ClickException):
        duration_ms(text)


@pytest.mark.parametrize(
    "text", ["2023-11-14T22:13:20", "2023-11-14T22:13:20.000", "2023-11-14T22:13:20Z", "2023-11-15T00:13:20+02:00"]
)
def test_moments(text):
    assert moment(text) == 1_700_000_000_000


def test_lines_of_a_file(tmp_path):
    file = tmp_path / "offsets.csv"
    file.write_text("t,0,5\ng,u,1,6\nother,v,2,7\n")
    assert read_file(str(file), "g") == {("t", 0): 5, ("u", 1): 6}
    file.write_text("t,zero,5\n")
    with pytest.raises(ClickException):
        read_file(str(file), "g")
