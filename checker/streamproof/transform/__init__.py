"""From one transition system to another: flattened, scalarised, simplified, composed, refined, constrained."""
