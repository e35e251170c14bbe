"""Pages on the cluster and its topics: overview, changes of configs, creation and deletion of topics.

Knows nothing of records.
"""

from typing import Any, Final

import click

from barnabas.cli.client import error_text, results_of
from barnabas.console import reading
from barnabas.console.filters import part
from barnabas.console.page import Answer, Moved, PageRequest, Route, Routes, Shown

TOPICS_ON_A_PAGE: Final = 50
PARTITIONS_ON_A_PAGE: Final = 100


def overview(request: PageRequest) -> Answer:
    return Shown("overview.html", {"cluster": reading.overview(request.sources.client)})


def topics(request: PageRequest) -> Answer:
    search = request.text("search")
    page = reading.topics(request.sources.client, search, request.whole("page", 1), TOPICS_ON_A_PAGE)
    return Shown("topics.html", {"page": page, "search": search})


def topic(request: PageRequest) -> Answer:
    found = reading.topic(request.sources.client, request.path["topic"], request.whole("page", 1), PARTITIONS_ON_A_PAGE)
    return Shown("topic.html", {"topic": found, "page": found["page"], "editing": request.text("config")})


def alter_config(request: PageRequest) -> Answer:
    """Sets a config of the topic, or resets it to the default."""
    name, config = request.path["topic"], request.text("config")
    change = ("DELETE", None) if "reset" in request.form else ("SET", request.form.get("value", ""))
    with request.sources.client.admin() as admin:
        alter(admin, "TOPIC", name, {config: change})
    return Moved(f"/topics/{part(name)}#{part(config)}")


def alter(admin: Any, kind: str, name: str, changes: dict[str, tuple[str, str | None]]) -> None:
    """Changes configs of a topic or a broker. :raises click.ClickException: the broker refuses the change"""
    from kafka.admin import ConfigResource

    resource = ConfigResource(kind, name, changes)
    answer = admin.alter_configs([resource], raise_on_unknown=False, incremental=True)[kind.lower()][name]
    if answer != "OK":
        raise click.ClickException(error_text(answer))


def create(request: PageRequest) -> Answer:
    name = request.text("name")
    options: dict[str, object] = {"num_partitions": request.whole("partitions") or -1, "replication_factor": -1}
    if request.whole("replicas"):
        options["replication_factor"] = request.whole("replicas")
    lines = [each for each in request.text("configs").splitlines() if each.strip()]
    if any("=" not in each for each in lines):
        raise ValueError("Each line of the configs has to be name=value.")
    pairs = [each.partition("=") for each in lines]
    options["configs"] = {config.strip(): value.strip() for config, _, value in pairs}
    with request.sources.client.admin() as admin:
        results_of(admin.create_topics({name: options}, raise_errors=False))
        admin.wait_for_topics([name])
    return Moved(f"/topics/{part(name)}")


def new(request: PageRequest) -> Answer:
    return Shown("new_topic.html", {})


def ask_delete(request: PageRequest) -> Answer:
    """Shows what would be deleted, and requires the topic's name."""
    found = reading.destroyed(request.sources.client, request.path["topic"])
    return Shown("delete_topic.html", {"topic": found, "is_wrong": False})


def delete(request: PageRequest) -> Answer:
    name = request.path["topic"]
    if request.form.get("name", "").strip() != name:
        found = reading.destroyed(request.sources.client, name)
        return Shown("delete_topic.html", {"topic": found, "is_wrong": True}, 400)
    with request.sources.client.admin() as admin:
        results_of(admin.delete_topics([name], raise_errors=False))
    return Moved("/topics")


ROUTES: Final[Routes] = (
    Route("/", overview),
    Route("/topics", topics),
    Route("/topics", create, "POST"),
    Route("/new-topic", new),
    Route("/topics/{topic}", topic),
    Route("/topics/{topic}/configs", alter_config, "POST"),
    Route("/topics/{topic}/delete", ask_delete),
    Route("/topics/{topic}/delete", delete, "POST"),
)
