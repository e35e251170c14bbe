"""The quorum of controllers: the replicated metadata log, its leader, and its snapshots.

Knows nothing of metadata records: the controller writes them and the loader applies them.
"""
