"""What changed between two models: behaviours gained and lost, verdicts, actions and states."""
