"""The admin API: what a test in any language does to a running broker, by HTTP and JSON.

Knows nothing of the protocol of Kafka; :mod:`barnabas.testing.controls` carries out the requests.
"""
