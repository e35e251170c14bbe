"""The data pipeline on Spark: a data source, and the jobs that read topics and write them.

Talks to a broker as any client does, Apache Kafka's too, and imports nothing of ours.
"""
