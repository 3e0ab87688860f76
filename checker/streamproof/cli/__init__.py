"""The command line: one thin module per verb; engines are imported on first use."""
