"""The controller: turns commands into records of the metadata log.

Knows nothing of requests, or of how the quorum commits.
"""
