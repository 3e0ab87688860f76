"""Lies about recorded runs: each module has the edits for one machine, which validation must reject at the edited line."""
