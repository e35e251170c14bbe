"""The effect of a topic's configs on its hosted partitions."""

import barnabas.testing


def notices(caplog):
    return [record.getMessage() for record in caplog.records if "has no effect" in record.getMessage()]


def test_a_config_of_a_topic_without_effect_is_said_so_when_it_is_set(caplog):
    with barnabas.testing.Broker() as broker:
        broker.create_topic("big", configs={"preallocate": True, "retention.ms": 5, "local.retention.ms": -2})
    assert notices(caplog) == [
        "preallocate is set for topic big, but has no effect in this version of Barnabas",
    ]


def test_a_config_without_effect_that_has_its_default_is_no_news(caplog):
    with barnabas.testing.Broker() as broker:
        broker.create_topic("small", configs={"preallocate": False})
    assert notices(caplog) == []
