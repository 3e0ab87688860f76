"""Systems as SMT-LIB scripts and Horn clauses."""
