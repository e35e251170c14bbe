"""The contents of the broker by HTTP: topics, records, saved states, and the requests and connections of clients.

Knows nothing of how the broker stores them.
"""

import json
from typing import Any, Final

from starlette.responses import Response

from barnabas.admin.endpoints import (
    ANY,
    SWITCH,
    TEXT,
    TEXT_OR_NULL,
    WHOLE,
    AdminRequest,
    Answer,
    Endpoint,
    Refused,
    array,
    fields,
)
from barnabas.cluster.image.image import TopicImage
from barnabas.config.dynamic import TOPIC_RESOURCE
from barnabas.faults.seen import SeenRequest
from barnabas.testing.faulting import canonical
from barnabas.testing.json_records import record_as_json, record_of_json
from barnabas.testing.saving import State
from barnabas.uuids import uuid_text
from barnabas.wire.plain import plain
from barnabas.wire.secrets import is_secret

MOST_RECORDS: Final = 10_000

# ---------------------------------------------------------------- all of it


async def broker(request: AdminRequest) -> Answer:
    node = request.controls.broker
    return {
        "bootstrap_servers": request.controls.bootstrap_servers,
        "node_id": node.node_id,
        "cluster_id": node.cluster_id,
        "topics": len(request.controls.topics()),
        "connections": len(request.controls.faults.connections()),
    }


def _alone(request: AdminRequest) -> None:
    if not request.controls.is_alone:
        raise Refused(409, "this node belongs to a cluster: only a broker that is alone is reset, saved and restored")


async def reset(request: AdminRequest) -> Answer:
    _alone(request)
    await request.controls.reset()
    return None


async def save(request: AdminRequest) -> Answer:
    _alone(request)
    state = request.controls.keep(request.controls.save())
    return {"id": state}


async def download(request: AdminRequest) -> Answer:
    return Response(_state(request).to_bytes(), media_type="application/zip")


async def upload(request: AdminRequest) -> Answer:
    try:
        state = State.from_bytes(await request.http.body())
    except ValueError as error:
        raise Refused(400, str(error)) from None
    request.controls.states[request.path("id")] = state
    return {"id": request.path("id")}


async def restore(request: AdminRequest) -> Answer:
    _alone(request)
    await request.controls.restore(_state(request))
    return None


async def drop(request: AdminRequest) -> Answer:
    _state(request)
    del request.controls.states[request.path("id")]
    return None


def _state(request: AdminRequest) -> State:
    found = request.controls.states.get(request.path("id"))
    if found is None:
        raise Refused(404, f"there is no saved state {request.path('id')!r}")
    return found


# ---------------------------------------------------------------- topics and records


def _topic(request: AdminRequest) -> TopicImage:
    found = request.controls.broker.image.topics_by_name.get(request.path("topic"))
    if found is None:
        raise Refused(404, f"there is no topic {request.path('topic')!r}")
    return found


def _topic_as_json(request: AdminRequest, topic: TopicImage) -> dict[str, Any]:
    node = request.controls.broker
    partitions = []
    for index in sorted(topic.partitions):
        of_image, here = topic.partitions[index], node.partitions.get((topic.name, index))
        shown = {"partition": index, "leader": of_image.leader, "replicas": list(of_image.replicas)}
        shown["isr"] = list(of_image.isr)
        if here is not None:
            shown |= {"start_offset": here.log.log_start_offset, "end_offset": here.log.high_watermark}
        partitions.append(shown)
    configs = dict(node.image.configs_of(TOPIC_RESOURCE, topic.name))
    return {"name": topic.name, "id": uuid_text(topic.id), "partitions": partitions, "configs": configs}


async def topics(request: AdminRequest) -> Answer:
    by_name = request.controls.broker.image.topics_by_name
    names = sorted(by_name) if request.switch("internal") else request.controls.topics()
    return [_topic_as_json(request, by_name[name]) for name in names]


async def create(request: AdminRequest) -> Answer:
    given = await request.fields("name", "partitions", "configs")
    name, configs = str(given.get("name", "")), given.get("configs") or {}
    if not isinstance(configs, dict):
        raise Refused(400, 'configs is an object, such as {"cleanup.policy": "compact"}')
    texts = {key: value if isinstance(value, str) else json.dumps(value) for key, value in configs.items()}
    await request.controls.create_topic(name, int(given.get("partitions", 1)), texts)
    return _topic_as_json(request, request.controls.broker.image.topics_by_name[name])


async def topic(request: AdminRequest) -> Answer:
    return _topic_as_json(request, _topic(request))


async def delete(request: AdminRequest) -> Answer:
    await request.controls.delete_topic(_topic(request).name)
    return None


async def records(request: AdminRequest) -> Answer:
    name, partition = _topic(request).name, request.whole("partition")
    first, limit = request.whole("offset") or 0, request.whole("limit")
    found = [
        each
        for each in request.controls.records(name, committed=request.switch("committed"))
        if partition in (None, each.partition) and each.offset >= first
    ]
    return [record_as_json(each) for each in found[: MOST_RECORDS if limit is None else limit]]


async def append(request: AdminRequest) -> Answer:
    given = await request.json()
    many = given if isinstance(given, list) else [given]
    try:
        found = [record_of_json(each, request.path("topic")) for each in many]
    except (ValueError, TypeError) as error:
        raise Refused(400, f"this is no record: {error}") from None
    return {"count": await request.controls.append(found)}


# ---------------------------------------------------------------- the requests of clients


def seen_as_json(seen: SeenRequest) -> dict[str, Any]:
    answer = None if seen.answer is None else plain(seen.answer, seen.version, is_secret)
    return {
        "number": seen.number,
        "api": seen.api,
        "version": seen.version,
        "time_ms": seen.time_ms,
        "size": seen.size,
        "connection": seen.connection,
        "node": seen.node,
        "client_id": seen.client_id,
        "client_software_name": seen.client_software_name,
        "client_software_version": seen.client_software_version,
        "error": seen.error,
        "request": plain(seen.request, seen.version, is_secret),
        "answer": answer,
    }


async def record_requests(request: AdminRequest) -> Answer:
    request.controls.faults.record().clear()
    return None


async def requests(request: AdminRequest) -> Answer:
    seen = request.controls.faults.watch.seen
    if seen is None:
        raise Refused(409, "no requests are recorded: POST /requests before the client sends them")
    found = seen.find(canonical(request.query("api")), request.query("client_id"))
    if request.switch("count"):
        return {"count": len(found)}
    return [seen_as_json(each) for each in found[: request.whole("limit")]]


async def stop_recording(request: AdminRequest) -> Answer:
    request.controls.faults.stop_recording()
    return None


async def connections(request: AdminRequest) -> Answer:
    return [each._asdict() for each in request.controls.faults.connections()]


PARTITION: Final = fields(
    partition=WHOLE, leader=WHOLE, replicas=array(WHOLE), isr=array(WHOLE), start_offset=WHOLE, end_offset=WHOLE
)
TOPIC: Final = fields(("name",), name=TEXT, id=TEXT, partitions=array(PARTITION), configs=fields())
NEW_TOPIC: Final = fields(("name",), name=TEXT, partitions=WHOLE, configs=fields())
RECORD: Final = fields(
    topic=TEXT, partition=WHOLE, offset=WHOLE, timestamp=WHOLE, key=TEXT_OR_NULL, key_base64=TEXT, value=TEXT_OR_NULL,
    value_base64=TEXT, headers=array(fields(("name",), name=TEXT, value=TEXT_OR_NULL, value_base64=TEXT)),
)  # fmt: skip
NEW_RECORD: Final = fields(
    topic=TEXT, partition=WHOLE, offset=WHOLE, timestamp=WHOLE, key=ANY, key_base64=TEXT, value=ANY,
    value_base64=TEXT, headers=array(fields(("name",), name=TEXT, value=ANY, value_base64=TEXT)),
)  # fmt: skip
SEEN: Final = fields(
    number=WHOLE, api=TEXT, version=WHOLE, time_ms=WHOLE, size=WHOLE, connection=WHOLE, node=WHOLE, client_id=TEXT,
    client_software_name=TEXT, client_software_version=TEXT, error=TEXT, request=fields(), answer=fields(),
)  # fmt: skip
CONNECTION: Final = fields(
    number=WHOLE,
    host=TEXT,
    port=WHOLE,
    principal=TEXT,
    client_software_name=TEXT,
    client_software_version=TEXT,
    node=WHOLE,
)
BROKER: Final = fields(bootstrap_servers=TEXT, node_id=WHOLE, cluster_id=TEXT, topics=WHOLE, connections=WHOLE)
STATE: Final = fields(("id",), id=TEXT)
ZIP: Final = {"type": "string", "format": "binary"}
WHICH: Final = {"api": (TEXT, "a name, or a key"), "client_id": (TEXT, "")}
WHICH_RECORDS: Final = {
    "partition": (WHOLE, ""), "offset": (WHOLE, "the first"), "limit": (WHOLE, "how many at most"),
    "committed": (SWITCH, "only those that a consumer with isolation.level=read_committed gets"),
}  # fmt: skip

ENDPOINTS: Final = (
    Endpoint("GET", "/", broker, "The broker", answers=BROKER),
    Endpoint("POST", "/reset", reset, "Reset the broker to the state in which it started", status=204),
    Endpoint("POST", "/states", save, "Save topics, records, groups and the rest", answers=STATE, status=201),
    Endpoint("GET", "/states/{id}", download, "A saved state, to be kept in a file", answers=ZIP,
             answer_type="application/zip"),
    Endpoint("PUT", "/states/{id}", upload, "A saved state from a file", body=ZIP, body_types=("application/zip",),
             answers=STATE),
    Endpoint("DELETE", "/states/{id}", drop, "Forget a saved state", status=204),
    Endpoint("POST", "/states/{id}/restore", restore, "Replace the broker's state by a saved one", status=204),
    Endpoint("GET", "/topics", topics, "The topics", answers=array(TOPIC),
             query={"internal": (SWITCH, "with the broker's own")}),
    Endpoint("POST", "/topics", create, "Create a topic", body=NEW_TOPIC, answers=TOPIC, status=201),
    Endpoint("GET", "/topics/{topic}", topic, "A topic", answers=TOPIC),
    Endpoint("DELETE", "/topics/{topic}", delete, "Delete a topic", status=204),
    Endpoint("GET", "/topics/{topic}/records", records, "Its records by partition and offset", query=WHICH_RECORDS,
             answers=array(RECORD)),
    Endpoint("POST", "/topics/{topic}/records", append, "Append a record, or an array of them",
             body={"oneOf": [NEW_RECORD, array(NEW_RECORD)]},
             answers=fields(count=WHOLE), status=201),
    Endpoint("POST", "/requests", record_requests, "Record requests from now on", status=204),
    Endpoint("GET", "/requests", requests, "The requests that were recorded, with their answers",
             query={**WHICH, "limit": (WHOLE, ""), "count": (SWITCH, "only how many")}, answers=array(SEEN)),
    Endpoint("DELETE", "/requests", stop_recording, "Stop recording requests", status=204),
    Endpoint("GET", "/connections", connections, "The open connections", answers=array(CONNECTION)),
)  # fmt: skip
