"""Clients and tools of other projects, over TLS and SASL."""
