"""FlinkBugBench: historical defects of Apache Flink, each as a model before and after its fix.

One TOML file per defect; `streamproof bugbench` checks all of them. docs/bugbench.md describes the format.
"""
