"""A proxy in front of a Kafka cluster: clients reach all brokers through it, and it shows their requests.

Knows nothing of any broker's inside: it speaks to both sides by the protocol.
"""
