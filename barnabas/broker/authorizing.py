"""The authorizer of a node: made as the configs say, and kept in step with the ACLs in the image.

Knows nothing of requests, nor of how the authorizer decides. Apache Kafka's ``AclPublisher``.
"""

from typing import TYPE_CHECKING

from barnabas.cluster.image.image import MetadataDelta, MetadataImage
from barnabas.config import BrokerConfig
from barnabas.config.authorization import allows_everyone, super_users

if TYPE_CHECKING:
    from barnabas.security.authorizer import Authorizer


def new_authorizer(config: BrokerConfig, image: MetadataImage) -> "Authorizer | None":
    """Returns the authorizer with the ACLs of the image; None if ``authorizer.class.name`` is empty."""
    if not config["authorizer.class.name"]:
        return None
    from barnabas.security.authorizer import Authorizer

    authorizer = Authorizer(
        super_users(config.originals), allow_everyone_if_no_acl_found=allows_everyone(config.originals)
    )
    authorizer.change(added=image.acl_ids)
    return authorizer


def follow(authorizer: "Authorizer", image: MetadataImage, delta: MetadataDelta) -> None:
    """Applies the ACLs that were added and removed. They count from the next request on, on open connections too."""
    if delta.new_acls or delta.removed_acls:
        # One that was removed and added again in the same delta is there.
        removed = [acl for acl in delta.removed_acls if acl not in image.acl_ids]
        authorizer.change(added=delta.new_acls, removed=removed)
