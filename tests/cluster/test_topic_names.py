import pytest

from barnabas.cluster.topic_names import check_topic_name, collision_key, is_legal_topic_name
from barnabas.errors import InvalidTopicException


@pytest.mark.parametrize("name", ["a", "A9-_.z", "-", "_", "...", "__consumer_offsets", "a" * 249])
def test_names_that_topics_may_have(name):
    check_topic_name(name)
    assert is_legal_topic_name(name)


@pytest.mark.parametrize("name", ["", ".", "..", "a" * 250, "a b", "a/b", "a:b", "ü", "a\n", "\0", "a\u0661"])
def test_names_that_topics_may_not_have(name):
    with pytest.raises(InvalidTopicException) as caught:
        check_topic_name(name)
    assert caught.value.args, "it says why"
    assert not is_legal_topic_name(name)


def test_dots_and_underscores_are_one_in_metrics():
    assert collision_key("a.b_c") == collision_key("a_b.c") != collision_key("a-b.c")
