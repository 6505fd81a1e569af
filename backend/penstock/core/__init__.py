"""The compiled core (`backend/core`) as Python sees it: threads and launches, called without the GIL."""
