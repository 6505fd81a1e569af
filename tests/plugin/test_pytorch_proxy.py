"""Pipelines behind PyTorch's data loader."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader as TorchDataLoader
from torch.utils.data import Dataset

from penstock import Pipeline, fn, pipeline_def
from penstock.errors import OperatorError
from penstock.plugin.pytorch.experimental import proxy
from penstock.plugin.pytorch.loader_evaluator import LoaderEvaluator


@pipeline_def(num_threads=1, device_id=None)
def doubled() -> Any:
    return fn.external_source(name="number") * 2


@pipeline_def(num_threads=1, device_id=None)
def two() -> Any:
    left, right = fn.external_source(name="left"), fn.external_source(name="right")
    return left + right, left - right


@pipeline_def(num_threads=1, device_id=None, seed=7)
def noisy() -> Any:
    return fn.external_source(name="number") + fn.random.uniform(range=(0, 1), shape=[1])


class Numbers(Dataset[Any]):
    """A data set of pairs: the proxy's output for a number, and the number."""

    def __init__(self, transform: Any, count: int = 12) -> None:
        self.transform = transform
        self.count = count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> Any:
        if index >= self.count:
            raise IndexError
        return self.transform(np.array([index], np.float32)), index


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("deterministic", [False, True])
def test_batches_have_the_outputs_for_their_samples(workers: int, deterministic: bool) -> None:
    with proxy.DALIServer(doubled(batch_size=4), deterministic) as server:
        loader = proxy.DataLoader(server, Numbers(server.proxy), batch_size=4, num_workers=workers, shuffle=True)
        for _ in range(2):
            seen = [(data[:, 0].tolist(), labels.tolist()) for data, labels in loader]
            assert sorted(label for _, labels in seen for label in labels) == list(range(12))
            assert all(values == [2.0 * label for label in labels] for values, labels in seen)
        assert len(loader) == 3


def test_a_collate_function_of_the_programs_own() -> None:
    def collate(batch: list[tuple[Any, int]]) -> tuple[Any, list[int]]:
        references, labels = zip(*batch)
        return proxy._collate_dali_output_sample_ref_fn(references), list(labels)

    with proxy.DALIServer(doubled(batch_size=4)) as server:
        loader = TorchDataLoader(Numbers(server.proxy), batch_size=4, num_workers=1, collate_fn=collate)
        for reference, labels in loader:
            assert server.produce_data(reference).flatten().tolist() == [2.0 * label for label in labels]


def test_batches_may_be_smaller_and_the_server_starts_by_itself() -> None:
    server = proxy.DALIServer(doubled(batch_size=5))
    loader = proxy.DataLoader(server, Numbers(server.proxy), batch_size=5, num_workers=1)
    assert not server.is_running
    assert [data.shape[0] for data, _ in loader] == [5, 5, 2]
    assert server.is_running
    server.stop_thread()


def test_random_pipelines_are_reproducible_where_that_is_wanted() -> None:
    def epoch() -> list[float]:
        with proxy.DALIServer(noisy(batch_size=3), deterministic=True) as server:
            loader = proxy.DataLoader(server, Numbers(server.proxy), batch_size=3, num_workers=2)
            return [value for data, _ in loader for value in data.flatten().tolist()]

    assert epoch() == epoch()


def test_several_inputs_and_outputs_go_by_name() -> None:
    class Pairs(Numbers):
        def __getitem__(self, index: int) -> Any:
            total, difference = self.transform(left=np.float32(index), right=np.float32(1))
            return {"total": total, "nested": [difference]}

    with proxy.DALIServer(two(batch_size=4)) as server:
        batches = list(proxy.DataLoader(server, Pairs(server.proxy), batch_size=4, num_workers=2))
        with pytest.raises(ValueError, match=r"Expected signature is: \(\*, left, right\)\. Got: \(float\), error"):
            server.proxy(1.0)
    assert torch.cat([batch["total"] for batch in batches]).tolist() == [index + 1.0 for index in range(12)]
    assert torch.cat([batch["nested"][0] for batch in batches]).tolist() == [index - 1.0 for index in range(12)]


class Pair(NamedTuple):
    one: Any
    other: Any


def test_references_are_replaced_wherever_they_are() -> None:
    with proxy.DALIServer(doubled(batch_size=2)) as server:
        loader = TorchDataLoader(Numbers(server.proxy, 2), batch_size=2)
        reference, labels = next(iter(loader))
        assert isinstance(reference, proxy.DALIOutputBatchRef)
        around: dict[str, Any] = {"pair": Pair(reference, 1), "object": SimpleNamespace(inside=[reference])}
        around["itself"] = around
        data = server.produce_data(around)
        assert data is around
        assert data["itself"] is around
        assert data["pair"].one.tolist() == [[0.0], [2.0]]
        assert data["object"].inside[0] is data["pair"].one
        assert server.produce_data(labels) is labels


def test_an_error_is_that_of_its_batch() -> None:
    class Spoilt(Numbers):
        def __getitem__(self, index: int) -> Any:
            number = np.array([index] * (2 if index == 4 else 1), np.float32)
            return self.transform(number), index

    @pipeline_def(num_threads=1, device_id=None)
    def reshaped() -> Any:
        return fn.reshape(fn.external_source(name="number"), shape=[1])

    with proxy.DALIServer(reshaped(batch_size=3)) as server:
        batches = iter(proxy.DataLoader(server, Spoilt(server.proxy), batch_size=3, num_workers=2))
        assert next(batches)[1].tolist() == [0, 1, 2]
        with pytest.raises(OperatorError, match="reshape"):
            next(batches)
        assert [labels.tolist() for _, labels in batches] == [[6, 7, 8], [9, 10, 11]]


def test_a_batch_of_other_samples_is_refused_and_the_next_one_is_right() -> None:
    server = proxy.DALIServer(doubled(batch_size=2))
    one, other = (server.proxy(np.ones(1, np.float32)) for _ in range(2))
    with pytest.raises(RuntimeError, match="in order, but position 0"):
        torch.utils.data.default_collate([other, one])
    again = [server.proxy(np.ones(1, np.float32)) for _ in range(2)]
    assert torch.utils.data.default_collate(again).output_idx == 0


def test_what_is_no_pipeline_or_has_no_inputs_is_refused() -> None:
    with pytest.raises(TypeError, match="Expected an NVIDIA DALI pipeline"):
        proxy.DALIServer("pipeline")  # type: ignore[arg-type]
    pipe = Pipeline(1, 1, None)
    with pipe:
        pipe.set_outputs(fn.external_source(lambda: [np.zeros(1)]))
    with pytest.raises(RuntimeError, match="doesn't have any inputs"):
        proxy.DALIServer(pipe)


def test_evaluator_measures_and_replays(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    loader = TorchDataLoader(Numbers(lambda number: number), batch_size=4)
    measured = LoaderEvaluator(loader, metrics_file=str(tmp_path / "metrics.json"))
    assert measured.get_metrics() == {}
    batches = [labels.tolist() for _, labels in measured]
    assert batches == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]]
    metrics = measured.get_metrics()
    assert (metrics["mode"], metrics["total_batches"], len(metrics["batch_times"])) == ("log", 3, 3)
    assert metrics["min_batch_time"] <= metrics["avg_batch_time"] <= metrics["max_batch_time"] <= metrics["total_time"]
    measured.save_metrics()
    assert json.loads((tmp_path / "metrics.json").read_text()) == metrics
    replayed = LoaderEvaluator(loader, mode="replay", num_cached_batches=2)
    assert [labels.tolist() for _, labels in replayed] == [batches[1], batches[2], batches[1]]
    replayed.print_summary()
    assert "Cache size: 2/2" in capsys.readouterr().out


def test_proxies_travel_to_spawned_workers() -> None:
    with proxy.DALIServer(doubled(batch_size=4)) as server:
        loader = proxy.DataLoader(
            server, Numbers(server.proxy, 4), batch_size=4, num_workers=1, multiprocessing_context="spawn"
        )
        assert next(iter(loader))[0].tolist() == [[0.0], [2.0], [4.0], [6.0]]
