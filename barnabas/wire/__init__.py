"""Encodes and decodes the messages of the Kafka protocol.

Knows nothing of sockets, brokers or clocks. ``messages`` declares the messages, one module per API, in the language of
``schema``. ``compiler`` generates an encoder and a decoder for each declaration and version. ``message`` and
``headers`` add frames and headers.
"""
