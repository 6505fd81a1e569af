"""`ctc_decode`: the text of a recognizer's scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from penstock.data_types import FLOAT, INT32, INT64, UINT8
from penstock.operators.postprocessing._rows import (
    Rows,
    RowsOperator,
    Tables,
    check_real,
    check_type,
    elements_of,
    firsts_of,
)
from penstock.schema import Argument, Input, OutputSpec, Samples, Schema, Workspace, register_operator
from penstock.schema.example_data import Example, ExampleSamples
from penstock.schema.sharing import share
from penstock.tensors.places import places_in_type

MAX_BEAM_WIDTH = 256


def _scores(layout: str = "") -> ExampleSamples:
    def make(index: int) -> np.ndarray:
        return np.random.default_rng([index, 7]).normal(0, 2, ((9, 4, 12)[index % 3], 4)).astype(np.float32)

    return ExampleSamples(make, bad=np.full((5, 4), np.nan, np.float32))


@dataclass(frozen=True)
class _Texts:
    """The texts of classes.

    Attributes:
        text: the texts in UTF-8, one after the other, uint8.
        firsts: where each begins, followed by the end of the last, int64.
    """

    text: np.ndarray
    firsts: np.ndarray

    @classmethod
    def of(cls, vocabulary: Sequence[str]) -> _Texts:
        """Return the texts of a vocabulary."""
        texts = [text.encode() for text in vocabulary]
        return cls(np.frombuffer(b"".join(texts), np.uint8), firsts_of(np.array(list(map(len, texts)), np.int64)))

    def __len__(self) -> int:
        return len(self.firsts) - 1

    def joined(self, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the concatenated texts with these numbers, and their lengths."""
        begins, lengths = self.firsts[numbers], self.firsts[numbers + 1] - self.firsts[numbers]
        targets = firsts_of(lengths)
        return self.text[np.arange(targets[-1]) + np.repeat(begins - targets[:-1], lengths)], lengths


@register_operator
class CtcDecode(RowsOperator):
    """Decodes the scores of a recognizer of text or speech that was trained with CTC (connectionist temporal classification).

    Without a `beam_width`, the best class of each step is taken, and repetitions and blanks are dropped. With a
    `beam_width`, only that many prefixes of the text are kept after each step; the probability of a prefix is the sum of
    those of all paths that produce it (prefix beam search).

    Returns the text (UINT8, a string in UTF-8) if there is a `vocabulary`; then the classes (INT32), the probability of
    each class in the step in which it begins (FLOAT), and the logarithm of the probability of the path or, with
    `beam_width`, of the text (FLOAT, of shape (1,)). A sample fails if a score is NaN or +inf, or if scores are
    probabilities and one is negative.

    If a network returns only the best class of each step, pass these classes instead of scores and, as a second input,
    their probabilities, if the network returns them.

    >>> text, tokens, confidences, _ = fn.ctc_decode(logits, vocabulary=["", *"abcdefghijklmnopqrstuvwxyz "])
    >>> text, tokens, confidences, _ = fn.ctc_decode(best_classes, their_probabilities, vocabulary=characters)
    """

    schema = Schema(
        name="CtcDecode",
        inputs=(
            Input(
                "scores",
                doc="FLOAT or FLOAT16, of shape (steps, classes): logits or logarithms of probabilities; or INT32 or INT64, of shape "
                "(steps,): the best classes.",
                example=_scores,
            ),
            Input(
                "best", doc="With classes: their probabilities, FLOAT of shape (steps,); by default 1.", example=_scores
            ),
        ),
        min_inputs=1,
        arguments=(
            Argument(
                "beam_width",
                "int32",
                0,
                f"How many beginnings of the text are kept, up to {MAX_BEAM_WIDTH}; 0: only the best path is followed.",
                example=5,
            ),
            Argument("blank", "int32", 0, "The class that stands for nothing; negative: from the end."),
            Argument("length", "int32", None, "How many steps to read; by default all.", tensor=True, example=3),
            Argument(
                "probabilities", "bool", False, "Scores are probabilities.", exempt="the example's scores are logits"
            ),
            Argument(
                "vocabulary",
                "string[]",
                None,
                "The text of each class; that of the blank may be left out.",
                example=["-", "a", "b", "é"],
            ),
        ),
        outputs=lambda arguments: 3 if arguments.get("vocabulary") is None else 4,
        examples=(Example(), Example({"beam_width": 4, "vocabulary": ["a", "b", "c"], "blank": -1})),
    )

    def setup(self) -> None:
        if not 0 <= self.args["beam_width"] <= MAX_BEAM_WIDTH:
            raise ValueError(f"`beam_width` must be from 0 to {MAX_BEAM_WIDTH}. Got: {self.args['beam_width']}")
        vocabulary = self.args["vocabulary"]
        self._texts = None if vocabulary is None else _Texts.of(vocabulary)

    def describe(self, workspace: Workspace[None, Tables, Rows]) -> list[OutputSpec]:
        if _gives_classes(workspace):
            if self.args["beam_width"]:
                raise RuntimeError("`beam_width` needs the scores of all classes, not only the best classes")
            if len(workspace.inputs) > 1:
                check_type(workspace, 1, "best", FLOAT)
        elif len(workspace.inputs) > 1:
            raise RuntimeError(
                "With two inputs, the first must be the best classes, INT32 or INT64, and the second their probabilities"
            )
        else:
            check_real(workspace, 0, "scores")
        specs = [OutputSpec(INT32, "", 1), OutputSpec(FLOAT, "", 1), OutputSpec(FLOAT, "", 1)]
        return specs if self._texts is None else [OutputSpec(UINT8, "", 1), *specs]

    def infer_batch(self, samples: Samples[None, Tables, Rows]) -> tuple[Sequence[np.ndarray], Rows]:
        from penstock.operators.postprocessing._ctc_cpu import follow_best_path, search_prefixes

        if _gives_classes(samples.workspace):
            return self._join_classes(samples)
        shapes, count = samples.shapes(0), len(samples)
        if shapes.shape[1] != 2:
            raise ValueError(f"Scores must have the shape (steps, classes). Got: {shapes[0].tolist()}")
        steps, classes = self._steps(samples, shapes[:, 0]), np.ascontiguousarray(shapes[:, 1])
        blanks = self._blanks(classes)
        addresses, _owner = places_in_type(samples.workspace.inputs[0], np.float32)
        sources = addresses if samples.are_all else addresses[samples.indices]
        token_firsts = firsts_of(steps)
        tokens, confidences = np.empty(token_firsts[-1], np.int32), np.empty(token_firsts[-1], np.float32)
        counts, totals, faults = np.empty(count, np.int64), np.empty(count, np.float32), np.empty(count, np.int64)
        given = sources, steps, token_firsts, classes, blanks, self.args["probabilities"]
        found = tokens, confidences, counts, totals, faults
        width = self.args["beam_width"]

        def decode(begin: int, end: int) -> None:
            if width:
                search_prefixes(*given, width, begin, end, *found)
            else:
                follow_best_path(*given, begin, end, *found)

        share(samples.workspace, decode, steps * classes * max(width, 1))
        for place, own in zip(faults[faults >= 0].tolist(), classes[faults >= 0].tolist()):
            raise ValueError(
                f"The scores of step {place // own} give no probabilities: check the score of class {place % own}"
            )
        is_found = np.arange(len(tokens)) < np.repeat(token_firsts[:-1] + counts, steps)
        plans = self._results(tokens[is_found], confidences[is_found], totals, counts, classes, blanks)
        return plans.shapes(), plans

    def _join_classes(self, samples: Samples[None, Tables, Rows]) -> tuple[Sequence[np.ndarray], Rows]:
        """Return the results for samples that contain the best class of each step instead of scores."""
        shapes = [samples.shapes(number) for number in range(len(samples.workspace.inputs))]
        if not all(np.array_equal(own, shapes[0]) for own in shapes):
            raise ValueError(
                "Best classes, and their probabilities, must have the shape (steps,). Got: "
                f"{' and '.join(str(own[0].tolist()) for own in shapes)}"
            )
        steps, whole = self._steps(samples, shapes[0][:, 0]), shapes[0][:, 0]
        classes, owners = elements_of(samples, 0, np.int64), np.repeat(np.arange(len(samples)), whole)
        likely = elements_of(samples, 1, np.float32) if len(shapes) > 1 else np.ones(len(classes), np.float32)
        known = None if self._texts is None else len(self._texts)
        if self.args["blank"] < 0 and known is None:
            raise ValueError(
                "A negative `blank` counts from the last class: with the best classes only, pass `vocabulary`, whose length is their number"
            )
        highest = np.iinfo(np.int32).max if known is None else known - 1
        blank = self.args["blank"] if known is None or self.args["blank"] >= 0 else known + self.args["blank"]
        bad = np.flatnonzero((classes < 0) | (classes > highest))
        if len(bad):
            raise ValueError(f"Class {classes[bad[0]]} is not between 0 and {highest}")
        bad = np.flatnonzero(~((likely >= 0) & (likely < np.inf)))
        if len(bad):
            raise ValueError(
                f"The probability of class {classes[bad[0]]} must be 0 or more, and finite. Got: {likely[bad[0]]}"
            )
        firsts = firsts_of(whole)[:-1]
        is_read = np.arange(len(classes)) - firsts[owners] < steps[owners]
        is_new = np.ones(len(classes), bool)
        is_new[1:] = (classes[1:] != classes[:-1]) | (owners[1:] != owners[:-1])
        found = np.flatnonzero(is_read & is_new & (classes != blank))
        counts = np.bincount(owners[found], minlength=len(samples))
        with np.errstate(divide="ignore"):
            logarithms = np.log(likely[is_read], dtype=np.float64)
        totals = np.bincount(owners[is_read], logarithms, len(samples)).astype(np.float32)
        amounts, blanks = np.full(len(samples), known or 0), np.full(len(samples), blank)
        plans = self._results(classes[found].astype(np.int32), likely[found], totals, counts, amounts, blanks)
        return plans.shapes(), plans

    def _results(
        self,
        tokens: np.ndarray,
        confidences: np.ndarray,
        totals: np.ndarray,
        counts: np.ndarray,
        classes: np.ndarray,
        blanks: np.ndarray,
    ) -> Rows:
        """Return the results, with the texts first if there is a vocabulary.

        Args:
            tokens, confidences: of all samples, one after the other.
            totals: the logarithm of each sample's probability.
            counts, classes, blanks: each sample's number of tokens, number of classes, and blank.
        """
        tables = [tokens, confidences, totals]
        columns = [counts, counts, np.ones_like(counts)]
        if self._texts is not None:
            # The vocabulary may lack the blank.
            shifted = np.repeat(np.where(classes > len(self._texts), blanks, np.iinfo(np.int32).max), counts)
            table, lengths = self._texts.joined(tokens - (tokens > shifted))
            ends = firsts_of(lengths)[firsts_of(counts)]
            tables, columns = [table, *tables], [ends[1:] - ends[:-1], *columns]
        return Rows(tables, np.stack(columns, axis=1))

    def _steps(self, samples: Samples[None, Tables, Rows], whole: np.ndarray) -> np.ndarray:
        """Return the number of steps to read of each sample."""
        if not samples.given("length"):
            return np.ascontiguousarray(whole)
        steps = np.empty(len(whole), np.int64)
        steps[:] = samples.scalars("length")
        if (steps < 0).any() or (steps > whole).any():
            raise ValueError(f"`length` must be from 0 to {whole[0]}, the number of steps. Got: {steps[0]}")
        return steps

    def _blanks(self, classes: np.ndarray) -> np.ndarray:
        """Return the blank's class, for each sample.

        Raises:
            ValueError: a sample has no such class, or the vocabulary does not match the number of classes.
        """
        blank = self.args["blank"]
        blanks = np.full(len(classes), blank, np.int64) if blank >= 0 else classes + blank
        if (blanks < 0).any() or (blanks >= classes).any():
            raise ValueError(f"`blank` is {blank}, but there are {classes[0]} classes")
        if self._texts is not None and ((classes < len(self._texts)) | (classes > len(self._texts) + 1)).any():
            raise ValueError(f"`vocabulary` has {len(self._texts)} entries, but there are {classes[0]} classes")
        return blanks


def _gives_classes(workspace: Workspace[None, Tables, Rows]) -> bool:
    """Return whether the first input contains the best class of each step, rather than the scores of all classes."""
    batch = workspace.inputs[0]
    return batch.dtype in (INT32, INT64) and batch.ndim() == 1
