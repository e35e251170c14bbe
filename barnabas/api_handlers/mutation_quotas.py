"""The quota of a client for changes of the cluster (KIP-599).

Knows nothing of what is changed.
"""

from barnabas.api_handlers.context import Context
from barnabas.cluster.controller.commands.topics import NO_QUOTA, MutationQuota


def mutation_quota(context: Context, *, strict_since: int = 0, throttles: bool = True) -> MutationQuota:
    """Returns the client's quota for changes of the cluster.

    :param strict_since: the version from which on clients know THROTTLING_QUOTA_EXCEEDED; others are only throttled
    :param throttles: whether the client is throttled for its changes, and for refused ones
    """
    if context.meter is None:
        return NO_QUOTA
    return context.meter.mutations(is_strict=context.api_version >= strict_since, throttles=throttles) or NO_QUOTA
