"""How good is a specification: small changes of a model's rules, which its properties must notice."""
