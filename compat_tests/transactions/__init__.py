"""Transactions by clients that others wrote, and what is left of them after kills, restarts and time-outs."""
