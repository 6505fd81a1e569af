"""Records the batches of DALI's iterators; to be run in an environment with DALI, from the repository's root.

python tests/golden/make_iterators.py
"""

from __future__ import annotations

import json
import logging
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

import nvidia.dali as dali
from nvidia.dali.plugin.base_iterator import LastBatchPolicy, _DaliBaseIterator

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "iterators"))
from cases import EPOCHS, cases  # noqa: E402
from member_cases import BATCH, SAMPLES, trace  # noqa: E402


class LabelIterator(_DaliBaseIterator):
    """A minimal framework iterator, which returns the labels of each pipeline's batch as a list."""

    def __next__(self) -> list[list[int]]:
        self._ever_consumed = True
        labels = [batch[0].as_array().reshape(-1).tolist() for batch in self._get_outputs()]
        self._schedule_runs()
        self._advance_and_check_drop_last()
        if self._reader_name:
            short, left = self._remove_padded()
            if short is not False and short.any():
                return [pipe_outputs[:count] for pipe_outputs, count in zip(labels, left)]
        return labels


def record(case: dict[str, Any], files: list[str]) -> dict[str, Any]:
    """Record the iterator's results in each epoch, and its reported length."""
    pipelines = []
    for shard in case["pipelines"]:
        pipe = dali.Pipeline(case["batch_size"], 1, None)
        with pipe:
            _, labels = dali.fn.readers.file(
                name="reader",
                files=files[: case["samples"]],
                labels=list(range(case["samples"])),
                shard_id=shard,
                num_shards=case["shards"],
                pad_last_batch=case["pad"],
                stick_to_shard=case["stick"],
            )
            pipe.set_outputs(labels)
        pipelines.append(pipe)
    policy = LastBatchPolicy[case["policy"]]
    if case["size"] > 0:
        iterator = LabelIterator(
            pipelines, size=case["size"], auto_reset=True, last_batch_policy=policy, last_batch_padded=case["pad"]
        )
    else:
        iterator = LabelIterator(pipelines, reader_name="reader", auto_reset=True, last_batch_policy=policy)
    epochs, lengths = [], []
    for _ in range(EPOCHS):
        lengths.append(len(iterator))
        epochs.append(list(iterator))
    return dict(case, epochs=epochs, lengths=lengths)


def record_members(files: list[str]) -> list[Any]:
    """Record the members of iterators, batch by batch."""

    def pipeline(shard: int, shards: int, pad: bool, stick: bool) -> dali.Pipeline:
        made = dali.Pipeline(BATCH, 1, None)
        with made:
            _, labels = dali.fn.readers.file(
                name="reader",
                files=files[:SAMPLES],
                labels=list(range(SAMPLES)),
                shard_id=shard,
                num_shards=shards,
                pad_last_batch=pad,
                stick_to_shard=stick,
            )
            made.set_outputs(labels)
        return made

    return trace(LabelIterator, pipeline, LastBatchPolicy)


def main() -> None:
    """Write ``iterators/epochs.json`` and ``iterators/members.json``."""
    logging.disable()
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        files = []
        for number in range(16):
            path = Path(folder) / f"{number}.bin"
            path.write_bytes(b"x")
            files.append(str(path))
        recorded = [record(case, files) for case in cases()]
        members = record_members(files)
    lines = ",\n".join(json.dumps(case) for case in recorded)
    (HERE / "iterators" / "epochs.json").write_text(f"[\n{lines}\n]\n", encoding="utf-8")
    lines = ",\n".join(json.dumps(each) for each in members)
    (HERE / "iterators" / "members.json").write_text(f"[\n{lines}\n]\n", encoding="utf-8")


if __name__ == "__main__":
    main()
