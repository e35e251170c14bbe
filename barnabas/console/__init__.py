"""The console: pages that show a Kafka cluster in the browser.

Knows nothing of the broker: it reads any Kafka cluster through a client.
"""
