"""`ctc_decode` compared with all paths of short sequences, and with a search in plain Python for longer ones."""

from __future__ import annotations

import itertools
from collections import defaultdict
from typing import Any

import numpy as np
import pytest
from one_batch import isolated, outputs

from penstock import fn
from penstock.errors import OperatorError

RNG = np.random.default_rng(17)


def logits(steps: int, classes: int, spread: float = 1.5) -> np.ndarray:
    return RNG.normal(0, spread, (steps, classes)).astype(np.float32)


def logarithms(scores: np.ndarray) -> np.ndarray:
    wide = scores.astype(np.float64)
    return wide - np.logaddexp.reduce(wide, axis=1, keepdims=True)


def collapsed(path: Any, blank: int) -> tuple[int, ...]:
    return tuple(int(token) for token, _ in itertools.groupby(path) if token != blank)


def decoded(scores: list[np.ndarray], **arguments: Any) -> list[list[np.ndarray]]:
    return outputs(lambda: fn.ctc_decode(fn.external_source(name="scores", ndim=2), **arguments), scores=scores)


def searched(scores: np.ndarray, width: int, blank: int) -> tuple[tuple[int, ...], float]:
    """Return the labels and the score that a plain prefix beam search finds."""
    beam: dict[tuple[int, ...], tuple[float, float]] = {(): (1.0, 0.0)}
    for step in np.exp(logarithms(scores)):
        after: dict[tuple[int, ...], list[float]] = defaultdict(lambda: [0.0, 0.0])
        for text, (with_blank, with_token) in beam.items():
            after[text][0] += (with_blank + with_token) * step[blank]
            for token in range(len(step)):
                if token == blank:
                    continue
                if text and token == text[-1]:
                    after[text][1] += with_token * step[token]
                    after[(*text, token)][1] += with_blank * step[token]
                else:
                    after[(*text, token)][1] += (with_blank + with_token) * step[token]
        best = sorted(after.items(), key=lambda item: -sum(item[1]))[:width]
        beam = {text: (own[0], own[1]) for text, own in best}
    text, own = max(beam.items(), key=lambda item: sum(item[1]))
    return text, float(np.log(sum(own)))


@pytest.mark.parametrize("blank", [0, 2, -1])
def test_the_best_path(blank: int) -> None:
    samples = [logits(40, 6), logits(0, 6), logits(3, 4), logits(200, 30)]
    tokens, confidences, totals = decoded(samples, blank=blank)
    for scores, own, sure, total in zip(samples, tokens, confidences, totals):
        logs, path = logarithms(scores), scores.argmax(axis=1)
        assert tuple(own) == collapsed(path, blank % scores.shape[1])
        begins = [
            i for i, token in enumerate(path) if token != blank % scores.shape[1] and (not i or path[i - 1] != token)
        ]
        np.testing.assert_allclose(sure, np.exp(logs.max(axis=1, initial=-np.inf)[begins]), rtol=1e-6)
        np.testing.assert_allclose(total, [logs.max(axis=1, initial=-np.inf).sum()], rtol=1e-6)


@pytest.mark.parametrize("blank", [0, 2])
def test_a_wide_beam_finds_the_most_probable_text(blank: int) -> None:
    samples = [logits(5, 3, 0.7) for _ in range(6)]
    tokens, _, totals = decoded(samples, blank=blank, beam_width=256)
    for scores, own, total in zip(samples, tokens, totals):
        logs, texts = logarithms(scores), defaultdict[tuple[int, ...], float](float)
        for path in itertools.product(range(3), repeat=5):
            texts[collapsed(path, blank)] += np.exp(sum(logs[step, token] for step, token in enumerate(path)))
        best = max(texts, key=lambda text: texts[text])
        assert tuple(own) == best
        np.testing.assert_allclose(total, [np.log(texts[best])], rtol=1e-6)


@pytest.mark.parametrize("width", [1, 2, 5, 17])
def test_a_narrow_beam_finds_what_a_plain_search_does(width: int) -> None:
    samples = [logits(25, 5), logits(0, 5), logits(60, 12), logits(30, 3, 0.3)]
    tokens, confidences, totals = decoded(samples, beam_width=width)
    for scores, own, sure, total in zip(samples, tokens, confidences, totals):
        text, log = searched(scores, width, 0)
        assert tuple(own) == text
        np.testing.assert_allclose(total, [log], rtol=1e-6, atol=1e-6)
        assert ((sure > 0) & (sure <= 1)).all()


@pytest.mark.parametrize("width", [0, 1, 4])
def test_probabilities_with_zeros(width: int) -> None:
    steps = np.array([[0, 1, 0], [0, 1, 0], [1, 0, 0], [0, 0.75, 0.25], [0, 0, 1]], np.float32)
    tokens, confidences, totals = decoded([steps] * 2, probabilities=True, beam_width=width)
    assert tokens[0].tolist() == [1, 1, 2]
    np.testing.assert_allclose(totals[0], [np.log(0.75)], rtol=1e-6)
    np.testing.assert_allclose(confidences[0], [1, 0.75, 1], rtol=1e-6)


def test_texts() -> None:
    vocabulary = ["å", "b", " ", "→"]
    path = np.array([1, 1, 4, 0, 4, 3, 2, 2])
    scores = np.where(np.arange(5) == path[:, None], 9, 0).astype(np.float16)
    for names in ([*vocabulary, "nothing"], vocabulary):
        text, tokens, _, _ = decoded([scores, scores[:3], scores[2:3]], vocabulary=names, blank=-1)
        assert [bytes(own).decode() for own in text] == ["bå→ ", "b", ""]
        assert tokens[0].tolist() == [1, 0, 3, 2]


def test_padded_sequences() -> None:
    scores = [logits(12, 4) for _ in range(3)]
    lengths = [np.int32(7), np.int32(0), np.int32(12)]

    def define() -> Any:
        length = fn.external_source(name="length", ndim=0)
        return fn.ctc_decode(fn.external_source(name="scores", ndim=2), length=length, beam_width=3)

    received = outputs(define, scores=scores, length=lengths)
    expected = decoded([own[: int(length)] for own, length in zip(scores, lengths)], beam_width=3)
    for own, other in zip(received, expected):
        for a, b in zip(own, other):
            np.testing.assert_array_equal(a, b)


def spoiled(value: float) -> np.ndarray:
    scores = np.abs(logits(6, 4))
    scores[3, 2] = value
    return scores


@pytest.mark.parametrize("width", [0, 3])
@pytest.mark.parametrize(
    ("bad", "probabilities"),
    [(spoiled(np.nan), False), (spoiled(np.inf), False), (spoiled(-0.5), True), (spoiled(np.nan), True)],
)
def test_a_sample_with_a_bad_score_fails_alone(width: int, bad: np.ndarray, probabilities: bool) -> None:
    good = [np.abs(logits(5, 4)), np.abs(logits(9, 4))]

    def define() -> Any:
        scores = fn.external_source(name="scores", ndim=2)
        return fn.ctc_decode(scores, beam_width=width, probabilities=probabilities)

    received, failures = isolated(define, scores=[good[0], bad, good[1]])
    assert list(failures) == [1]
    assert "The scores of step 3 give no probabilities: check the score of class 2" in str(failures[1])
    expected = decoded(good, beam_width=width, probabilities=probabilities)
    for own, other in zip(received, expected):
        np.testing.assert_array_equal(own[0], other[0])
        np.testing.assert_array_equal(own[2], other[1])


@pytest.mark.parametrize(
    ("arguments", "scores", "told"),
    [
        ({"blank": 4}, logits(3, 4), "`blank` is 4, but there are 4 classes"),
        ({"blank": -5}, logits(3, 4), "`blank` is -5"),
        ({"beam_width": 257}, logits(3, 4), "`beam_width` must be from 0 to 256"),
        ({"vocabulary": ["a", "b"]}, logits(3, 4), "2 entries, but there are 4 classes"),
        ({"length": 4}, logits(3, 4), "`length` must be from 0 to 3"),
        ({}, logits(3, 0), "`blank` is 0, but there are 0 classes"),
        ({}, np.full((3, 4), -np.inf, np.float32), "The scores of step 0 give no probabilities"),
        ({}, np.zeros((3, 4), np.int32), "`scores` must be FLOAT or FLOAT16"),
    ],
)
def test_what_is_refused(arguments: dict[str, Any], scores: np.ndarray, told: str) -> None:
    with pytest.raises((ValueError, OperatorError), match=told):
        decoded([scores] * 2, **arguments)


# -- only the best classes ---------------------------------------------------------------------------------------------


def joined(
    classes: list[np.ndarray], likely: list[np.ndarray] | None = None, **arguments: Any
) -> list[list[np.ndarray]]:
    def define() -> Any:
        given = [fn.external_source(name="classes", ndim=1)]
        if likely is not None:
            given.append(fn.external_source(name="likely", ndim=1))
        return tuple(fn.ctc_decode(*given, **arguments))

    feeds = {"classes": classes} if likely is None else {"classes": classes, "likely": likely}
    return outputs(define, **feeds)


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize("blank", [0, 2, -1])
def test_best_classes_give_what_their_scores_give(dtype: Any, blank: int) -> None:
    samples = [logits(40, 6), logits(0, 6), logits(3, 6), logits(200, 6)]
    probabilities = [np.exp(logarithms(own)).astype(np.float32) for own in samples]
    best = [own.argmax(axis=1).astype(dtype) for own in samples]
    likely = [own.max(axis=1, initial=0).astype(np.float32) for own in probabilities]
    vocabulary = ["a", "b", "c", "d", "é", "f"]
    expected = decoded(samples, blank=blank, vocabulary=vocabulary)
    found = joined(best, likely, blank=blank, vocabulary=vocabulary)
    for output, own in zip(expected, found, strict=True):
        for sample, other in zip(output, own, strict=True):
            assert sample.dtype == other.dtype
            np.testing.assert_allclose(other, sample, rtol=1e-5, atol=1e-5)
    without = joined(best, blank=blank, vocabulary=vocabulary)
    assert [own.tolist() for own in without[0]] == [own.tolist() for own in expected[0]]
    assert all((own == 1).all() for own in without[2])


def test_a_length_and_samples_that_end_and_begin_alike() -> None:
    tokens, _, _ = joined([np.array([1, 1, 2, 0, 3]), np.array([2, 2, 3, 3, 4])], length=3)
    assert [own.tolist() for own in tokens] == [[1, 2], [2, 3]]


@pytest.mark.parametrize(
    ("classes", "likely", "arguments", "told"),
    [
        (np.array([1, 7]), None, {"vocabulary": ["", "a"]}, "Class 7 is not between 0 and 1"),
        (np.array([1, -7]), None, {}, "Class -7 is not between"),
        (
            np.array([1, 2]),
            np.array([1, np.nan], np.float32),
            {},
            "probability of class 2 must be 0 or more, and finite. Got: nan",
        ),
        (np.array([1, 2]), np.array([1], np.float32), {}, r"have the shape \(steps,\). Got: \[2\] and \[1\]"),
        (np.array([1, 2]), None, {"blank": -1}, "pass `vocabulary`, whose length is their number"),
        (np.array([1, 2]), None, {"beam_width": 2}, "`beam_width` needs the scores of all classes"),
        (np.array([1, 2], np.float32), np.array([1, 1], np.float32), {}, "the first must be the best classes"),
    ],
)
def test_classes_that_are_refused(
    classes: np.ndarray, likely: np.ndarray | None, arguments: dict[str, Any], told: str
) -> None:
    with pytest.raises(RuntimeError, match=told):
        joined([classes], None if likely is None else [likely], **arguments)
