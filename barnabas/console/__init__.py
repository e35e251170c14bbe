"""The console: pages that show a Kafka cluster in the browser.

Knows nothing of the broker's internals; it asks any Kafka by a client.
"""
