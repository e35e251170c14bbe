"""The decisions of the authorizer, compared with a naive implementation of Apache Kafka's rules."""

import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.security.acls import CLUSTER, Acl, AclFilter, Operation, PatternType, Permission, Resource, ResourceType
from barnabas.security.authorizer import Authorizer, Requester

TOPIC, LITERAL, PREFIXED = ResourceType.TOPIC, PatternType.LITERAL, PatternType.PREFIXED
ALLOW, DENY = Permission.ALLOW, Permission.DENY
ALICE = Requester("User:alice", "10.0.0.1")


def acl(name="orders", operation=Operation.READ, permission=ALLOW, pattern=LITERAL, user="User:alice", host="*"):
    return Acl(TOPIC, name, pattern, user, host, operation, permission)


def topic(name="orders"):
    return Resource(TOPIC, name)


def authorizer(*acls, **options):
    made = Authorizer(**options)
    made.change(added=acls)
    return made


IMPLIES_DESCRIBE = {Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER}


def naive(acls, requester, operation, resource):
    """Implements ``StandardAuthorizer`` without an index: checks every ACL, once for DENY and once for ALLOW."""

    def covers(each):
        if each.pattern_type == PREFIXED:
            return resource.name.startswith(each.resource_name)
        return each.resource_name in ("*", resource.name)

    def is_about(each):
        return each.principal in ("User:*", requester.principal) and each.host in ("*", requester.host)

    near = [each for each in acls if each.resource_type == resource.type and covers(each) and is_about(each)]
    if any(each.permission == DENY and each.operation in (operation, Operation.ALL) for each in near):
        return False
    allowed = {each.operation for each in near if each.permission == ALLOW}
    implied = {
        Operation.DESCRIBE: IMPLIES_DESCRIBE,
        Operation.DESCRIBE_CONFIGS: {Operation.ALTER_CONFIGS},
    }.get(operation, set())
    return bool(allowed & {operation, Operation.ALL, *implied})


names = st.sampled_from(["a", "ab", "abc", "b", "*"])
acls = st.builds(
    Acl,
    st.sampled_from([TOPIC, ResourceType.GROUP]),
    names,
    st.sampled_from([LITERAL, PREFIXED]),
    st.sampled_from(["User:alice", "User:bob", "User:*"]),
    st.sampled_from(["*", "10.0.0.1", "10.0.0.2"]),
    st.sampled_from([*IMPLIES_DESCRIBE, Operation.DESCRIBE, Operation.ALL, Operation.ALTER_CONFIGS]),
    st.sampled_from([ALLOW, DENY]),
)
changes = st.lists(st.tuples(st.booleans(), acls), max_size=12)
requests = st.lists(
    st.tuples(
        st.sampled_from(["User:alice", "User:bob"]),
        st.sampled_from([Operation.READ, Operation.DESCRIBE, Operation.DESCRIBE_CONFIGS, Operation.CREATE]),
        st.sampled_from(["a", "ab", "abc", "abcd", "b", "c"]),
    ),
    min_size=1,
    max_size=6,
)


@given(changes, requests)
def test_it_decides_like_the_naive_reading_after_each_change(changes, requests):
    held, subject = set(), Authorizer()
    for is_added, each in changes:
        subject.change(*([each], []) if is_added else ([], [each]))
        (held.add if is_added else held.discard)(each)
        for user, operation, name in requests:
            requester = Requester(user, "10.0.0.1")
            assert subject.allows(requester, operation, topic(name)) == naive(held, requester, operation, topic(name))


@given(st.lists(acls, max_size=8))
def test_some_topic_may_be_written_where_a_name_that_no_other_acl_covers_may(held):
    subject = authorizer(*held)
    allowed = {
        each.resource_name + ("?" if each.pattern_type == PREFIXED else "") if each.resource_name != "*" else "?"
        for each in held
        if each.resource_type == TOPIC
    }
    found = subject.allows_some(ALICE, Operation.WRITE, TOPIC)
    if any(naive(held, ALICE, Operation.WRITE, topic(name)) for name in allowed if name != "?"):
        assert found


def test_a_super_user_passes_a_denial():
    subject = authorizer(acl(operation=Operation.ALL, permission=DENY, user="User:*"), super_users={"User:alice"})
    assert subject.allows(ALICE, Operation.READ, topic())
    assert not subject.allows(Requester("User:bob", ALICE.host), Operation.READ, topic())


def test_a_denial_implies_nothing_and_beats_what_is_implied():
    subject = authorizer(acl(operation=Operation.READ, permission=DENY), acl(operation=Operation.DESCRIBE))
    assert subject.allows(ALICE, Operation.DESCRIBE, topic())
    subject = authorizer(acl(operation=Operation.DESCRIBE, permission=DENY), acl(operation=Operation.READ))
    assert subject.allows(ALICE, Operation.READ, topic()) and not subject.allows(ALICE, Operation.DESCRIBE, topic())


def test_without_acls_everybody_may_only_if_it_is_said_so():
    assert not authorizer().allows(ALICE, Operation.READ, topic())
    subject = authorizer(acl(user="User:bob"), allow_everyone_if_no_acl_found=True)
    assert subject.allows(ALICE, Operation.READ, topic("others"))
    assert not subject.allows(ALICE, Operation.READ, topic())
    assert subject.allows(ALICE, Operation.ALTER, CLUSTER)


@pytest.mark.parametrize(
    "denied, expected",
    [
        (None, True),
        (acl("orders", Operation.WRITE, DENY), False),
        (acl("ord", Operation.ALL, DENY, PREFIXED), False),
        (acl("*", Operation.WRITE, DENY, user="User:*"), False),
        (acl("other", Operation.WRITE, DENY), True),
        (acl("orders", Operation.READ, DENY), True),
    ],
)
def test_a_denial_of_all_of_a_pattern_takes_its_right_to_write_something(denied, expected):
    held = [acl(operation=Operation.WRITE), *([denied] if denied else [])]
    assert authorizer(*held).allows_some(ALICE, Operation.WRITE, TOPIC) is expected


def test_a_denied_name_under_an_allowed_prefix_leaves_others():
    held = [acl("ord", Operation.WRITE, pattern=PREFIXED), acl("orders", Operation.WRITE, DENY)]
    assert authorizer(*held).allows_some(ALICE, Operation.WRITE, TOPIC)


def test_a_refusal_is_logged_as_apache_kafka_does(caplog):
    subject = authorizer(acl(permission=DENY))
    with caplog.at_level(logging.INFO, "kafka.authorizer.logger"):
        subject.audit(ALICE, Operation.READ, topic(), "Fetch", 2)
        subject.audit(ALICE, Operation.WRITE, Resource(ResourceType.TRANSACTIONAL_ID, "t"), "EndTxn")
    assert caplog.messages == [
        "Principal = User:alice is Denied operation = READ from host = 10.0.0.1 on resource = Topic:LITERAL:orders for "
        "request = Fetch with resourceRefCount = 2 based on rule MatchingAcl(acl=StandardAcl(resourceType=TOPIC, "
        "resourceName=orders, patternType=LITERAL, principal=User:alice, host=*, operation=READ, permissionType=DENY))",
        "Principal = User:alice is Denied operation = WRITE from host = 10.0.0.1 on resource = "
        "TransactionalId:LITERAL:t for request = EndTxn with resourceRefCount = 1 based on rule DefaultDeny",
    ]


@pytest.mark.parametrize(
    "wanted, found",
    [
        (AclFilter(), ["*", "ord", "orders", "others"]),
        (AclFilter(resource_name="orders", pattern_type=PatternType.MATCH), ["*", "ord", "orders"]),
        (AclFilter(resource_name="orders"), ["orders"]),
        (AclFilter(resource_name="*", pattern_type=LITERAL), ["*"]),
        (AclFilter(pattern_type=PREFIXED), ["ord"]),
        (AclFilter(operation=Operation.WRITE), []),
        (AclFilter(principal="User:alice", host="*"), ["*", "ord", "orders", "others"]),
        (AclFilter(resource_type=ResourceType.GROUP), []),
    ],
)
def test_filters(wanted, found):
    held = [acl("*"), acl("ord", pattern=PREFIXED), acl(), acl("others")]
    assert [each.resource_name for each in held if wanted.matches(each)] == found
