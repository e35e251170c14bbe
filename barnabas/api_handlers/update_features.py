"""UpdateFeatures (API key 57): the finalized levels of features go up and down.

Knows nothing of which level can follow on which: the controller does.
"""

from barnabas.api_handlers.answering import Later
from barnabas.api_handlers.context import Context
from barnabas.api_handlers.registry import api
from barnabas.api_handlers.submitting import submit
from barnabas.cluster.commands import FeatureUpdate, UpdateFeatures
from barnabas.errors import NONE
from barnabas.wire.messages.update_features import UpdateFeaturesRequest, UpdateFeaturesResponse

Result = UpdateFeaturesResponse.UpdatableFeatureResult

DONE = "NONE"
"""What Apache Kafka says where nothing is wrong: the name of that error."""


@api(UpdateFeaturesRequest)
def update_features(
    request: UpdateFeaturesRequest, context: Context
) -> UpdateFeaturesResponse | Later[UpdateFeaturesResponse]:
    """All or none. Of a feature that is named twice the last level counts.

    Version 0 cannot lower anything: what it has instead of an upgrade type Apache Kafka's controllers do not look at.
    The time that a client gives is not looked at either.
    """
    asked = {
        each.feature: FeatureUpdate(each.feature, each.max_version_level, each.upgrade_type)
        for each in request.feature_updates
    }

    def respond(nothing: None) -> UpdateFeaturesResponse:
        results = [
            Result(feature=each.feature, error_code=NONE, error_message=DONE) for each in request.feature_updates
        ]
        return UpdateFeaturesResponse(error_code=NONE, error_message=None, results=results)

    return submit(UpdateFeatures(list(asked.values()), request.validate_only), request, context, respond)
