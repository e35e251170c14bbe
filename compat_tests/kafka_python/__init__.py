"""Tests of what only kafka-python has."""
