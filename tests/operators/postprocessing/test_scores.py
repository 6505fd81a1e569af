"""`softmax`, `argmax` and `top_k` compared with numpy, along any dimension of samples of any shape."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from one_batch import isolated, outputs

from penstock import fn
from penstock.errors import OperatorError

RNG = np.random.default_rng(5)
SHAPES = [(4, 7, 5), (4, 1, 9), (4, 12, 3)]
SCORES = [RNG.integers(-40, 40, shape).astype(np.float32) / 8 for shape in SHAPES]
NAMES = ["cat", "hare", "fjällräv", "owl"]


def computed(
    function: Any, scores: list[np.ndarray], layout: str | None = None, **arguments: Any
) -> list[list[np.ndarray]]:
    return outputs(lambda: function(fn.external_source(name="scores", layout=layout), **arguments), scores=scores)


def softmax(scores: np.ndarray, axis: int) -> np.ndarray:
    wide = np.exp(scores.astype(np.longdouble) - scores.max(axis=axis, keepdims=True))
    return wide / wide.sum(axis=axis, keepdims=True)


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_softmax(axis: int, dtype: Any) -> None:
    (received,) = computed(fn.softmax, [scores.astype(dtype) for scores in SCORES], axis=axis)
    for own, scores in zip(received, SCORES):
        assert own.dtype == np.float32
        np.testing.assert_allclose(own, softmax(scores, axis), rtol=3e-7)


@pytest.mark.parametrize(("shape", "axis"), [((21, 37, 29), 0), ((30, 1000), 1), ((3, 40, 5), 1), ((1, 33), 1)])
def test_softmax_to_the_last_places(shape: tuple[int, ...], axis: int) -> None:
    """Errors are below two units in the last place, for lines that are longer and shorter than the blocks of computation."""
    scores = RNG.uniform(-30, 30, shape).astype(np.float32)
    ((received,),) = computed(fn.softmax, [scores], axis=axis)
    exact = softmax(scores.astype(np.longdouble), axis)
    assert np.abs((received - exact) / np.spacing(exact.astype(np.float32))).max() < 2


def test_softmax_of_scores_that_differ_much() -> None:
    logits = np.array([1000, -1000, 999, -np.inf], np.float32)
    (received,) = computed(fn.softmax, [logits])
    np.testing.assert_allclose(received[0], [1 / (1 + np.exp(-1)), 0, 1 / (1 + np.e), 0], rtol=1e-6)


@pytest.mark.parametrize("logits", [[1, np.nan, 2], [np.inf, 1, 0], [-np.inf] * 3])
def test_softmax_of_scores_without_one(logits: list[float]) -> None:
    (received,) = computed(fn.softmax, [np.array([logits, [0, 0, 0]], np.float32)])
    assert np.isnan(received[0][0]).all()
    np.testing.assert_allclose(received[0][1], 1 / 3, rtol=1e-6)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_argmax_is_the_first_of_equals(axis: int) -> None:
    coarse = [np.rint(scores) for scores in SCORES]
    (received,) = computed(fn.argmax, coarse, axis=axis)
    for own, scores in zip(received, coarse):
        np.testing.assert_array_equal(own, scores.argmax(axis=axis))
        assert own.dtype == np.int32


@pytest.mark.parametrize(("shape", "axis"), [((6, 41, 29), 0), ((5, 100), 1), ((2, 1000), 1)])
def test_argmax_of_many_scores(shape: tuple[int, ...], axis: int) -> None:
    scores = [np.rint(RNG.standard_normal(shape) * 2).astype(np.float32), np.full(shape, -np.inf, np.float32)]
    (received,) = computed(fn.argmax, scores, axis=axis)
    for own, sample in zip(received, scores):
        np.testing.assert_array_equal(own, sample.argmax(axis=axis))


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_top_k_is_what_sorting_gives(axis: int) -> None:
    coarse = [np.rint(scores) for scores in (SCORES[0], SCORES[2], SCORES[0])]
    values, indices = computed(fn.top_k, coarse, axis=axis, k=3)
    for value, index, scores in zip(values, indices, coarse):
        expected = np.argsort(-scores, axis=axis, kind="stable").take(range(3), axis=axis)
        np.testing.assert_array_equal(index, expected)
        np.testing.assert_array_equal(value, np.take_along_axis(scores, expected, axis))


def test_names_of_classes() -> None:
    numbers, names = computed(fn.argmax, SCORES, axis=0, labels=NAMES)
    for own, told in zip(numbers, names):
        assert [bytes(row).rstrip(b"\0").decode() for row in told.reshape(-1, told.shape[-1])] == [
            NAMES[number] for number in own.reshape(-1)
        ]
    _, classes, best = computed(fn.top_k, SCORES, layout="CHW", axis_name="C", k=2, labels=NAMES)
    assert best[1].shape == (2, 1, 9, len("fjällräv".encode()))
    assert bytes(best[1][1, 0, 8]).rstrip(b"\0").decode() == NAMES[classes[1][1, 0, 8]]


@pytest.mark.parametrize(
    ("function", "arguments"), [(fn.argmax, {}), (fn.top_k, {"k": 2}), (fn.argmax, {"labels": NAMES})]
)
@pytest.mark.parametrize("place", [0, 3, 9])
def test_a_sample_with_a_nan_fails_alone(function: Any, arguments: dict[str, Any], place: int) -> None:
    good = [RNG.random((3, 4)).astype(np.float32) for _ in range(3)]
    scores = [*good[:1], good[1].copy(), *good[2:]]
    scores[1].reshape(-1)[place] = np.nan

    def define() -> Any:
        return function(fn.external_source(name="scores", ndim=2), **arguments)

    received, failures = isolated(define, scores=scores)
    assert list(failures) == [1]
    assert f"The score at [{place // 4}, {place % 4}] is NaN" in str(failures[1])
    number = 0 if function is fn.argmax else 1
    for index in (0, 2):
        best = np.argsort(-scores[index], axis=1, kind="stable")
        np.testing.assert_array_equal(received[number][index], best[:, 0] if number == 0 else best[:, :2])


@pytest.mark.parametrize(
    ("function", "arguments", "scores", "told"),
    [
        (fn.softmax, {}, np.zeros((2, 0), np.float32), "There are no scores"),
        (fn.argmax, {}, np.zeros(0, np.float32), "There are no scores"),
        (fn.top_k, {"k": 4}, np.zeros(3, np.float32), "`k` is 4, but there are only 3 scores"),
        (fn.top_k, {"k": 1, "labels": NAMES}, np.zeros(3, np.float32), "4 names, but there are 3 scores"),
        (fn.top_k, {"k": 0}, np.zeros(3, np.float32), "`k` must be 1 or more"),
        (fn.argmax, {"axis": 2}, np.zeros(3, np.float32), "out of range"),
        (fn.argmax, {"axis_name": "C"}, np.zeros(3, np.float32), "axis_name"),
        (fn.softmax, {}, np.zeros(3, np.int32), "use `fn.cast`"),
    ],
)
def test_what_is_refused(function: Any, arguments: dict[str, Any], scores: np.ndarray, told: str) -> None:
    with pytest.raises((ValueError, OperatorError), match=told):
        computed(function, [scores] * 3, **arguments)


# -- on a GPU ----------------------------------------------------------------------------------------------------------

LINES = [(3, 40, 50), (2, 7, 33), (4, 1100, 2), (1, 5, 1)]
"""Shapes with long and short lines along the axis, whose elements are adjacent in memory or not."""


def on_both(function: Any, scores: list[np.ndarray], **arguments: Any) -> tuple[list[list[np.ndarray]], ...]:
    return tuple(
        outputs(
            lambda device=device: function(
                fn.external_source(name="scores", layout="CHW").gpu()
                if device == "gpu"
                else fn.external_source(name="scores", layout="CHW"),
                **arguments,
            ),
            device_id=0,
            scores=scores,
        )
        for device in ("cpu", "gpu")
    )


@pytest.mark.usefixtures("with_gpu")
@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_probabilities_on_a_gpu(axis: int, dtype: Any) -> None:
    scores = [RNG.normal(0, 4, shape).astype(dtype) for shape in LINES]
    scores[0][0, 0, 0], scores[1][0, 0, 0], scores[2][0, 0, 0] = np.nan, np.inf, -np.inf
    (expected,), (received,) = on_both(fn.softmax, scores, axis=axis)
    for own, other in zip(received, expected):
        np.testing.assert_allclose(own, other, rtol=2e-7)


@pytest.mark.usefixtures("with_gpu")
@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize(("function", "arguments"), [(fn.argmax, {}), (fn.top_k, {"k": 1})])
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_classes_on_a_gpu(axis: int, function: Any, arguments: dict[str, Any], dtype: Any) -> None:
    # Many scores are equal, and some infinite.
    scores = [RNG.integers(-9, 9, shape).astype(dtype) for shape in LINES]
    scores[0][:, 0] = -np.inf
    scores[1][0, 0, 1:] = np.inf
    expected, received = on_both(function, scores, axis=axis, **arguments)
    for own, other in zip(received, expected, strict=True):
        for a, b in zip(own, other, strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.usefixtures("with_gpu")
@pytest.mark.parametrize(("axis", "k"), [(0, 3), (1, 5), (1, 40), (2, 33)])
def test_highest_scores_on_a_gpu(axis: int, k: int) -> None:
    scores = [RNG.integers(-9, 9, shape).astype(np.float32) for shape in ((3, 40, 50), (4, 1100, 33))]
    scores[0][:, 0] = -np.inf
    expected, received = on_both(fn.top_k, scores, axis=axis, k=k)
    for own, other in zip(received, expected, strict=True):
        for a, b in zip(own, other, strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.usefixtures("with_gpu")
def test_names_of_classes_on_a_gpu() -> None:
    for function, arguments in ((fn.argmax, {}), (fn.top_k, {"k": 3})):
        expected, received = on_both(function, SCORES, axis=0, labels=NAMES, **arguments)
        for own, other in zip(received, expected, strict=True):
            for a, b in zip(own, other, strict=True):
                np.testing.assert_array_equal(a, b)


@pytest.mark.usefixtures("with_gpu")
@pytest.mark.parametrize(("function", "arguments"), [(fn.argmax, {}), (fn.top_k, {"k": 2})])
@pytest.mark.parametrize("device", ["cpu", "gpu"])
def test_the_first_nan_is_reported_on_both_devices(function: Any, arguments: dict[str, Any], device: str) -> None:
    scores = [RNG.random((4, 40, 33)).astype(np.float32) for _ in range(3)]
    scores[1][2, 30, 7] = scores[1][2, 30, 3] = scores[1][3, 0, 0] = np.nan

    def define() -> Any:
        source = fn.external_source(name="scores", ndim=3)
        return function(source.gpu() if device == "gpu" else source, axis=1, **arguments)

    with pytest.raises(OperatorError, match=r"The score at \[2, 30, 3\] is NaN") as failure:
        outputs(define, device_id=0, scores=scores)
    assert "1" in str(failure.value)
