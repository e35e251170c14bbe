"""Metrics of requests, and of the state of a node, for Prometheus (``barnabas.metrics.listener``).

Knows nothing of how requests are answered. This package is imported only if the config is set.
"""
