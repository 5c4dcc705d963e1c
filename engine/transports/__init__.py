"""How a script reaches a node: ssh, local, simulated."""
