"""Each fault and each scenario, with four clients over sockets, and what they are seen to do."""
