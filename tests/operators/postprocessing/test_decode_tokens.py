"""`decode_tokens` joins the texts of tokens."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from one_batch import isolated, outputs

from penstock import fn
from penstock.errors import PenstockError

WORDS = ["<s>", " the", " river", "s", "!", "\n", "é", "<|en|>"]


def decoded(*tokens: list[int], dtype: type[np.generic] = np.int64, **arguments: Any) -> list[str]:
    (found,) = outputs(
        lambda: fn.decode_tokens(fn.external_source(name="tokens", ndim=1), **arguments),
        tokens=[np.array(own, dtype) for own in tokens],
    )
    return [bytes(text).decode() for text in found]


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_texts_are_joined(dtype: type[np.generic]) -> None:
    assert decoded([1, 2, 3, 4], [], [6, 6], dtype=dtype, vocabulary=WORDS) == [" the rivers!", "", "éé"]


def test_ends_and_tokens_without_text() -> None:
    given = [[1, 2, 0, 3], [0, 1], [7, 1], [1, 2]]
    assert decoded(*given, vocabulary=WORDS, end=0) == [" the river", "", "<|en|> the", " the river"]
    assert decoded(*given, vocabulary=WORDS, skipped=[0, 1]) == [" rivers", "", "<|en|>", " river"]
    assert decoded(*given, vocabulary=WORDS, skip_from=3, strip=True)[0] == "the river<s>"
    assert decoded([5, 1, 5], vocabulary=WORDS, strip=True) == ["the"]
    assert decoded([1, 2], vocabulary=WORDS, skip_from=0) == [""]


def test_bytes_as_gpt2_writes_them() -> None:
    # A space, a newline, the two bytes of é, the first two of three bytes of the euro sign, a word, a special token, and the last byte.
    vocabulary = ["Ġ", "Ċ", "Ã", "©", "âĤ", "river", "<|endoftext|>", "¬"]
    given = [[0, 5, 2, 3], [2], [4, 7, 1], [4, 5], [5, 6]]
    assert decoded(*given, vocabulary=vocabulary, byte_level=True) == [
        " riveré",
        "\ufffd",
        "€\n",
        "\ufffdriver",
        "river<|endoftext|>",
    ]


def test_every_byte_has_one_character() -> None:
    from penstock.operators.postprocessing.decode_tokens import _byte_characters

    characters = _byte_characters()
    assert sorted(characters.values()) == list(range(256))
    assert (characters["Ġ"], characters["Ċ"], characters["!"], characters["ł"], characters["Ń"]) == (
        32,
        10,
        33,
        160,
        173,
    )


@pytest.mark.parametrize("bad", [-1, len(WORDS), 1 << 40])
def test_a_token_that_is_not_in_the_vocabulary_fails_alone(bad: int) -> None:
    (texts,), failures = isolated(
        lambda: (fn.decode_tokens(fn.external_source(name="tokens", ndim=1), vocabulary=WORDS),),
        tokens=[np.array(own) for own in ([1], [2, bad], [3])],
    )
    assert list(failures) == [1]
    with pytest.raises(PenstockError, match=f"Token {bad} is not in the vocabulary, from 0 to 7"):
        raise failures[1]
    assert [bytes(texts[number]).decode() for number in (0, 2)] == [" the", "s"]


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"end": 9}, "`end` must be from 0 to 8"),
        ({"skipped": [1, -1]}, "`skipped` must be from 0 to 8"),
        ({"skip_from": -1}, "`skip_from` must be from 0 to 8"),
    ],
)
def test_arguments_that_make_no_sense_are_refused(arguments: dict[str, Any], reason: str) -> None:
    with pytest.raises((PenstockError, ValueError), match=reason):
        decoded([1], vocabulary=WORDS, **arguments)


def test_tokens_are_whole_numbers() -> None:
    with pytest.raises(PenstockError, match="`tokens` must be INT32 or INT64, got"):
        decoded([1], dtype=np.float32, vocabulary=WORDS)
