"""Tests of what only confluent-kafka has."""
