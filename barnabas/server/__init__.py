"""The server: its services, listeners and connections, and how a frame reaches its handler.

Knows nothing of topics, groups or logs.
"""
