"""What only confluent-kafka has."""
