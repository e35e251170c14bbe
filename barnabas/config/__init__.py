"""What the broker and its topics are told to do: Kafka's own names, defaults and sources.

Knows nothing of the broker that goes by it.
"""
