"""The SCRAM credentials of users and delegation tokens, as the metadata image has them.

Knows nothing of SASL exchanges.
"""

from collections.abc import Callable

from barnabas.clock import Clock
from barnabas.cluster.image.image import MetadataImage
from barnabas.security.sasl.scram import CODES, ScramCredential, TokenCredential
from barnabas.security.sasl.token_credentials import TokenCredentials


class ImageCredentials:
    """The :class:`~barnabas.security.sasl.scram.Credentials` of the newest committed image.

    :param secret_key: the secret key of delegation tokens; None if there are none
    """

    def __init__(
        self,
        image: Callable[[], MetadataImage],
        clock: Clock,
        random_bytes: Callable[[int], bytes],
        secret_key: str | None,
    ) -> None:
        self._image = image
        self._clock = clock
        self._tokens = None if secret_key is None else TokenCredentials(secret_key, random_bytes)

    def of_user(self, name: str, mechanism: str) -> ScramCredential | None:
        """Returns the user's credential for the mechanism, or None."""
        found = self._image().credentials.get((name, CODES[mechanism]))
        if found is None:
            return None
        return ScramCredential(found.salt, found.stored_key, found.server_key, found.iterations)

    def of_token(self, token_id: str, mechanism: str) -> TokenCredential | None:
        """Returns the token's credential for the mechanism; None if the token does not exist or has expired."""
        if self._tokens is None:
            return None
        return self._tokens.of(self._image().tokens.get(token_id), mechanism, self._clock.time_ms())
