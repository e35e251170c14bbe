import pytest


def test_create_list_describe_delete(barnabas):
    created = barnabas("topics", "--create", "--topic", "orders", "--partitions", "3", "--config", "retention.ms=5000")
    assert created == (0, "Created topic orders\n", "")
    assert barnabas("topics", "--list") == (0, "orders\n", "")
    described = barnabas("topics", "--describe", "--topic", "orders")
    assert "Topic orders " in described.lines[0]
    assert "partitions 3  replication factor 1  configs: retention.ms=5000" in described.lines[0]
    assert described.lines[1].split() == ["PARTITION", "LEADER", "REPLICAS", "ISR", "OFFLINE"]
    assert described.lines[3].split() == ["0", "1", "1", "1"]
    assert barnabas("topics", "--delete", "--topic", "orders") == (0, "Deleted topic orders\n", "")
    assert barnabas("topics", "--list") == (0, "", "")


def test_json(barnabas):
    (created,) = barnabas("topics", "--create", "--topic", "t", "--partitions", "2", "--json").json
    assert (created["name"], created["num_partitions"], created["replication_factor"]) == ("t", 2, 1)
    (described,) = barnabas("topics", "--describe", "--json").json
    assert described["topic_id"] == created["topic_id"]
    assert len(created["topic_id"]) == 22, "base64, as Kafka's tools have it"
    assert [partition["leader"] for partition in described["partitions"]] == [1, 1]
    assert barnabas("topics", "--list", "--json").json == ["t"]
    assert barnabas("topics", "--delete", "--topic", "t", "--json").json == ["t"]


def test_more_partitions(barnabas, broker):
    broker.create_topic("t", partitions=1)
    assert barnabas("topics", "--alter", "--topic", "t", "--partitions", "3") == (0, "Topic t has 3 partitions\n", "")
    fewer = barnabas("topics", "--alter", "--topic", "t", "--partitions", "2")
    assert (fewer.code, fewer.err.startswith("Error: InvalidPartitions: ")) == (1, True)


def test_brokers_by_hand(barnabas):
    barnabas("topics", "--create", "--topic", "t", "--replica-assignment", "1,1")
    assert barnabas("topics", "--describe", "--topic", "t", "--json").json[0]["partition_count"] == 2
    barnabas("topics", "--alter", "--topic", "t", "--partitions", "3", "--replica-assignment", "1")
    assert barnabas("topics", "--describe", "--topic", "t", "--json").json[0]["partition_count"] == 3


def test_names_by_pattern(barnabas, broker):
    for name in ("a1", "a2", "b1"):
        broker.create_topic(name)
    assert barnabas("topics", "--list", "--topic", "a.*").lines == ["a1", "a2"]
    assert barnabas("topics", "--delete", "--topic", "a1,b1").lines == ["Deleted topic a1", "Deleted topic b1"]
    assert barnabas("topics", "--list").lines == ["a2"]


def test_what_is_there_and_what_is_not(barnabas, broker):
    broker.create_topic("t")
    assert barnabas("topics", "--create", "--topic", "t", "--if-not-exists") == (0, "", "")
    assert barnabas("topics", "--delete", "--topic", "other", "--if-exists") == (0, "", "")
    assert barnabas("topics", "--describe", "--topic", "other") == (1, "", "Error: There is no topic other\n")


def test_internal_topics_can_be_left_out(barnabas, broker):
    broker.create_topic("__consumer_offsets")
    assert barnabas("topics", "--list").lines == ["__consumer_offsets"]
    assert barnabas("topics", "--list", "--exclude-internal").lines == []
    assert barnabas("topics", "--describe", "--exclude-internal").lines == []


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["--topic", "t"], "TopicAlreadyExists"),
        (["--topic", "no good"], "InvalidTopicException"),
        (["--topic", "u", "--config", "no.such=1"], "InvalidConfig"),
    ],
)
def test_errors_are_one_line_in_the_brokers_words(barnabas, broker, arguments, error):
    broker.create_topic("t")
    outcome = barnabas("topics", "--create", *arguments)
    assert (outcome.code, outcome.out, outcome.err.count("\n")) == (1, "", 1)
    assert outcome.err.startswith(f"Error: {error}: ")


def test_troubled_partitions_only(barnabas, broker):
    broker.create_topic("t")
    for option in ("--under-replicated-partitions", "--unavailable-partitions"):
        assert barnabas("topics", "--describe", option, "--json").json[0]["partitions"] == []
