"""Stored errors keep only parts of their tracebacks."""

from __future__ import annotations

import ast
import re
import traceback
import weakref

import numpy as np
import pytest

from penstock.errors import OperatorError, RaisedAt, operator_error, traceback_text, without_frames


class Frozen(Exception):
    """An error to which no attribute can be assigned."""

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(name)


def raised(error: Exception, held: object = None) -> Exception:
    """Raise and catch an error; return it with a traceback whose first frame refers to ``held``."""
    try:
        raise error
    except Exception as caught:
        return caught


def test_what_frames_refer_to_is_let_go() -> None:
    held = np.ones(9)
    alive, error = weakref.ref(held), raised(ValueError("mine"), held)
    del held
    assert alive() is not None
    assert without_frames(error) is error
    assert alive() is None


def test_where_an_error_was_raised_is_told() -> None:
    error = without_frames(operator_error(raised(ValueError("mine")), "penstock.fn.crop", "cpu", 3, ()))
    assert isinstance(error, OperatorError)
    cause = error.__cause__
    assert isinstance(cause, ValueError)
    assert isinstance(cause.__cause__, RaisedAt)
    text = "".join(traceback.format_exception(error))
    assert "in raised" in text
    assert "raise error" in text
    assert text.index("in raised") < text.index("ValueError: mine") < text.index("sample #3")


def test_causes_stay_and_contexts_are_told() -> None:
    def fail() -> None:
        try:
            raise KeyError("first")
        except KeyError as first:
            try:
                raise LookupError("second") from first
            except LookupError:
                raise ValueError("third")  # noqa: B904

    with pytest.raises(ValueError, match="third") as caught:
        fail()
    error = without_frames(caught.value)
    assert error.__traceback__ is error.__context__ is None
    assert all(name in str(error.__cause__) for name in ("first", "second", "third", "in fail"))
    chained = raised(TypeError("fourth"))
    chained.__cause__ = raised(OSError("fifth"))
    assert without_frames(chained).__cause__ is not None
    assert isinstance(chained.__cause__, OSError)
    assert isinstance(chained.__cause__.__cause__, RaisedAt)


def test_text_is_what_python_prints_without_marks(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(one: int) -> None:
        try:
            fail(one - one // one)
        except ZeroDivisionError:
            raise OSError("of no use") from raised(KeyError("mine"))

    with pytest.raises(OSError, match="of no use") as caught:
        fail(2)
    printed, parsed = "".join(traceback.format_exception(caught.value)), list[object]()
    with monkeypatch.context() as patched:
        patched.setattr(ast, "parse", parsed.append)
        text = traceback_text(caught.value)
    assert text == re.sub(r"(?m)^ *[~^]+ *[~^]*\n", "", printed)
    assert not parsed


def test_an_error_that_is_raised_again_tells_of_the_last_time() -> None:
    error = Frozen("frozen")
    for _ in range(3):
        assert without_frames(raised(error)).__traceback__ is None
        assert without_frames(error) is error
    assert str(error.__cause__).count("in raised") == 1
