"""The parts of DALI's private package ``_multiproc`` that programs import: batches and messages in shared memory, and workers.

They are carried by what Penstock's own parallel sources use.
"""
