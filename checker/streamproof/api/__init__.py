"""The functions of the public door, one for each verb: the same engines, evidence and cross-checks, a value as result."""
