"""What knows nothing of models: errors, records, text, files, their bounded reading, options, jobs in several processes."""
