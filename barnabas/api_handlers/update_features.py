"""UpdateFeatures (API key 57): changes the finalized levels of features.

Knows nothing of which changes are allowed: the controller decides.
"""

from barnabas.api_handlers.answering import Later
from barnabas.api_handlers.context import Context
from barnabas.api_handlers.registry import api
from barnabas.api_handlers.submitting import submit
from barnabas.cluster.controller.commands.features import FeatureUpdate, UpdateFeatures
from barnabas.errors import NONE
from barnabas.wire.messages.update_features import UpdateFeaturesRequest, UpdateFeaturesResponse

Result = UpdateFeaturesResponse.UpdatableFeatureResult

DONE = "NONE"
"""The error message of a result without an error, as in Apache Kafka."""


@api(UpdateFeaturesRequest)
def update_features(
    request: UpdateFeaturesRequest, context: Context
) -> UpdateFeaturesResponse | Later[UpdateFeaturesResponse]:
    """Updates all features, or none. Of two levels for the same feature the last one counts.

    Version 0 cannot downgrade: Apache Kafka's controller ignores ``AllowDowngrade``. It ignores the timeout, too.
    """
    updates = {
        each.feature: FeatureUpdate(each.feature, each.max_version_level, each.upgrade_type)
        for each in request.feature_updates
    }

    def respond(nothing: None) -> UpdateFeaturesResponse:
        results = [
            Result(feature=each.feature, error_code=NONE, error_message=DONE) for each in request.feature_updates
        ]
        return UpdateFeaturesResponse(error_code=NONE, error_message=None, results=results)

    return submit(UpdateFeatures(list(updates.values()), request.validate_only), request, context, respond)
