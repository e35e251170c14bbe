"""How each request is answered: one module for each API, named like its message module.

A handler knows the protocol's meaning, and is the only place where the wire and the log meet; it must not know
sockets or files. The table of contents is in :mod:`barnabas.api_handlers.registry`.
"""
