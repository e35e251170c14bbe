"""A proxy in front of a Kafka cluster: all brokers are seen through it, and so is what they are asked.

Knows nothing of any broker's inside: it speaks to both sides by the protocol.
"""
