"""The data pipeline on Spark: a data source, and jobs that read and write topics.

Uses brokers as any client does, including Apache Kafka's, and imports nothing of the broker.
"""
