"""Replay: sends the requests of a recording again, and compares the responses.

Knows nothing of the proxy but the format of its recordings.
"""
