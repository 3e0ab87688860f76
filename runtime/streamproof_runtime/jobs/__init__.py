"""How jobs are written: the API, their graphs and files."""
