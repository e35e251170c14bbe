"""What is measured, how, and the numbers kept: each figure beside its baselines, in turns, in one run.

A figure means nothing alone on a shared machine; what is printed are medians over rounds and ratios between things
that ran in the same round.
"""
