"""The handlers of requests: one module for each API, named like the module of its messages.

A handler turns a request into calls of the broker, and their results into a response. It knows nothing of sockets and
files. :mod:`barnabas.api_handlers.registry` lists the APIs.
"""
