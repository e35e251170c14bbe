"""The controller's commands about ACLs.

Knows nothing of requests and decisions.
"""

from collections.abc import Sequence
from typing import NamedTuple

from barnabas.security.acls import Acl, AclFilter


class CreateAcls(NamedTuple):
    """Creates ACLs. The result has an error or None for each."""

    acls: Sequence[Acl]


class DeleteAcls(NamedTuple):
    """Deletes ACLs. The result has the deleted ACLs, or an error, for each filter."""

    filters: Sequence[AclFilter]
