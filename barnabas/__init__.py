"""Barnabas: an Apache Kafka broker written in Python."""

__version__ = "0.1.0"
