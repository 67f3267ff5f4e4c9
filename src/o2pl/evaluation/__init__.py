"""Off-policy evaluation: the value of a policy, estimated from a log."""
