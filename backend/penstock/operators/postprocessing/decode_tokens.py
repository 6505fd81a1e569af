"""`decode_tokens`: the text of a language model's tokens."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from penstock.data_types import INT32, INT64, UINT8, dtype_name
from penstock.operators.postprocessing._rows import Rows, RowsOperator, Tables, elements_of, firsts_of
from penstock.schema import Argument, Equivalent, Input, OutputSpec, Samples, Schema, Workspace, register_operator
from penstock.schema.example_data import Example, fixed_arrays


def _byte_characters() -> dict[str, int]:
    """Return the byte that each of GPT-2's characters stands for: printable bytes have their own character, others U+0100 and up."""
    printable = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {chr(256 + number): byte for number, byte in enumerate(others)}


@register_operator
class DecodeTokens(RowsOperator):
    """Joins the texts of tokens, as models of language and speech produce them, to a string in UTF-8 (UINT8).

    Tokens whose numbers are in `skipped` have no text; instead of a long list, `skip_from` skips all tokens from a number on. The text
    ends before the first `end`. Bytes that are not valid UTF-8, such as a character that a model did not complete, become U+FFFD. A
    sample fails if a token has no entry in the vocabulary.

    >>> text = fn.decode_tokens(tokens, vocabulary=tokens_of_gpt2, byte_level=True, end=50256, strip=True)
    """

    schema = Schema(
        name="DecodeTokens",
        inputs=(
            Input(
                "tokens",
                doc="INT32 or INT64, of shape (tokens,).",
                example=fixed_arrays([1, 2, 0], [2, 2, 1], dtype=np.int32),
            ),
        ),
        arguments=(
            Argument(
                "byte_level",
                "bool",
                False,
                "The vocabulary is of bytes, each written as the character that GPT-2 has for it: `Ġ` is a space.",
            ),
            Argument("end", "int32", None, "The token that ends the text.", example=0),
            Argument("skip_from", "int32", None, "Tokens from this number on have no text.", example=2),
            Argument("skipped", "int32[]", None, "Tokens that have no text.", example=[1]),
            Argument("strip", "bool", False, "Remove white space at both ends."),
            Argument(
                "vocabulary",
                "string[]",
                None,
                "The text of each token.",
                required=True,
                example=["a", "b", "é"],
            ),
        ),
        examples=(
            Example({"vocabulary": ["a", "b", "é"]}),
            Example({"vocabulary": [" a", "\n", "é"], "strip": True, "end": 0}),
            Example({"vocabulary": ["Ã", "©", "Ġ"], "byte_level": True, "skipped": [2]}),
        ),
        equivalents=(Equivalent("tokenizers.Tokenizer.decode", "Of vocabularies of bytes, with `byte_level=True`."),),
    )

    def setup(self) -> None:
        vocabulary = self.args["vocabulary"]
        if self.args["byte_level"]:
            bytes_of = _byte_characters()
            texts = [_as_bytes(text, bytes_of) for text in vocabulary]
        else:
            texts = [text.encode() for text in vocabulary]
        first = len(texts) if self.args["skip_from"] is None else self.args["skip_from"]
        skipped = self.args["skipped"] or []
        for name, numbers in (("skip_from", [first]), ("skipped", skipped), ("end", [self.args["end"] or 0])):
            if numbers and not 0 <= min(numbers) <= max(numbers) <= len(texts):
                raise ValueError(
                    f"`{name}` must be from 0 to {len(texts)}, the number of entries of the vocabulary. Got: {numbers}"
                )
        for number in (*skipped, *range(first, len(texts))):
            texts[number] = b""
        self._texts = texts

    def describe(self, workspace: Workspace[None, Tables, Rows]) -> list[OutputSpec]:
        batch = workspace.inputs[0]
        if len(batch) and batch.dtype not in (INT32, INT64):
            raise RuntimeError(f"`tokens` must be INT32 or INT64, got {dtype_name(batch.dtype)}")
        return [OutputSpec(UINT8, "", 1)]

    def infer_batch(self, samples: Samples[None, Tables, Rows]) -> tuple[Sequence[np.ndarray], Rows]:
        shapes = samples.shapes(0)
        if shapes.shape[1] != 1:
            raise ValueError(f"Tokens must have the shape (tokens,). Got: {shapes[0].tolist()}")
        firsts = firsts_of(shapes[:, 0]).tolist()
        tokens = elements_of(samples, 0, np.int64)
        bad = np.flatnonzero((tokens < 0) | (tokens >= len(self._texts)))
        if len(bad):
            raise ValueError(f"Token {tokens[bad[0]]} is not in the vocabulary, from 0 to {len(self._texts) - 1}")
        texts = [self._decode(tokens[first:last].tolist()) for first, last in itertools.pairwise(firsts)]
        table = np.frombuffer(bytearray(b"".join(texts)), np.uint8)
        plans = Rows([table], np.array([len(text) for text in texts], np.int64)[:, None])
        return plans.shapes(), plans

    def _decode(self, tokens: list[int]) -> bytes:
        """Return the text of a sample's tokens."""
        end = self.args["end"]
        if end is not None and end in tokens:
            tokens = tokens[: tokens.index(end)]
        text = b"".join([self._texts[token] for token in tokens]).decode(errors="replace")
        return (text.strip() if self.args["strip"] else text).encode()


def _as_bytes(text: str, bytes_of: dict[str, int]) -> bytes:
    """Return the bytes that a token's characters stand for.

    If a character stands for no byte, as in special tokens such as <|endoftext|>, the token is encoded in UTF-8 instead.
    """
    return (
        bytes([bytes_of[character] for character in text]) if all(map(bytes_of.__contains__, text)) else text.encode()
    )
