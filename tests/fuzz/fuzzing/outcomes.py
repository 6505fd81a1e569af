"""The outcome of a case."""

from __future__ import annotations

import linecache
from pathlib import Path
from typing import NamedTuple

import penstock
from penstock.errors import OperatorError, PenstockError

OK, REFUSED, ISOLATED = "ok", "refused", "isolated"
UNTYPED, NEIGHBOUR = "UNTYPED", "NEIGHBOUR"
CRASH, HANG, MEMORY = "CRASH", "HANG", "MEMORY"

GOOD = (OK, REFUSED, ISOLATED)
"""Decoded; refused with an error of ours; refused because it ended the worker process that decoded it."""

BAD = (CRASH, HANG, MEMORY, UNTYPED, NEIGHBOUR)
"""The process died, did not come back, or took too much memory; an error leaked that is not ours; a good sample beside it
came out wrong, or failed."""


class Outcome(NamedTuple):
    """A kind, and for all but ``ok`` what was seen, and where."""

    kind: str
    message: str = ""
    place: str = ""


_OURS = str(Path(penstock.__file__).parent)


def of_error(error: BaseException, os_errors: bool = False) -> Outcome:
    """The outcome for a sample that failed.

    Args:
        os_errors: what the operating system says of files is an answer.
    """
    cause: BaseException = error
    while isinstance(cause, OperatorError) and cause.__cause__ is not None:
        cause = cause.__cause__
    text = f"{type(cause).__name__}: {cause}"[:300]
    if type(cause).__name__.startswith("Decoder"):
        return Outcome(ISOLATED, text)
    if _is_ours(cause) or (os_errors and isinstance(cause, OSError)):
        return Outcome(REFUSED, text)
    return Outcome(UNTYPED, text, f"{type(cause).__name__} at {_place(cause)}")


def _is_ours(cause: BaseException) -> bool:
    """Whether it is an error of ours: by its class, or raised by a statement of ours as one of those that users catch."""
    if isinstance(cause, PenstockError):
        return True
    if not isinstance(cause, (ValueError, OSError, NotImplementedError, RuntimeError, TypeError)):
        return False
    trace = cause.__traceback__
    if trace is None:
        return False
    while trace.tb_next is not None:
        trace = trace.tb_next
    path = trace.tb_frame.f_code.co_filename
    return path.startswith(_OURS) and linecache.getline(path, trace.tb_lineno).lstrip().startswith("raise ")


def _place(cause: BaseException) -> str:
    """The innermost lines of an error's traceback."""
    lines, trace = [], cause.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        lines.append(f"{code.co_filename.rpartition('/')[2]}:{trace.tb_lineno} {code.co_name}")
        trace = trace.tb_next
    return " < ".join(reversed(lines[-4:]))
