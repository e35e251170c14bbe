"""The endpoints of the registry: what each method of each path answers.

Knows nothing of sockets, and of what the registry decides only the results. The paths are those of Confluent's API.
"""

from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Final

from barnabas import __version__
from barnabas.registry.asked import Asked
from barnabas.registry.errors import error
from barnabas.registry.formats import MODULES
from barnabas.registry.registry import Wanted
from barnabas.registry.store import Version
from barnabas.registry.subjects import matches, split, within

Answer = Any
Endpoint = Callable[[Asked], Awaitable[Answer]]


class Text(str):
    """An answer that is a schema itself, and no object."""


def told(asked: Asked, version: Version) -> dict[str, Any]:
    """Returns a version as it is answered."""
    content = version.content._replace(schema=text_of(asked, version))
    return {
        "subject": version.subject,
        "version": version.version,
        "id": version.id,
        "guid": version.content.guid,
        **content.as_json(),
        **({"deleted": True} if version.deleted else {}),
    }


def text_of(asked: Asked, version: Version) -> str:
    wanted = asked.query("format")
    if not wanted:
        return version.content.schema
    return asked.registry.parse(version.subject, version.content).formatted(wanted)


# ---------------------------------------------------------------- subjects


async def subjects(asked: Asked) -> Answer:
    store = asked.registry.store
    found = store.subjects(deleted=asked.switch("deleted") or asked.switch("deletedOnly"))
    if asked.switch("deletedOnly"):
        found = [each for each in found if not store.versions(each)]
    return asked.page([each for each in found if matches(each, asked.prefix)])


async def lookup(asked: Asked) -> Answer:
    content = asked.content(await asked.body())
    found = asked.registry.lookup(
        asked.subject, content, normalize=asked.switch("normalize"), deleted=asked.switch("deleted")
    )
    return told(asked, found)


async def delete_subject(asked: Asked) -> Answer:
    return await asked.registry.delete_subject(asked.subject, permanent=asked.switch("permanent"))


async def versions(asked: Asked) -> Answer:
    only = asked.switch("deletedOnly")
    found = asked.registry.versions(asked.subject, deleted=only or asked.switch("deleted"))
    return asked.page([each.version for each in found if each.deleted or not only])


async def register(asked: Asked) -> Answer:
    body = await asked.body()
    wanted = Wanted(asked.content(body), whole(body, "id", -1), max(whole(body, "version", 0), 0))
    made = await asked.registry.register(asked.subject, wanted, normalize=asked.switch("normalize"))
    answer = {"id": made.id, "version": made.version, "guid": made.content.guid}
    if asked.query("format"):  # clients keep the text that is answered; without a format they keep their own
        answer["schema"] = text_of(asked, made)
    return answer


def whole(body: dict[str, Any], name: str, default: int) -> int:
    found = body.get(name)
    if found is None:
        return default
    if not isinstance(found, int) or isinstance(found, bool):
        raise error("unprocessable", f"{name} has to be a whole number")
    return found


async def version(asked: Asked) -> Answer:
    return told(asked, _version(asked))


def _version(asked: Asked) -> Version:
    return asked.registry.version(asked.subject, asked.path("version"), deleted=asked.switch("deleted"))


async def version_schema(asked: Asked) -> Answer:
    return Text(text_of(asked, _version(asked)))


async def referenced_by(asked: Asked) -> Answer:
    return asked.page([each.id for each in asked.registry.referrers(_version(asked))])


async def delete_version(asked: Asked) -> Answer:
    permanent = asked.switch("permanent")
    return await asked.registry.delete_version(asked.subject, asked.path("version"), permanent=permanent)


async def latest_with_metadata(asked: Asked) -> Answer:
    keys, values = (asked.request.query_params.getlist(each) for each in ("key", "value"))
    wanted = dict(zip(keys, values, strict=False))
    for each in reversed(asked.registry.versions(asked.subject, deleted=asked.switch("deleted"))):
        properties = (each.content.as_json().get("metadata") or {}).get("properties") or {}
        if wanted.items() <= properties.items():
            return told(asked, each)
    raise error("schema_not_found", "")


# ---------------------------------------------------------------- schemas


async def schemas(asked: Asked) -> Answer:
    store, deleted = asked.registry.store, asked.switch("deleted")
    found: Iterable[Version] = store.all_versions(deleted=deleted)
    found = [each for each in found if matches(each.subject, asked.prefix)]
    if asked.switch("latestOnly"):
        found = {each.subject: each for each in found}.values()
    return [told(asked, each) for each in asked.page(list(found))]


async def types(asked: Asked) -> Answer:
    return sorted(MODULES, reverse=True)


def _with_id(asked: Asked, *, deleted: bool) -> list[Version]:
    text = asked.path("id")
    if not text.isdecimal():
        raise error("schema_not_found", f"{text} ")
    found = asked.registry.with_id(int(text), _named(asked))
    return [each for each in found if deleted or not each.deleted]


def _named(asked: Asked) -> str:
    return within(asked.query("subject"), asked.context)


async def by_id(asked: Asked) -> Answer:
    found = _with_id(asked, deleted=True)
    first = found[0]
    answer = first.content._replace(schema=text_of(asked, first)).as_json()
    answer["guid"] = first.content.guid
    if asked.switch("fetchMaxId"):
        answer["maxId"] = asked.registry.store.max_id(split(first.subject)[0])
    return answer


async def text_by_id(asked: Asked) -> Answer:
    return Text(text_of(asked, _with_id(asked, deleted=True)[0]))


async def subjects_of_id(asked: Asked) -> Answer:
    found = _with_id(asked, deleted=asked.switch("deleted"))
    return asked.page(list(dict.fromkeys(each.subject for each in found)))


async def versions_of_id(asked: Asked) -> Answer:
    found = _with_id(asked, deleted=asked.switch("deleted"))
    return asked.page([{"subject": each.subject, "version": each.version} for each in found])


def _with_guid(asked: Asked) -> list[tuple[str, Version]]:
    found = asked.registry.store.with_guid(asked.path("guid").lower())
    if not found:
        raise error("schema_not_found", f"{asked.path('guid')} ")
    return found


async def by_guid(asked: Asked) -> Answer:
    ((_, first), *_) = _with_guid(asked)
    return {"guid": first.content.guid, **first.content._replace(schema=text_of(asked, first)).as_json()}


async def ids_of_guid(asked: Asked) -> Answer:
    return [{"context": context, "id": each.id} for context, each in _with_guid(asked)]


# ---------------------------------------------------------------- compatibility


async def compatible_with_version(asked: Asked) -> Answer:
    return await _compatible(asked, asked.path("version"))


async def compatible(asked: Asked) -> Answer:
    return await _compatible(asked, None)


async def _compatible(asked: Asked, text: str | None) -> Answer:
    content = asked.content(await asked.body())
    found = asked.registry.check(asked.subject, content, text, normalize=asked.switch("normalize"))
    return {"is_compatible": not found, **({"messages": found} if asked.switch("verbose") else {})}


# ---------------------------------------------------------------- configs and modes


async def config(asked: Asked) -> Answer:
    return asked.registry.config(asked.subject_or_none, with_global=asked.switch("defaultToGlobal"))


async def set_config(asked: Asked) -> Answer:
    body = await asked.body()
    await asked.registry.set_config(asked.subject_or_none, body)
    if "compatibility" in body:
        body["compatibility"] = str(body["compatibility"]).upper()
    return body


async def delete_config(asked: Asked) -> Answer:
    return await asked.registry.delete_config(asked.subject_or_none)


async def mode(asked: Asked) -> Answer:
    return {"mode": asked.registry.mode(asked.subject_or_none, with_global=asked.switch("defaultToGlobal"))}


async def set_mode(asked: Asked) -> Answer:
    given = (await asked.body()).get("mode")
    return {"mode": await asked.registry.set_mode(asked.subject_or_none, given, force=asked.switch("force"))}


async def delete_mode(asked: Asked) -> Answer:
    return {"mode": await asked.registry.delete_mode(asked.subject_or_none)}


# ---------------------------------------------------------------- the rest


async def contexts(asked: Asked) -> Answer:
    return asked.page(asked.registry.store.contexts())


async def delete_context(asked: Asked) -> Answer:
    asked.registry.check_context_empty(asked.path("context"))
    return None


async def root(asked: Asked) -> Answer:
    return {}


async def metadata_version(asked: Asked) -> Answer:
    return {"version": __version__, "commitId": "barnabas"}


ENDPOINTS: Final[dict[str, dict[str, Endpoint]]] = {
    "/": {"GET": root},
    "/subjects": {"GET": subjects},
    "/subjects/{subject}": {"POST": lookup, "DELETE": delete_subject},
    "/subjects/{subject}/versions": {"GET": versions, "POST": register},
    "/subjects/{subject}/versions/{version}": {"GET": version, "DELETE": delete_version},
    "/subjects/{subject}/versions/{version}/schema": {"GET": version_schema},
    "/subjects/{subject}/versions/{version}/referencedby": {"GET": referenced_by},
    "/subjects/{subject}/metadata": {"GET": latest_with_metadata},
    "/schemas": {"GET": schemas},
    "/schemas/types": {"GET": types},
    "/schemas/ids/{id}": {"GET": by_id},
    "/schemas/ids/{id}/schema": {"GET": text_by_id},
    "/schemas/ids/{id}/subjects": {"GET": subjects_of_id},
    "/schemas/ids/{id}/versions": {"GET": versions_of_id},
    "/schemas/guids/{guid}": {"GET": by_guid},
    "/schemas/guids/{guid}/ids": {"GET": ids_of_guid},
    "/compatibility/subjects/{subject}/versions": {"POST": compatible},
    "/compatibility/subjects/{subject}/versions/{version}": {"POST": compatible_with_version},
    "/config": {"GET": config, "PUT": set_config, "DELETE": delete_config},
    "/config/{subject}": {"GET": config, "PUT": set_config, "DELETE": delete_config},
    "/mode": {"GET": mode, "PUT": set_mode, "DELETE": delete_mode},
    "/mode/{subject}": {"GET": mode, "PUT": set_mode, "DELETE": delete_mode},
    "/contexts": {"GET": contexts},
    "/contexts/{context}": {"DELETE": delete_context},
    "/v1/metadata/version": {"GET": metadata_version},
}
"""By path and method."""
