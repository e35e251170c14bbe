"""The offsets that groups commit, and their records in ``__consumer_offsets``.

Knows nothing of members, requests or logs: a group is only an id here.
"""
