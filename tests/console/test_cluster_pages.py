"""Groups, transactions, access, schemas and faults in the console."""

import html
import json
import re
import urllib.request

import pytest
from confluent_kafka import Consumer, ShareConsumer
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.structs import OffsetAndMetadata

from barnabas.cli.client import Cluster
from barnabas.console.application import Console
from barnabas.console.lags import MOST_GROUPS, MOST_POINTS, Lags, Point, chart
from barnabas.testing import Broker
from tests.console.conftest import Browser


def commit(broker, group, offset):
    consumer = KafkaConsumer(bootstrap_servers=broker.bootstrap_servers, group_id=group)
    consumer.commit({TopicPartition("orders", 0): OffsetAndMetadata(offset, "", -1)})
    consumer.close()


def test_a_group_shows_its_lag_and_is_reset_after_a_preview(pages, broker):
    commit(broker, "team/billing", 10)
    assert "/groups/team%2Fbilling" in pages.get("/groups").text
    path = "/groups/team%2Fbilling"
    text = pages.get(path).text
    assert "<td>10</td>" in text and "<td>90</td>" in text and "No members" in text
    assert "<svg" in pages.get(f"{path}/lag").text
    query = "topic=orders:0&target=to_offset&value=3"
    preview = pages.get(f"{path}/reset?{query}").text
    assert "<td>10</td><td>3</td>" in preview and "Nothing is changed yet" in preview
    assert "<td>10</td>" in pages.get(path).text
    done = pages.submit(f"{path}/reset?{query}", f"{path}/reset", topic="orders:0", target="to_offset", value="3")
    assert done.status_code == 303 and "<td>3</td>" in pages.get(path).text
    assert pages.get(f"{path}/reset?target=to_offset").status_code == 400
    assert pages.get(f"{path}/reset?target=sideways").status_code == 400
    assert pages.submit(f"{path}/delete", f"{path}/delete", name="other").status_code == 400
    assert pages.submit(f"{path}/delete", f"{path}/delete", name="team/billing").status_code == 303
    assert pages.get(path).status_code == 404


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_members_of_each_kind_are_shown(pages, broker, protocol):
    group = {"group.id": f"by-{protocol}", "group.protocol": protocol, "client.id": "reader"}
    consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, **group})
    consumer.subscribe(["orders"])
    try:
        while not consumer.assignment():
            consumer.poll(0.1)
        text = pages.get(f"/groups/by-{protocol}").text
        assert f"Type {protocol}" in text and "reader" in text and "orders-0" in text
        refused = pages.get(f"/groups/by-{protocol}/reset?topic=orders&target=earliest")
        assert refused.status_code == 409 and "has members" in refused.text
    finally:
        consumer.close()


def test_a_share_group_is_shown_and_reset(pages, broker):
    sharer = ShareConsumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "cooks"})
    sharer.subscribe(["orders"])
    sharer.poll(1)
    text = pages.get("/groups/cooks").text
    assert "Type share" in text and "1 members" in text
    sharer.close()
    path = "/groups/cooks/reset"
    assert "<td>0</td>" in pages.get(f"{path}?topic=orders&target=earliest").text
    assert (
        pages.submit(f"{path}?topic=orders&target=earliest", path, topic="orders", target="earliest").status_code == 303
    )
    assert "<td>0</td>" in pages.get("/groups/cooks").text
    refused = pages.get(f"{path}?topic=orders&target=to_offset&value=3")
    assert refused.status_code == 409 and "share group" in refused.text


def test_open_and_hanging_transactions(pages, broker):
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers, transactional_id="payments")
    producer.init_transactions()
    producer.begin_transaction()
    producer.send("doomed", b"x", partition=1).get(timeout=10)
    text = pages.get("/transactions?search=pay").text
    assert "payments" in text and "Ongoing" in text and "doomed-1" in text
    assert "None hangs on doomed" in pages.get("/transactions?topic=doomed&minutes=0").text
    refused = pages.submit("/new-topic", "/transactions/abort", topic="doomed", partition="1", start_offset="99")
    assert refused.status_code == 409 and "Could not find any open transactions" in refused.text
    producer.abort_transaction()
    producer.close()
    assert "ABORT" in pages.get("/topics/doomed/records?partition=1").text


def test_access_says_what_is_missing(pages):
    text = pages.get("/access").text
    assert "authorizer.class.name" in text and "nobody has a quota" in text


def test_acls_users_and_quotas_are_shown():
    from click.testing import CliRunner

    from barnabas.cli.acls import acls
    from barnabas.cli.configs import configs

    given = {"authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
             "super.users": "User:ANONYMOUS"}  # fmt: skip
    with Broker(**given) as broker:
        at = ["--bootstrap-server", broker.bootstrap_servers]
        rule = ["--add", "--allow-principal", "User:alice", "--operation", "Read", "--topic", "orders", *at]
        assert CliRunner().invoke(acls, rule).exit_code == 0
        quota = ["--alter", "--add-config", "producer_byte_rate=1024", "--entity-type", "users", "--entity-name", "bob"]
        assert CliRunner().invoke(configs, [*quota, *at]).exit_code == 0
        text = Browser(Console(Cluster(broker.bootstrap_servers, {})).application()).get("/access").text
    assert "User:alice" in text and "producer_byte_rate: 1024" in text and "bob" in text


def test_acls_users_and_quotas_are_set_and_removed_after_a_question():
    given = {"authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
             "super.users": "User:ANONYMOUS"}  # fmt: skip
    with Broker(**given) as broker:
        pages = Browser(Console(Cluster(broker.bootstrap_servers, {})).application())

        def follow(link):
            address = html.unescape(re.search(rf'href="([^"]+)" aria-label="{link}', pages.get("/access").text)[1])
            response = pages.get(address)
            assert response.status_code == 200 and "This destroys" in response.text
            fields = dict(re.findall(r'type="hidden" name="([^"]+)" value="([^"]*)"', response.text))
            fields = {name: html.unescape(value) for name, value in fields.items() if name != "csrf"}
            return response.text, pages.submit(address, address.partition("?")[0], **fields)

        acl = {"resource_type": "TOPIC", "resource_name": "or&ders", "pattern_type": "PREFIXED", "host": "10.0.0.1",
               "principal": "User:al ice", "operation": "WRITE", "permission": "DENY"}  # fmt: skip
        assert pages.submit("/access", "/access/acls", **acl).status_code == 303
        wrong = pages.submit("/access", "/access/acls", **{**acl, "operation": "SING"})
        assert wrong.status_code == 400 and "SING" in wrong.text
        refused = pages.submit("/access", "/access/acls", **{**acl, "operation": "CLUSTER_ACTION"})
        assert refused.status_code == 400 and "but ALL, READ" in refused.text
        text, done = follow("Remove DENY")
        assert "DENY WRITE on TOPIC or&amp;ders (PREFIXED) to User:al ice from 10.0.0.1" in text
        assert done.status_code == 303 and "User:al ice" not in pages.get("/access").text
        assert pages.submit("/access", "/access/acls/remove", **acl).status_code == 404

        user = {"user": "al ice", "mechanism": "SCRAM-SHA-512", "password": " s3cret ", "iterations": "5000"}
        assert pages.submit("/access", "/access/users", **user).status_code == 303
        assert "SCRAM-SHA-512: iterations=5000" in pages.get("/access").text
        few = pages.submit("/access", "/access/users", **{**user, "iterations": "1"})
        assert few.status_code == 409 and "s3cret" not in few.text
        text, done = follow("Delete SCRAM-SHA-512")
        assert "user al ice" in text and done.status_code == 303 and "SCRAM-SHA-512: " not in pages.get("/access").text

        for who in ({"user": "al ice"}, {"user": "<default>", "client-id": "c&d"}, {"ip": "10.0.0.1"}):
            quota = "connection_creation_rate" if "ip" in who else "producer_byte_rate"
            fields = {**who, "quota": quota, "value": "2048"}
            assert pages.submit("/access", "/access/quotas", **fields).status_code == 303
            assert f"{quota}: 2048" in pages.get("/access").text
            text, done = follow(f"Remove {quota}")
            assert done.status_code == 303 and f"{quota}: 2048" not in pages.get("/access").text
        assert pages.submit("/access", "/access/quotas", user="a", quota="thirst", value="1").status_code == 400
        assert pages.submit("/access", "/access/quotas", quota="request_percentage", value="1").status_code == 400
        assert pages.post("/access/quotas/remove", data={"user": "a", "quota": "request_percentage"}).status_code == 403


def test_schemas_show_versions_and_differences(pages, broker):
    url = broker.schema_registry_url
    for more in ("", ',{"name":"note","type":"string","default":""}'):
        schema = f'{{"type":"record","name":"R","fields":[{{"name":"a","type":"int"}}{more}]}}'
        body = json.dumps({"schema": schema}).encode()
        header = {"content-type": "application/json"}
        urllib.request.urlopen(urllib.request.Request(f"{url}/subjects/r-value/versions", body, header)).read()
    assert "/schemas/r-value" in pages.get("/schemas").text
    text = pages.get("/schemas/r-value?version=2&before=1").text
    assert "BACKWARD" in text and re.search(r'diff-add">\+ .*note', text)
    assert [pages.get(f"/schemas/{each}").status_code for each in ("none", "r-value?version=3")] == [404, 404]
    without = Browser(Console(Cluster(broker.bootstrap_servers, {})).application())
    assert without.get("/schemas").status_code == 404 and 'href="/schemas"' not in without.get("/topics").text


def test_faults_and_requests_of_a_broker_for_tests():
    with Broker(barnabas_admin_listener="127.0.0.1:0", barnabas_console_listener="127.0.0.1:0") as broker:
        (admin,) = [each for each in broker._server.http_services if each.name == "admin"]
        pages = Browser(Console(Cluster(broker.bootstrap_servers, {}), admin_api=admin.url).application())
        assert "No faults are set" in pages.get("/faults").text
        pages.submit("/faults", "/faults", action="set", script="Produce topic=orders error=NOT_LEADER_OR_FOLLOWER")
        text = pages.get("/faults").text
        assert "NOT_LEADER_OR_FOLLOWER" in text and "Lift rule" in text
        wrong = pages.submit("/faults", "/faults", action="set", script="Nonsense error=NONE")
        assert wrong.status_code == 409
        pages.submit("/faults", "/faults", action="lift-all")
        assert "No faults are set" in pages.get("/faults").text
        pages.submit("/faults", "/faults", action="record")
        pages.get("/topics")
        text = pages.get("/faults?api=Metadata").text
        assert "<td>Metadata</td>" in text and "Request and answer" in text
        pages.submit("/faults", "/faults", action="stop")


def test_lags_are_bounded_and_drawn():
    lags = Lags()
    for number in range(MOST_POINTS + 10):
        points = lags.note("a", number * 1000, number)
    assert len(points) == MOST_POINTS
    for number in range(MOST_GROUPS):
        lags.note(f"g{number}", 0, 0)
    assert len(lags.note("a", 0, 5)) == 1
    assert chart([Point(0, 0), Point(2000, 10)]) == ("0.0,118.0 600.0,2.0", 10, 2)
    assert chart([Point(5, 3)]) == ("0.0,2.0 600.0,2.0", 3, 0)
