"""The SCRAM credentials of users, as the metadata image has them.

Knows nothing of SASL exchanges.
"""

from collections.abc import Callable

from barnabas.cluster.image.image import MetadataImage
from barnabas.security.sasl.scram import CODES, ScramCredential, TokenCredential


class ImageCredentials:
    """The :class:`~barnabas.security.sasl.scram.Credentials` of the newest committed image."""

    def __init__(self, image: Callable[[], MetadataImage]) -> None:
        self._image = image

    def of_user(self, name: str, mechanism: str) -> ScramCredential | None:
        """Returns the user's credential for the mechanism, or None."""
        found = self._image().credentials.get((name, CODES[mechanism]))
        if found is None:
            return None
        return ScramCredential(found.salt, found.stored_key, found.server_key, found.iterations)

    def of_token(self, token_id: str, mechanism: str) -> TokenCredential | None:
        """Returns None: there are no tokens."""
        return None
