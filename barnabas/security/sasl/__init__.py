"""SASL: a module for each mechanism, and what they share.

Knows nothing of sockets or of Kafka's requests: an exchange takes the client's tokens and returns the server's.
"""
