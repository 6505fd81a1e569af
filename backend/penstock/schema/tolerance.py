"""The argument `on_error` of readers and decoders, which determines how samples are handled that cannot be read or decoded."""

from __future__ import annotations

from penstock.schema.arguments import Argument

RAISE, SKIP, REPLACE = "raise", "skip", "replace"
POLICIES = (RAISE, SKIP, REPLACE)

ON_ERROR = Argument(
    "on_error",
    "string",
    None,
    "What becomes of samples that fail here: `raise` the error, `skip` them (the batch is smaller), or `replace` them by "
    "their neighbours in the batch; by default as the pipeline says.",
    choices=POLICIES,
    example=RAISE,
)
"""The argument `on_error` of operators whose failures may be tolerated."""


def check_policy(policy: str) -> None:
    """Raise ValueError unless ``policy`` is a possible value of `on_error`."""
    if policy not in POLICIES:
        raise ValueError(f"`on_error` is {policy!r}; use one of {', '.join(POLICIES)}")
