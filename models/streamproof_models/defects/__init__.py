"""Single defects of Flink, each as a small model with the repaired rule and the defect as a variant."""
