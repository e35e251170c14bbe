"""The schema registry: Confluent's REST API over what is kept in the topic ``_schemas``.

Knows nothing of requests of Kafka's protocol. Imported only where ``barnabas.schema.registry.listener`` is set.
"""
