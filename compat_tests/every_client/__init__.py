"""Tests that run with every client."""
