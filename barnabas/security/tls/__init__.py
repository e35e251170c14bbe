"""TLS: key and trust stores, contexts for the configs of a listener, and the names of clients with certificates.

Knows nothing of sockets and directories: a function that reads a file is passed in. It is imported when a listener
needs it, since importing ``cryptography`` takes long.
"""
