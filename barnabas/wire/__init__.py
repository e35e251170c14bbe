"""Bytes to messages and back: what Apache Kafka's clients and brokers say to one another.

Knows nothing of sockets, brokers or clocks. ``schema`` is the language of the declarations in ``messages``, one
module an API; ``compiler`` turns a declaration at a version into two straight functions; ``message`` and ``headers``
put them into frames.
"""
