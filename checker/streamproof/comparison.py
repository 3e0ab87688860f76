"""What a comparison of designs is written with: `streamproof compare` computes its table and judges its claims."""

from streamproof.language.declare.sweeping import Block, Claim, Column, Comparison, Judgement, Table

__all__ = ["Block", "Claim", "Column", "Comparison", "Judgement", "Table"]
