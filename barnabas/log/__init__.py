"""The log of each partition, in segments, under Kafka's own file names and in Kafka's own bytes.

Knows nothing of requests, sockets, leaders or replicas: it is told which offset is committed.
"""
