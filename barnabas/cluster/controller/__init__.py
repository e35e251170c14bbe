"""The controller: turns commands into records of the metadata log.

Knows nothing of requests, nor of how the quorum commits records.
"""
