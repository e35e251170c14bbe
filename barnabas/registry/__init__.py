"""The schema registry: Confluent's REST API over the records of the topic ``_schemas``.

Knows nothing of requests of Kafka's protocol. Imported only where ``barnabas.schema.registry.listener`` is set.
"""
