"""The parts of DALI's private package ``_multiproc`` that programs import: batches and messages in shared memory, workers.

They are built on Penstock's parallel sources.
"""
