"""Sockets: listeners, connections, and the way of a frame to its handler and of the answer back.

Knows nothing of topics, groups or logs.
"""
