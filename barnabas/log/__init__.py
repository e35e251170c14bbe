"""The logs of a broker: each partition's records in segments, with Kafka's file names and Kafka's file formats.

Knows nothing of requests, sockets, leaders or replicas: callers pass in the leader epoch and the high watermark.
"""
