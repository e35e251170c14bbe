"""Random clients against a broker that is killed, paused and cut off meanwhile, and a judge of what they saw."""
