"""ApiVersions (API key 18): the APIs that the broker answers, their versions, and the features of the cluster.

Knows nothing of what any API does.
"""

import re

from barnabas.api_handlers.context import Context
from barnabas.api_handlers.registry import api
from barnabas.errors import InvalidRequest, UnsupportedVersion
from barnabas.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse

SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?").fullmatch
"""The format of the name and the version of a client's software (KIP-511)."""

HAS_CLIENT_SOFTWARE = 3
"""The first version with the name and the version of the client's software."""

ALLOWS_MINIMUM_ZERO = 4
"""The first version with features whose minimum is 0; older clients cannot read these (KAFKA-17011)."""

NO_EPOCH = -1
"""The epoch of the finalized features if there are none."""


@api(ApiVersionsRequest)
def api_versions(request: ApiVersionsRequest, context: Context) -> ApiVersionsResponse:
    """Returns the APIs, their versions, and the features of the cluster."""
    version = context.api_version
    if version >= HAS_CLIENT_SOFTWARE and not (
        SOFTWARE(request.client_software_name) and SOFTWARE(request.client_software_version)
    ):
        return ApiVersionsResponse(error_code=InvalidRequest.code, api_keys=[])
    broker, session = context.broker, context.session
    if version >= HAS_CLIENT_SOFTWARE:
        session.client_software_name = request.client_software_name
        session.client_software_version = request.client_software_version
    features, epoch = broker.supported_features, broker.image.offset
    apis, release, _ = session.promise
    if context.is_elsewhere:
        from barnabas.api_handlers.forwarding import answerable

        apis = answerable(apis, broker.controller_channel.versions)
    if release is not None:
        from barnabas.api_handlers import releases

        features = releases.features(release, features)
        epoch = epoch if features else NO_EPOCH
    finalized = {
        name: min(level, features[name].last) for name, level in broker.finalized_features.items() if name in features
    }
    return ApiVersionsResponse(
        api_keys=[
            ApiVersionsResponse.ApiVersion(api_key=key, min_version=each.versions.first, max_version=each.versions.last)
            for key, each in sorted(apis.items())
        ],
        supported_features=[
            ApiVersionsResponse.SupportedFeatureKey(name=name, min_version=levels.first, max_version=levels.last)
            for name, levels in features.items()
            if levels.first > 0 or version >= ALLOWS_MINIMUM_ZERO
        ],
        finalized_features_epoch=epoch,
        finalized_features=[
            ApiVersionsResponse.FinalizedFeatureKey(name=name, max_version_level=level, min_version_level=level)
            for name, level in finalized.items()
        ],
    )


def unsupported_version(context: Context) -> ApiVersionsResponse:
    """Returns the response to an unsupported version, with the supported ones (KIP-511).

    It is encoded in version 0, which all clients can read.
    """
    supported = context.session.promise.apis[ApiVersionsRequest.api_key].versions
    return ApiVersionsResponse(
        error_code=UnsupportedVersion.code,
        api_keys=[
            ApiVersionsResponse.ApiVersion(
                api_key=ApiVersionsRequest.api_key, min_version=supported.first, max_version=supported.last
            )
        ],
    )
