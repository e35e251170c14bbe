"""What the broker has and what clients have asked, by HTTP: topics, records, saved states, requests, connections.

Knows nothing of how it is kept.
"""

from typing import Any, Final

from starlette.responses import Response

from barnabas.admin.endpoints import SWITCH, TEXT, WHOLE, Answer, Asked, Endpoint, Refused, array, fields
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


async def broker(asked: Asked) -> Answer:
    node = asked.controls.broker
    return {
        "bootstrap_servers": asked.controls.bootstrap_servers,
        "node_id": node.node_id,
        "cluster_id": node.cluster_id,
        "topics": len(asked.controls.topics()),
        "connections": len(asked.controls.faults.connections()),
    }


async def reset(asked: Asked) -> Answer:
    await asked.controls.reset()
    return None


async def save(asked: Asked) -> Answer:
    state = asked.controls.keep(asked.controls.save())
    return {"id": state}


async def download(asked: Asked) -> Answer:
    return Response(_state(asked).to_bytes(), media_type="application/zip")


async def upload(asked: Asked) -> Answer:
    try:
        state = State.from_bytes(await asked.request.body())
    except ValueError as error:
        raise Refused(400, str(error)) from None
    asked.controls.states[asked.path("id")] = state
    return {"id": asked.path("id")}


async def restore(asked: Asked) -> Answer:
    await asked.controls.restore(_state(asked))
    return None


async def drop(asked: Asked) -> Answer:
    _state(asked)
    del asked.controls.states[asked.path("id")]
    return None


def _state(asked: Asked) -> State:
    found = asked.controls.states.get(asked.path("id"))
    if found is None:
        raise Refused(404, f"there is no saved state {asked.path('id')!r}")
    return found


# ---------------------------------------------------------------- topics and records


def _topic(asked: Asked) -> TopicImage:
    found = asked.controls.broker.image.topics_by_name.get(asked.path("topic"))
    if found is None:
        raise Refused(404, f"there is no topic {asked.path('topic')!r}")
    return found


def _topic_as_json(asked: Asked, topic: TopicImage) -> dict[str, Any]:
    node = asked.controls.broker
    partitions = []
    for index in sorted(topic.partitions):
        of_image, here = topic.partitions[index], node.partitions.get((topic.name, index))
        told = {"partition": index, "leader": of_image.leader, "replicas": list(of_image.replicas)}
        told["isr"] = list(of_image.isr)
        if here is not None:
            told |= {"start_offset": here.log.log_start_offset, "end_offset": here.log.high_watermark}
        partitions.append(told)
    configs = dict(node.image.configs_of(TOPIC_RESOURCE, topic.name))
    return {"name": topic.name, "id": uuid_text(topic.id), "partitions": partitions, "configs": configs}


async def topics(asked: Asked) -> Answer:
    by_name = asked.controls.broker.image.topics_by_name
    names = sorted(by_name) if asked.switch("internal") else asked.controls.topics()
    return [_topic_as_json(asked, by_name[name]) for name in names]


async def create(asked: Asked) -> Answer:
    given = await asked.fields()
    configs = {name: str(value) for name, value in (given.get("configs") or {}).items()}
    await asked.controls.create_topic(str(given.get("name", "")), int(given.get("partitions", 1)), configs)
    return _topic_as_json(asked, asked.controls.broker.image.topics_by_name[given["name"]])


async def topic(asked: Asked) -> Answer:
    return _topic_as_json(asked, _topic(asked))


async def delete(asked: Asked) -> Answer:
    await asked.controls.delete_topic(_topic(asked).name)
    return None


async def records(asked: Asked) -> Answer:
    name, partition = _topic(asked).name, asked.whole("partition")
    first, limit = asked.whole("offset") or 0, asked.whole("limit")
    found = [
        each
        for each in asked.controls.records(name, committed=asked.switch("committed"))
        if partition in (None, each.partition) and each.offset >= first
    ]
    return [record_as_json(each) for each in found[: MOST_RECORDS if limit is None else limit]]


async def append(asked: Asked) -> Answer:
    given = await asked.json()
    many = given if isinstance(given, list) else [given]
    try:
        found = [record_of_json(each, asked.path("topic")) for each in many]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise Refused(400, f"this is no record: {error}") from None
    return {"count": await asked.controls.append(found)}


# ---------------------------------------------------------------- what clients have asked


def seen_as_json(seen: SeenRequest) -> dict[str, Any]:
    answer = None if seen.answer is None else plain(seen.answer, seen.version, is_secret)
    return {
        "api": seen.api,
        "version": seen.version,
        "time_ms": seen.time_ms,
        "size": seen.size,
        "connection": seen.connection,
        "client_id": seen.client_id,
        "client_software_name": seen.client_software_name,
        "client_software_version": seen.client_software_version,
        "error": seen.error,
        "request": plain(seen.request, seen.version, is_secret),
        "answer": answer,
    }


async def record_requests(asked: Asked) -> Answer:
    asked.controls.faults.record().clear()
    return None


async def requests(asked: Asked) -> Answer:
    seen = asked.controls.faults.watch.seen
    if seen is None:
        raise Refused(409, "no requests are recorded: POST /requests before the client sends them")
    found = seen.find(canonical(asked.query("api")), asked.query("client_id"))
    if asked.switch("count"):
        return {"count": len(found)}
    return [seen_as_json(each) for each in found[: asked.whole("limit")]]


async def stop_recording(asked: Asked) -> Answer:
    asked.controls.faults.stop_recording()
    return None


async def connections(asked: Asked) -> Answer:
    return [each._asdict() for each in asked.controls.faults.connections()]


PARTITION: Final = fields(
    partition=WHOLE, leader=WHOLE, replicas=array(WHOLE), isr=array(WHOLE), start_offset=WHOLE, end_offset=WHOLE
)
TOPIC: Final = fields(("name",), name=TEXT, id=TEXT, partitions=array(PARTITION), configs=fields())
NEW_TOPIC: Final = fields(("name",), name=TEXT, partitions=WHOLE, configs=fields())
RECORD: Final = fields(
    topic=TEXT, partition=WHOLE, offset=WHOLE, timestamp=WHOLE, key=TEXT, key_base64=TEXT, value=TEXT,
    value_base64=TEXT, headers=array(fields(("name",), name=TEXT, value=TEXT, value_base64=TEXT)),
)  # fmt: skip
SEEN: Final = fields(
    api=TEXT, version=WHOLE, time_ms=WHOLE, size=WHOLE, connection=WHOLE, client_id=TEXT, client_software_name=TEXT,
    client_software_version=TEXT, error=TEXT, request=fields(), answer=fields(),
)  # fmt: skip
CONNECTION: Final = fields(
    number=WHOLE, host=TEXT, port=WHOLE, principal=TEXT, client_software_name=TEXT, client_software_version=TEXT
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
    Endpoint("POST", "/reset", reset, "Empty the broker: what it had at its start is left", status=204),
    Endpoint("POST", "/states", save, "Save topics, records, groups and the rest", answers=STATE, status=201),
    Endpoint("GET", "/states/{id}", download, "A saved state, to be kept in a file", answers=ZIP,
             answer_type="application/zip"),
    Endpoint("PUT", "/states/{id}", upload, "A saved state from a file", body=ZIP, body_types=("application/zip",),
             answers=STATE),
    Endpoint("DELETE", "/states/{id}", drop, "Forget a saved state", status=204),
    Endpoint("POST", "/states/{id}/restore", restore, "Replace what the broker has by what was saved", status=204),
    Endpoint("GET", "/topics", topics, "The topics", answers=array(TOPIC),
             query={"internal": (SWITCH, "with the broker's own")}),
    Endpoint("POST", "/topics", create, "Create a topic", body=NEW_TOPIC, answers=TOPIC, status=201),
    Endpoint("GET", "/topics/{topic}", topic, "A topic", answers=TOPIC),
    Endpoint("DELETE", "/topics/{topic}", delete, "Delete a topic", status=204),
    Endpoint("GET", "/topics/{topic}/records", records, "Its records by partition and offset", query=WHICH_RECORDS,
             answers=array(RECORD)),
    Endpoint("POST", "/topics/{topic}/records", append, "Append a record, or an array of them", body=array(RECORD),
             answers=fields(count=WHOLE), status=201),
    Endpoint("POST", "/requests", record_requests, "Record requests from now on", status=204),
    Endpoint("GET", "/requests", requests, "The requests that were recorded, with their answers",
             query={**WHICH, "limit": (WHOLE, ""), "count": (SWITCH, "only how many")}, answers=array(SEEN)),
    Endpoint("DELETE", "/requests", stop_recording, "Record no requests any more", status=204),
    Endpoint("GET", "/connections", connections, "The open connections", answers=array(CONNECTION)),
)  # fmt: skip
