"""Our image does what Kafka's do: the files under docker/ are run in a scratch directory, without an engine."""
