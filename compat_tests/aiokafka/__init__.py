"""What only aiokafka has."""
