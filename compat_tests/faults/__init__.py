"""Each fault and each scenario, with four clients over sockets, and their observed behaviour."""
