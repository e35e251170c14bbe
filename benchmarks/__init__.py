"""Benchmarks: each figure is measured together with its baselines, in turns, in one run.

On a shared machine a single figure is meaningless; the output has medians over rounds, and ratios of figures of the
same round.
"""
