"""SASL: one module for each mechanism, and what they share.

Knows nothing of sockets or of Kafka's requests: an exchange takes the client's tokens and gives the server's.
"""
