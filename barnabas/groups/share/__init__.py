"""Share groups, the group's side (KIP-932): who is in them, and whose partitions each member reads.

Knows nothing of records that are acquired or acknowledged: the leaders of the partitions keep those, in ``share/``.
"""
