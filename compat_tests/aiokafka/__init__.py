"""Tests of what only aiokafka has."""
