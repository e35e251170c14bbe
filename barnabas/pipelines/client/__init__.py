"""A cluster as a worker of Spark sees it: where partitions are led, what they hold, how to read and write them.

Connections, TLS, SASL and the encoding of requests are kafka-python's. Knows nothing of Spark.
"""
