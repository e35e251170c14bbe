"""The contract of Kafka's images, kept by ours: the files under docker/ in a scratch directory, without an engine."""
