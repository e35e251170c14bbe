"""Random clients against a broker that is killed, paused and isolated meanwhile, and a checker of what they saw."""
