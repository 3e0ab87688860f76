"""Properties of the JobMaster's main thread."""
