"""Clients and tools that nobody here wrote, over TLS and SASL."""
