"""What must hold of the protocols, which variant breaks what, and bindings of real logs."""
