"""Faults on demand: rules that match requests, and what happens to those that they match.

Knows nothing of sockets. :mod:`barnabas.server.faulty` applies the rules while there are any.
"""
