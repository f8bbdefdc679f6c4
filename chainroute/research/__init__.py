"""Studies of the network: evaluation, the flow shop, blocks of rivals. Only the command imports it."""
