"""The parts of DALI's private package ``_utils`` that programs import."""
