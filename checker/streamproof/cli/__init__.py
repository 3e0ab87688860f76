"""The command line: one module per verb, each thin; engines are imported when a verb needs them."""
