"""Metrics: what requests did, and the state of a node, as Prometheus scrapes it (``barnabas.metrics.listener``).

Knows nothing of how requests are answered. Nothing of it is imported while the config is not set.
"""
