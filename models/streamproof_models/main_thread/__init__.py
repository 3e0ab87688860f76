"""The main thread of the JobMaster, which deploys and answers heartbeats; `variants.py` has other work, and cures."""
