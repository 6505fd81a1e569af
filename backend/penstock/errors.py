"""The errors that Penstock raises.

Every error derives from :class:`PenstockError`, which is a :class:`RuntimeError`, as users of DALI expect. The error of an
operator that fails while it runs also has the built-in type of its cause, where that type is informative (``ValueError``,
``TypeError``, ``IndexError`` ...), so that ``except`` works with either type.
"""

from __future__ import annotations

import traceback
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TypeVar

__all__ = [
    "BatchError",
    "CancelledError",
    "ConfinedPathError",
    "DecoderDiedError",
    "DecoderTimeoutError",
    "DeviceError",
    "DeviceLostError",
    "ElementTypeError",
    "ExtentError",
    "Frame",
    "LimitError",
    "OperatorError",
    "PenstockError",
    "RaisedAt",
    "SerializationError",
    "TooManyErrorsError",
    "UnsupportedVersionError",
    "as_imported",
    "import_as",
    "operator_error",
    "without_frames",
]

_AnyError = TypeVar("_AnyError", bound=BaseException)
_PACKAGE = __name__.partition(".")[0]
_imported_as = _PACKAGE


def import_as(package: str = _PACKAGE) -> None:
    """Set the name of this package in messages to the one that programs import; :mod:`penstock.compat` changes it."""
    global _imported_as
    _imported_as = package


def as_imported(name: str) -> str:
    """Return a name in this package, such as ``penstock.fn.crop``, as the program would import it."""
    package, dot, rest = name.partition(".")
    return f"{_imported_as}{dot}{rest}" if package == _PACKAGE else name


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name most similar to a misspelled one, ignoring case; None if none is similar."""
    return next(iter(nearest_names(name, known, 1)), None)


def nearest_names(name: str, known: Iterable[str], count: int, similarity: float = 0.6) -> list[str]:
    """Return the known names most similar to another one, ignoring case, the most similar first.

    Args:
        name: the name to look for.
        known: the names to choose from.
        count: the largest number of names to return.
        similarity: the smallest similarity of a name that is returned, from 0 to 1, as :mod:`difflib` measures it.
    """
    by_lower = {candidate.lower(): candidate for candidate in known}
    # Imported here, as it is only needed for errors.
    import difflib

    return [by_lower[match] for match in difflib.get_close_matches(name.lower(), by_lower, count, similarity)]


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return a suggestion to append to a message about an unknown name: the most similar known one; "" if none is similar.

    >>> did_you_mean("resize_shoter", ["resize_longer", "resize_shorter"])
    " Did you mean 'resize_shorter'?"
    """
    meant = nearest(name, known)
    return f" Did you mean '{meant}'?" if meant else ""


def no_such_attribute(module: str, name: str, known: Iterable[str]) -> AttributeError:
    """Return the error for a name that a module does not have; the message suggests the most similar name."""
    # Names that begin with two underscores are looked up by Python and its tools, not by users.
    near = "" if name.startswith("__") else did_you_mean(name, [other for other in known if other[0] != "_"])
    return AttributeError(f"module {as_imported(module)!r} has no attribute {name!r}{near and '.'}{near}")


class PenstockError(RuntimeError):
    """Base class of the errors that Penstock defines."""


class DeviceError(PenstockError):
    """A GPU is needed and none can be used."""


class DeviceLostError(DeviceError):
    """A GPU was lost: it failed, or a kernel of this process caused an error after which the process can no longer use the GPU.

    This process can run nothing on that GPU any more; a new process may.
    """


class BatchError(PenstockError, ValueError):
    """Values cannot form a batch: they differ in number, or in the ranks of their samples."""


class ElementTypeError(PenstockError, TypeError):
    """Data has elements of a type that no tensor holds, such as complex numbers or text."""


class ExtentError(PenstockError, IndexError):
    """An index lies beyond the extent of its dimension."""


class LimitError(PenstockError, ValueError):
    """A sample would exceed the pipeline's ``max_pixels``, ``max_bytes`` or ``max_frames``, or the model's
    ``max_memory``."""


class MemoryShortageError(PenstockError):
    """A batch waited too long for memory, because other running batches occupy the memory that batches share."""


class CallFailed(RuntimeError):
    """A function of the user raised an exception, which is the cause of this error."""


class DecoderDiedError(PenstockError, ValueError):
    """The worker process that decoded a sample died."""


class DecoderTimeoutError(DecoderDiedError):
    """The worker process that decoded a sample took too long, and was ended."""


class CancelledError(PenstockError):
    """The result is no longer wanted, so its computation was stopped."""

    def __init__(self, message: str = "the request was cancelled") -> None:
        super().__init__(message)


class ConfinedPathError(PenstockError, ValueError):
    """A file is outside the folders that a pipeline is confined to."""


class TooManyErrorsError(PenstockError):
    """The number of samples that could not be read exceeds the pipeline's ``max_errors``."""


class SerializationError(PenstockError, ValueError):
    """A saved pipeline cannot be read, or a pipeline cannot be saved."""


class UnsupportedVersionError(SerializationError):
    """A file is in a newer format than this version of Penstock can read."""


@dataclass(frozen=True)
class Frame:
    """A line of the user's program on the way to an operator's call."""

    filename: str
    lineno: int
    function: str
    line: str

    def __str__(self) -> str:
        return f'  File "{self.filename}", line {self.lineno}, in {self.function}\n    {self.line}'


class OperatorError(PenstockError):
    """An operator failed while it ran.

    Attributes:
        operator: the operator's name for users, e.g. ``penstock.fn.crop``.
        sample: the index of the failing sample in the batch, or None if the whole batch failed.
        origin: the lines of the user's program that created the operator, outermost first.
        reason: the message of the cause, without operator, sample and origin.
    """

    def __init__(
        self,
        reason: str,
        operator: str = "",
        device: str = "",
        sample: int | None = None,
        origin: Sequence[Frame] = (),
    ) -> None:
        self.reason = reason
        self.operator = operator
        self.device = device
        self.sample = sample
        self.origin = tuple(origin)
        super().__init__(self._describe())

    def _describe(self) -> str:
        # Programs written for DALI search messages for this beginning.
        text = "" if _imported_as == _PACKAGE else "Critical error in pipeline:\n"
        text += f"Error in {self.device.upper()} operator `{self.operator}`"
        if self.origin:
            frames = "\n".join(map(str, self.origin))
            text += f",\nwhich was used in the pipeline definition with the following traceback:\n\n{frames}\n\n"
        else:
            text += " "
        text += "encountered:\n\n" + self.reason
        if self.sample is not None:
            text += f"\nwhile processing sample #{self.sample} of the batch."
        return text


@cache
def _combined_error(cause: type[BaseException]) -> type[OperatorError]:
    return type(
        f"Operator{cause.__name__}", (OperatorError, cause), {"__doc__": f"An OperatorError and {cause.__name__}."}
    )


_CATCHABLE_CAUSES = (
    *(DeviceLostError, LimitError, DecoderTimeoutError, DecoderDiedError),
    *(IndexError, KeyError, ValueError, TypeError, MemoryError, NotImplementedError),
    *(FileNotFoundError, PermissionError, OSError),
)


def operator_error(
    cause: BaseException, operator: str, device: str, sample: int | None, origin: Sequence[Frame]
) -> OperatorError:
    """Return the OperatorError for ``cause``, which an operator raised; also an instance of the cause's built-in type."""
    if isinstance(cause, OperatorError):
        return cause
    kind = next((_combined_error(base) for base in _CATCHABLE_CAUSES if isinstance(cause, base)), OperatorError)
    reason = str(cause.args[0]) if isinstance(cause, KeyError) and cause.args else str(cause)
    error = kind(reason or type(cause).__name__, operator, device, sample, origin)
    error.__cause__ = cause
    return error


def traceback_text(error: BaseException) -> str:
    """Return an error with its traceback, causes and contexts, as Python prints them, but without the marks (``^^^^``) under
    parts of lines.

    To place the marks, Python parses the lines, and CPython 3.11 counts the nesting of all threads' parsers in one counter: if another
    thread parses in the meantime, as ``numpy.load`` does, its parser would fail with a ``SystemError``.
    """
    told = traceback.TracebackException.from_exception(error, compact=True)
    chain = [told]
    for link in chain:
        link.stack = traceback.StackSummary.from_list(
            traceback.FrameSummary(frame.filename, frame.lineno, frame.name, line=frame.line) for frame in link.stack
        )
        # Groups of errors are new in Python 3.11.
        further = link.__cause__, link.__context__, *(getattr(link, "exceptions", None) or ())
        chain += [one for one in further if one is not None]
    return "".join(told.format())


class RaisedAt(Exception):
    """Replaces the cause of an error that is stored: contains, as text, the traceback with which that error was raised."""

    def __str__(self) -> str:
        return f"\n{super().__str__()}"


def without_frames(error: _AnyError) -> _AnyError:
    """Return an error that can be stored, such as in a list of results: replace its traceback by text, a :class:`RaisedAt`.

    A traceback refers to frames, which refer to their variables, so to the batch, and to the frames that called them. If one of the
    variables refers to the error, this is a cycle: memory, also of a GPU, would be in use until the next garbage collection.
    """
    causes: list[BaseException] = [error]
    while (cause := causes[-1].__cause__) is not None and not isinstance(cause, RaisedAt) and cause not in causes:
        causes.append(cause)
    raised = next((each for each in causes if each.__traceback__ is not None), None)
    if raised is None:
        return error
    if causes[-1].__cause__ is not None:
        # If an error is raised repeatedly, only the last traceback is shown.
        _CAUSE.__set__(causes[-1], None)
    text = traceback_text(raised)
    for each in causes:
        # Not by assignment: users' errors may be frozen dataclasses.
        _TRACEBACK.__set__(each, None)
        _CONTEXT.__set__(each, None)
    _CAUSE.__set__(causes[-1], RaisedAt(text))
    return error


_TRACEBACK, _CONTEXT, _CAUSE = (vars(BaseException)[name] for name in ("__traceback__", "__context__", "__cause__"))
