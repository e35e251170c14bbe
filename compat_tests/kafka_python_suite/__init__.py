"""kafka-python's own integration tests, run against a broker of ours."""
