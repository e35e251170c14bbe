"""kafkajs, from Node."""
