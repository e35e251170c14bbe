"""The endpoints of the registry, by method and path.

Knows nothing of sockets, nor of how the registry decides. The paths are those of Confluent's API.
"""

from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Final

from barnabas import __version__
from barnabas.registry.errors import INVALID_SCHEMA, RegistryError, error
from barnabas.registry.formats import MODULES
from barnabas.registry.registry import Wanted
from barnabas.registry.registry_request import RegistryRequest
from barnabas.registry.store import Version
from barnabas.registry.subjects import matches, split, within

Answer = Any
Endpoint = Callable[[RegistryRequest], Awaitable[Answer]]


class Text(str):
    """A response that is a schema itself, not an object."""


def described(request: RegistryRequest, version: Version) -> dict[str, Any]:
    """Returns a version in the form of a response."""
    content = version.content._replace(schema=text_of(request, version))
    return {
        "subject": version.subject,
        "version": version.version,
        "id": version.id,
        "guid": version.content.guid,
        **content.as_json(),
        **({"deleted": True} if version.deleted else {}),
    }


def text_of(request: RegistryRequest, version: Version) -> str:
    wanted = request.query("format")
    if not wanted:
        return version.content.schema
    return request.registry.parse(version.subject, version.content).formatted(wanted)


# ---------------------------------------------------------------- subjects


async def subjects(request: RegistryRequest) -> Answer:
    store = request.registry.store
    found = store.subjects(deleted=request.switch("deleted") or request.switch("deletedOnly"))
    if request.switch("deletedOnly"):
        found = [each for each in found if not store.versions(each)]
    return request.page([each for each in found if matches(each, request.prefix)])


async def lookup(request: RegistryRequest) -> Answer:
    content = request.content(await request.body())
    found = request.registry.lookup(
        request.subject, content, normalize=request.switch("normalize"), deleted=request.switch("deleted")
    )
    return described(request, found)


async def delete_subject(request: RegistryRequest) -> Answer:
    return await request.registry.delete_subject(request.subject, permanent=request.switch("permanent"))


async def versions(request: RegistryRequest) -> Answer:
    only = request.switch("deletedOnly")
    found = request.registry.versions(request.subject, deleted=only or request.switch("deleted"))
    return request.page([each.version for each in found if each.deleted or not only])


async def register(request: RegistryRequest) -> Answer:
    body = await request.body()
    wanted = Wanted(request.content(body), whole(body, "id", -1), max(whole(body, "version", 0), 0))
    made = await request.registry.register(request.subject, wanted, normalize=request.switch("normalize"))
    answer = {"id": made.id, "version": made.version, "guid": made.content.guid}
    if request.query("format"):  # clients keep the text of the response; without a format they keep their own
        answer["schema"] = text_of(request, made)
    return answer


def whole(body: dict[str, Any], name: str, default: int) -> int:
    found = body.get(name)
    if found is None:
        return default
    if not isinstance(found, int) or isinstance(found, bool):
        raise error("unprocessable", f"{name} has to be a whole number")
    return found


async def version(request: RegistryRequest) -> Answer:
    return described(request, _version(request))


def _version(request: RegistryRequest) -> Version:
    return request.registry.version(request.subject, request.path("version"), deleted=request.switch("deleted"))


async def version_schema(request: RegistryRequest) -> Answer:
    return Text(text_of(request, _version(request)))


async def referenced_by(request: RegistryRequest) -> Answer:
    return request.page([each.id for each in request.registry.referrers(_version(request))])


async def delete_version(request: RegistryRequest) -> Answer:
    permanent = request.switch("permanent")
    return await request.registry.delete_version(request.subject, request.path("version"), permanent=permanent)


async def latest_with_metadata(request: RegistryRequest) -> Answer:
    keys, values = (request.http.query_params.getlist(each) for each in ("key", "value"))
    wanted = dict(zip(keys, values, strict=False))
    for each in reversed(request.registry.versions(request.subject, deleted=request.switch("deleted"))):
        properties = (each.content.as_json().get("metadata") or {}).get("properties") or {}
        if wanted.items() <= properties.items():
            return described(request, each)
    raise error("schema_not_found", "")


# ---------------------------------------------------------------- schemas


async def schemas(request: RegistryRequest) -> Answer:
    store, deleted = request.registry.store, request.switch("deleted")
    found: Iterable[Version] = store.all_versions(deleted=deleted)
    found = [each for each in found if matches(each.subject, request.prefix)]
    if request.switch("latestOnly"):
        found = {each.subject: each for each in found}.values()
    return [described(request, each) for each in request.page(list(found))]


async def types(request: RegistryRequest) -> Answer:
    return sorted(MODULES, reverse=True)


def _with_id(request: RegistryRequest, *, deleted: bool) -> list[Version]:
    text = request.path("id")
    if not text.isdecimal():
        raise error("schema_not_found", f"{text} ")
    found = request.registry.with_id(int(text), _named(request))
    return [each for each in found if deleted or not each.deleted]


def _named(request: RegistryRequest) -> str:
    return within(request.query("subject"), request.context)


async def by_id(request: RegistryRequest) -> Answer:
    found = _with_id(request, deleted=True)
    first = found[0]
    answer = first.content._replace(schema=text_of(request, first)).as_json()
    answer["guid"] = first.content.guid
    if request.switch("fetchMaxId"):
        answer["maxId"] = request.registry.store.max_id(split(first.subject)[0])
    return answer


async def text_by_id(request: RegistryRequest) -> Answer:
    return Text(text_of(request, _with_id(request, deleted=True)[0]))


async def subjects_of_id(request: RegistryRequest) -> Answer:
    found = _with_id(request, deleted=request.switch("deleted"))
    return request.page(list(dict.fromkeys(each.subject for each in found)))


async def versions_of_id(request: RegistryRequest) -> Answer:
    found = _with_id(request, deleted=request.switch("deleted"))
    return request.page([{"subject": each.subject, "version": each.version} for each in found])


def _with_guid(request: RegistryRequest) -> list[tuple[str, Version]]:
    found = request.registry.store.with_guid(request.path("guid").lower())
    if not found:
        raise error("schema_not_found", f"{request.path('guid')} ")
    return found


async def by_guid(request: RegistryRequest) -> Answer:
    ((_, first), *_) = _with_guid(request)
    return {"guid": first.content.guid, **first.content._replace(schema=text_of(request, first)).as_json()}


async def ids_of_guid(request: RegistryRequest) -> Answer:
    return [{"context": context, "id": each.id} for context, each in _with_guid(request)]


# ---------------------------------------------------------------- compatibility


async def compatible_with_version(request: RegistryRequest) -> Answer:
    return await _compatible(request, request.path("version"))


async def compatible(request: RegistryRequest) -> Answer:
    return await _compatible(request, None)


async def _compatible(request: RegistryRequest, text: str | None) -> Answer:
    content = request.content(await request.body())
    is_verbose = request.switch("verbose")
    try:
        found = request.registry.check(request.subject, content, text, normalize=request.switch("normalize"))
    except RegistryError as why:
        if not (is_verbose and why.code == INVALID_SCHEMA):
            raise
        found = [str(why)]
    return {"is_compatible": not found, **({"messages": found} if is_verbose else {})}


# ---------------------------------------------------------------- configs and modes


async def config(request: RegistryRequest) -> Answer:
    return request.registry.config(request.subject_or_none, with_global=request.switch("defaultToGlobal"))


async def set_config(request: RegistryRequest) -> Answer:
    body = await request.body()
    await request.registry.set_config(request.subject_or_none, body)
    if body.get("compatibility") is not None:
        body["compatibility"] = str(body["compatibility"]).upper()
    return body


async def delete_config(request: RegistryRequest) -> Answer:
    return await request.registry.delete_config(request.subject_or_none)


async def mode(request: RegistryRequest) -> Answer:
    return {"mode": request.registry.mode(request.subject_or_none, with_global=request.switch("defaultToGlobal"))}


async def set_mode(request: RegistryRequest) -> Answer:
    given = (await request.body()).get("mode")
    return {"mode": await request.registry.set_mode(request.subject_or_none, given, force=request.switch("force"))}


async def delete_mode(request: RegistryRequest) -> Answer:
    return {"mode": await request.registry.delete_mode(request.subject_or_none)}


# ---------------------------------------------------------------- the rest


async def contexts(request: RegistryRequest) -> Answer:
    return request.page(request.registry.store.contexts())


async def delete_context(request: RegistryRequest) -> Answer:
    request.registry.check_context_empty(request.path("context"))
    return None


async def root(request: RegistryRequest) -> Answer:
    return {}


async def metadata_id(request: RegistryRequest) -> Answer:
    clusters = {"kafka-cluster": request.registry.cluster_id, "schema-registry-cluster": "schema-registry"}
    return {"id": "", "scope": {"path": [], "clusters": clusters}}


async def metadata_version(request: RegistryRequest) -> Answer:
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
    "/v1/metadata/id": {"GET": metadata_id},
    "/v1/metadata/version": {"GET": metadata_version},
}
"""By path and method."""
