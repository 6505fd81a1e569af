"""Networks in pipelines: files that this process runs, and other models of the same server."""
