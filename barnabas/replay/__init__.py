"""Replay: requests that a proxy recorded are sent again, and the answers are compared.

Knows nothing of how they were recorded but the form of the recording.
"""
