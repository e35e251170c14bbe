"""What the images of Apache Kafka, Confluent and Bitnami make of their variables: a ``server.properties``.

Knows nothing of containers. Each image has a module with the rules of its ``configure`` script; the scripts under
``docker/`` call ``barnabas image-properties``.
"""
