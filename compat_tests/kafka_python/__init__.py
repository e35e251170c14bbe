"""What only kafka-python has."""
