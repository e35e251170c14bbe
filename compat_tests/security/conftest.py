"""The broker of these tests."""

from .secured import secured

__all__ = ["secured"]
