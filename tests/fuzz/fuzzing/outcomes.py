"""The outcome of a case."""

from __future__ import annotations

import linecache
import re
import traceback
from pathlib import Path
from typing import NamedTuple

import penstock
from penstock.errors import OperatorError, PenstockError, RaisedAt

OK, REFUSED, ISOLATED = "ok", "refused", "isolated"
UNTYPED, NEIGHBOUR = "UNTYPED", "NEIGHBOUR"
CRASH, HANG, MEMORY = "CRASH", "HANG", "MEMORY"

GOOD = (OK, REFUSED, ISOLATED)
"""Outcomes that are allowed: the file was decoded; it was refused with one of Penstock's errors; or it was refused because it ended the
worker process that decoded it."""

BAD = (CRASH, HANG, MEMORY, UNTYPED, NEIGHBOUR)
"""Outcomes that are failures: the process died, did not answer, or took too much memory; an error that is not one of Penstock's was
raised; or a good sample of the same batch was wrong, or failed."""


class Outcome(NamedTuple):
    """The kind of an outcome and, for all kinds except ``ok``, what was observed and where."""

    kind: str
    message: str = ""
    place: str = ""


_OURS = str(Path(penstock.__file__).parent)


def of_error(error: BaseException, os_errors: bool = False) -> Outcome:
    """Return the outcome for a sample that failed.

    Args:
        os_errors: whether an error of the operating system about a file counts as a refusal.
    """
    cause: BaseException = error
    while isinstance(cause, OperatorError) and not isinstance(cause.__cause__, (RaisedAt, type(None))):
        cause = cause.__cause__
    text = f"{type(cause).__name__}: {cause}"[:300]
    if type(cause).__name__.startswith("Decoder"):
        return Outcome(ISOLATED, text)
    if _is_ours(cause) or (os_errors and isinstance(cause, OSError)):
        return Outcome(REFUSED, text)
    return Outcome(UNTYPED, text, f"{type(cause).__name__} at {_place(cause)}")


def _is_ours(cause: BaseException) -> bool:
    """Return whether an error is one of Penstock's: its class is Penstock's, or Penstock's code raised it and its class is one that users
    catch.
    """
    if isinstance(cause, PenstockError):
        return True
    if not isinstance(cause, (ValueError, OSError, NotImplementedError, RuntimeError, TypeError)):
        return False
    frames = _frames(cause)
    if not frames:
        return False
    path, line, _ = frames[-1]
    return path.startswith(_OURS) and linecache.getline(path, line).lstrip().startswith("raise ")


def _place(cause: BaseException) -> str:
    """Return the innermost lines of an error's traceback."""
    frames = reversed(_frames(cause)[-4:])
    return " < ".join(f"{path.rpartition('/')[2]}:{line} {function}" for path, line, function in frames)


def _frames(cause: BaseException) -> list[tuple[str, int, str]]:
    """Return the file, line and function of each frame of an error's traceback; if the error was stored, the traceback is text."""
    last: BaseException | None = cause
    while last is not None and not isinstance(last, RaisedAt):
        last = last.__cause__
    if last is not None:
        told = f"{type(cause).__name__}: {str(cause).partition(chr(10))[0]}"
        texts = str(last).split("The above exception was the direct cause")
        own = next((text for text in texts if told in text), "")
        found = re.findall(r'^ +File "(.+)", line (\d+), in (.+)$', own, re.MULTILINE)
        return [(path, int(line), function) for path, line, function in found]
    return [(frame.filename, frame.lineno or 0, frame.name) for frame in traceback.extract_tb(cause.__traceback__)]
