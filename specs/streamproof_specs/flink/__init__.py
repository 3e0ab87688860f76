"""What all bindings of Flink's logs share: which jobs can be judged, versions, clocks, the processes of a run."""
