"""ApiVersions (API key 18): what is registered is what is promised.

Knows nothing of what any API does.
"""

import re

from barnabas.api_handlers.context import Context
from barnabas.api_handlers.registry import api
from barnabas.errors import InvalidRequest, UnsupportedVersion
from barnabas.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse

SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?").fullmatch
"""What a client's name and version may look like (KIP-511)."""

SAYS_ITS_SOFTWARE = 3
"""From this version on clients say which software they are."""

TAKES_MINIMUM_ZERO = 4
"""From this version on features whose minimum is 0 are told; older clients cannot read them (KAFKA-17011)."""

NO_EPOCH = -1
"""Of the finalized features, where there are none."""


@api(ApiVersionsRequest)
def api_versions(request: ApiVersionsRequest, context: Context) -> ApiVersionsResponse:
    """Tell the APIs, their versions, and the features of the cluster."""
    version = context.api_version
    if version >= SAYS_ITS_SOFTWARE and not (
        SOFTWARE(request.client_software_name) and SOFTWARE(request.client_software_version)
    ):
        return ApiVersionsResponse(error_code=InvalidRequest.code, api_keys=[])
    broker, session = context.broker, context.session
    if version >= SAYS_ITS_SOFTWARE:
        session.client_software_name = request.client_software_name
        session.client_software_version = request.client_software_version
    features, epoch = broker.supported_features, broker.image.offset
    apis, release = session.promise
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
            if levels.first > 0 or version >= TAKES_MINIMUM_ZERO
        ],
        finalized_features_epoch=epoch,
        finalized_features=[
            ApiVersionsResponse.FinalizedFeatureKey(name=name, max_version_level=level, min_version_level=level)
            for name, level in finalized.items()
        ],
    )


def unsupported_version(context: Context) -> ApiVersionsResponse:
    """What every client can read, whatever version it asked for (KIP-511): it was the wrong one, and these are right.

    It goes out in version 0.
    """
    mine = context.session.promise.apis[ApiVersionsRequest.api_key].versions
    return ApiVersionsResponse(
        error_code=UnsupportedVersion.code,
        api_keys=[
            ApiVersionsResponse.ApiVersion(
                api_key=ApiVersionsRequest.api_key, min_version=mine.first, max_version=mine.last
            )
        ],
    )
