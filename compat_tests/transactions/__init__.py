"""Transactions of other projects' clients, and their state after kills, restarts and time-outs."""
