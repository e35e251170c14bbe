"""The security properties of Kafka's Java clients, converted for kafka-python.

Knows nothing of what a client sends. For the commands and the pipeline, which are clients of any Kafka.
"""
