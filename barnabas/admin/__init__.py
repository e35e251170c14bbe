"""The admin API: tests in any language control a running broker by HTTP and JSON.

Knows nothing of the protocol of Kafka; :mod:`barnabas.testing.controls` carries out the requests.
"""
