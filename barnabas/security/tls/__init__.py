"""TLS: key and trust stores, contexts made of a listener's configs, and the names of clients with certificates.

Knows nothing of sockets, nor of where files are: it is given a function that reads one. Nothing of it is imported
before a listener needs it: ``cryptography`` takes long to import.
"""
