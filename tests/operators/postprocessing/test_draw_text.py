"""`draw_text` sets the pixels of a bitmap font's characters, and no others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from one_batch import isolated, outputs

from penstock import fn
from penstock.errors import OperatorError
from penstock.operators.postprocessing.draw_text import _FONT

RNG = np.random.default_rng(44)
IMAGES = [RNG.integers(0, 200, shape, np.uint8) for shape in ((60, 90, 3), (40, 30, 3), (25, 50, 3))]
TEXTS = [["cat", "Ünï"], [], ["a longer one", "", "Ж"]]
POSITIONS = [
    np.array([[5, 6], [20.4, 30.6]], np.float32),
    np.zeros((0, 2), np.float32),
    np.array([[-4, -5], [10, 10], [45, 20]], np.float32),
]
LETTER_A = """
.........
.........
.........
.........
....#....
...#.#...
...#.#...
...#.#...
..#...#..
..#####..
..#...#..
.#.....#.
.#.....#.
.#.....#.
.........
.........
.........
.........
"""
_CODES, _ROWS = (np.load(_FONT)[name] for name in ("codes", "rows"))


def rows(texts: list[str]) -> np.ndarray:
    encoded = [text.encode() for text in texts]
    longest = max(map(len, encoded), default=0)
    return np.array([list(text.ljust(longest, b"\0")) for text in encoded], np.uint8).reshape(len(texts), longest)


def bitmap(text: str) -> np.ndarray:
    numbers = [int(np.flatnonzero(ord(letter) == _CODES)[0]) for letter in text]
    letters = [_ROWS[number][:, None] >> np.arange(8, -1, -1) & 1 for number in numbers]
    return np.hstack([np.zeros((18, 0), int), *letters]).astype(bool)


def written(
    image: np.ndarray,
    texts: list[str],
    corners: np.ndarray,
    background: list[int] | None = None,
    color: tuple[int, ...] = (255, 255, 255),
    scale: int = 1,
) -> np.ndarray:
    # Draw on a canvas with a margin, and cut the image out of it.
    canvas = np.pad(image, ((400, 400), (400, 400), (0, 0)))
    for text, (left, top) in zip(texts, np.rint(corners).astype(int) + 400):
        bits = np.kron(bitmap(text), np.ones((scale, scale), bool))
        region = canvas[top : top + bits.shape[0], left : left + bits.shape[1]]
        if background is not None:
            region[...] = background
        region[bits] = color
    return canvas[400:-400, 400:-400]


def draw(
    images: list[np.ndarray] = IMAGES,
    positions: list[np.ndarray] = POSITIONS,
    texts: list[np.ndarray] | None = None,
    scores: list[np.ndarray] | None = None,
    **arguments: Any,
) -> Any:
    given = {"images": images, "positions": positions, "texts": texts or [rows(own) for own in TEXTS]}
    if scores is not None:
        given["scores"] = scores

    def define() -> Any:
        images, *others = (
            fn.external_source(name=name, ndim=arrays[0].ndim, layout="HWC" if name == "images" else None)
            for name, arrays in given.items()
        )
        return fn.draw_text(images, *others, **arguments)

    return outputs(define, **given)[0]


def test_the_font_has_the_letter() -> None:
    np.testing.assert_array_equal(bitmap("A"), [[dot == "#" for dot in row] for row in LETTER_A.split()])


@pytest.mark.parametrize("scale", [1, 3])
@pytest.mark.parametrize("background", [None, [0, 20, 90]])
def test_texts_at_points(scale: int, background: list[int] | None) -> None:
    for own, image, texts, corners in zip(draw(scale=scale, background=background), IMAGES, TEXTS, POSITIONS):
        np.testing.assert_array_equal(own, written(image, texts, corners, background, scale=scale))


def test_labels_and_scores_beside_boxes() -> None:
    # The first label is above its box; the second inside, as there is no room above.
    boxes = np.array([[3, 30, 50, 50], [40, 17, 60, 55]], np.float32)
    (own,) = draw(
        IMAGES[:1],
        [boxes],
        [np.array([1, 0], np.int32)],
        [np.array([0.126, 1], np.float32)],
        names=["dog", "é"],
        colors=[255, 0, 0, 1, 2, 3],
    )
    expected = written(IMAGES[0], ["é 13%"], np.array([[3, 12]]), color=(1, 2, 3))
    np.testing.assert_array_equal(own, written(expected, ["dog 100%"], np.array([[40, 17]]), color=(255, 0, 0)))


def test_one_string() -> None:
    (own,) = draw(IMAGES[:1], [np.array([[2, 3]], np.float32)], [np.frombuffer(b"one", np.uint8)])
    np.testing.assert_array_equal(own, written(IMAGES[0], ["one"], np.array([[2, 3]])))


@pytest.mark.parametrize(
    ("text", "shown"), [("\u6f22\U0001f600", "\ufffd\ufffd"), ("e\u0301", "é"), ("a\nb", "a\ufffdb")]
)
def test_characters_without_a_glyph(text: str, shown: str) -> None:
    (own,) = draw(IMAGES[:1], [np.array([[2, 3]], np.float32)], [rows([text])])
    np.testing.assert_array_equal(own, written(IMAGES[0], [shown], np.array([[2, 3]])))


@pytest.mark.parametrize(
    ("bad", "told"),
    [
        ({"positions": np.zeros((2, 3), np.float32)}, r"shape \(texts, 2\) or \(texts, 4\)"),
        ({"positions": np.array([[0, 0], [1, np.nan]], np.float32)}, "Position 1 has a coordinate that is NaN"),
        ({"positions": np.zeros((1, 2), np.float32)}, "1 positions for 2 texts"),
        ({"texts": np.array([[97, 0], [0xC3, 97]], np.uint8)}, "Text 1 is not UTF-8"),
        ({"scores": np.array([0.5, np.nan], np.float32)}, "score is nan"),
        ({"scores": np.array([0.5], np.float32)}, r"Scores must have the shape \(texts,\)"),
    ],
)
def test_a_sample_with_a_bad_input_fails_alone(bad: dict[str, np.ndarray], told: str) -> None:
    def define() -> Any:
        images = fn.external_source(name="images", layout="HWC")
        others = [fn.external_source(name=name, ndim=ndim) for name, ndim in inputs.items()]
        return fn.draw_text(images, *others)

    inputs = {"positions": 2, "texts": 2, "scores": 1}
    good = {"positions": POSITIONS[0], "texts": rows(TEXTS[0]), "scores": np.array([0.1, 0.2], np.float32)}
    given = {name: [array, bad.get(name, array), array] for name, array in good.items()}
    received, failures = isolated(define, images=[IMAGES[0]] * 3, **given)
    assert list(failures) == [1]
    with pytest.raises(OperatorError, match=told):
        raise failures[1]
    np.testing.assert_array_equal(received[0][2], written(IMAGES[0], ["cat 10%", "Ünï 20%"], POSITIONS[0]))


def test_a_label_without_a_name_is_refused() -> None:
    with pytest.raises(OperatorError, match="Label 1 is 2, but `names` has only 2 names"):
        draw(IMAGES[:1], POSITIONS[:1], [np.array([0, 2], np.int32)], names=["a", "b"])


def test_labels_need_names() -> None:
    with pytest.raises(OperatorError, match="to draw labels, pass `names`"):
        draw(IMAGES[:1], POSITIONS[:1], [np.array([0, 2], np.int32)])


@pytest.mark.parametrize("arguments", [{"scale": 0}, {"colors": [256, 0, 0]}, {"colors": [1, 2]}, {"background": []}])
def test_arguments_that_are_refused(arguments: dict[str, Any]) -> None:
    with pytest.raises((ValueError, OperatorError), match=next(iter(arguments))):
        draw(**arguments)
