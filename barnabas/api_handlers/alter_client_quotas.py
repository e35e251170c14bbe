"""AlterClientQuotas (API key 49): sets and removes quotas, or only checks whether they can be set (KIP-546).

Knows nothing of the rules for quotas: the controller decides. Host names are looked up before, in a thread.
"""

from collections.abc import Collection, Mapping, Sequence

from barnabas.api_handlers.answering import Later
from barnabas.api_handlers.context import Context
from barnabas.api_handlers.error_responses import error_shape
from barnabas.api_handlers.outcome import code_of, text_of
from barnabas.api_handlers.registry import api
from barnabas.api_handlers.submitting import submit
from barnabas.cluster.controller.commands.quotas import AlterClientQuotas, AlteredQuotas, QuotaAlteration
from barnabas.errors import KafkaError
from barnabas.security.quotas.addresses import numeric_address
from barnabas.security.quotas.entities import IP
from barnabas.wire.messages.alter_client_quotas import AlterClientQuotasRequest, AlterClientQuotasResponse

Entry = AlterClientQuotasResponse.EntryData
Answer = AlterClientQuotasResponse | Later[AlterClientQuotasResponse]


@api(AlterClientQuotasRequest)
def alter_client_quotas(request: AlterClientQuotasRequest, context: Context) -> Answer:
    """Changes the quotas of each entity independently of the others."""
    alterations = [
        QuotaAlteration(entity_of(entry), [(each.key, None if each.remove else each.value) for each in entry.ops])
        for entry in request.entries
    ]

    def change(unresolvable: Collection[str]) -> Answer:
        return submit(AlterClientQuotas(alterations, request.validate_only, unresolvable), request, context, respond)

    names = {each.entity.get(IP) or "" for each in alterations} - {""}
    hosts = [name for name in names if numeric_address(name) is None]
    if not hosts:
        return change(())
    later: Later[AlterClientQuotasResponse] = Later()

    def looked_up(addresses: Mapping[str, str | None]) -> None:
        answer = change([name for name, address in addresses.items() if address is None])
        if isinstance(answer, Later):
            answer.then(later.resolve)
        else:
            later.resolve(answer)

    context.broker.names.look_up(hosts, looked_up)
    return later


def entity_of(entry: AlterClientQuotasRequest.EntryData) -> dict[str, str | None]:
    """Returns the names of an entity by its types. Of a type that is given twice the last name counts."""
    return {each.entity_type: each.entity_name for each in entry.entity}


def respond(results: Sequence[AlteredQuotas]) -> AlterClientQuotasResponse:
    return AlterClientQuotasResponse(entries=[answer(each.entity, each.error) for each in results])


@error_shape(AlterClientQuotasRequest)
def refused(request: AlterClientQuotasRequest, error: KafkaError, version: int) -> AlterClientQuotasResponse:
    """Refuses each entity."""
    return AlterClientQuotasResponse(entries=[answer(entity_of(entry), error) for entry in request.entries])


def answer(entity: Mapping[str, str | None], error: KafkaError | None) -> Entry:
    return Entry(
        error_code=code_of(error),
        error_message=text_of(error),
        entity=[Entry.EntityData(entity_type=kind, entity_name=name) for kind, name in sorted(entity.items())],
    )
