"""Models composed of others: their parts share actions or state, and keep their own properties.

`lifecycle_failover`: failover and the life cycle of its partitions; `region_slots`: region scheduling and slots;
`baton_channels`: batons in channels with credit-based feedback.
"""
