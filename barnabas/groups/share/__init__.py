"""Share groups at the group coordinator (KIP-932): members, assignments, and which share partitions have state.

Knows nothing of records that are acquired or acknowledged: partition leaders keep them in memory, with ``share/``.
"""
