"""Converts the environment variables of the images of Apache Kafka, Confluent and Bitnami to a ``server.properties``.

Knows nothing of containers. Each image has a module with the rules of its ``configure`` script; the scripts under
``docker/`` call ``barnabas image-properties``.
"""
