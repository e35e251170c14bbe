"""The offsets that groups commit, and the records of ``__consumer_offsets`` that keep them.

Knows nothing of who is in a group, of requests or of logs: a group is a name here.
"""
