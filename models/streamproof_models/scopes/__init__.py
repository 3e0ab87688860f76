"""Scoped graphs: dataflows with nested loops, for the baton.

`graph.py` defines them, `rules.py` says which are well formed, `text.py` reads and writes them, `topologies.py` names some,
`loops_api.py` builds them as a program does; `subtasks.py` expands them, `enumeration.py` lists all small ones with
`matrices.py`.
"""
