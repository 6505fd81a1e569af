"""Passes do not change results."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from penstock import Pipeline, fn, math, pipeline_def, types
from penstock.passes import apply_passes


def operators_of(pipeline: Pipeline) -> list[str]:
    pipeline.build()
    return [step.node.schema.name for step in pipeline.executor.plan.operators]


def test_constants_are_folded() -> None:
    @pipeline_def(batch_size=2, num_threads=1)
    def define() -> Any:
        table = types.Constant(np.arange(4, dtype=np.float32), device="cpu")
        return fn.external_source(lambda: [np.float32(i) for i in range(2)]) + math.sqrt(table * 2)

    pipeline = define()
    assert operators_of(pipeline).count("_ArithmeticGenericOp") == 1
    expected = np.sqrt(np.arange(4, dtype=np.float32) * 2)
    for index, sample in enumerate(pipeline.run()[0]):
        assert np.allclose(np.array(sample), expected + index)


def test_matrices_of_constants_are_folded() -> None:
    @pipeline_def(batch_size=2, num_threads=1, seed=1)
    def define(angle: Any) -> Any:
        turned = fn.transforms.rotation(angle=angle() if callable(angle) else angle, center=[1.0, 2.0])
        return fn.transforms.translation(fn.transforms.scale(turned, scale=[2.0, 3.0]), offset=[4.0, 5.0])

    assert operators_of(define(30.0)) == ["Constant"]
    folded, plain = define(30.0).run()[0], define(30.0, passes=[]).run()[0]
    assert (folded.layout(), folded.dtype, folded.shape()) == (plain.layout(), plain.dtype, plain.shape())
    assert np.array_equal(folded.as_array(), plain.as_array())
    assert len(operators_of(define(lambda: fn.random.uniform(range=[0.0, 9.0])))) == 4


def test_random_operators_are_not_folded() -> None:
    @pipeline_def(batch_size=2, num_threads=1)
    def define() -> Any:
        return fn.random.uniform() + 0.0

    assert "random__Uniform" in operators_of(define())


@pytest.mark.parametrize(("condition", "expected"), [(True, 8), (False, 7)])
def test_constants_are_split_by_constants(condition: bool, expected: int) -> None:
    @pipeline_def(batch_size=2, num_threads=1, enable_conditionals=True)
    def define() -> Any:
        number = types.Constant(7, device="cpu")
        if types.Constant(condition, device="cpu"):
            number = number + 1
        return number

    pipeline = define()
    pipeline.build()
    assert [np.array(sample).item() for sample in pipeline.run()[0]] == [expected] * 2


def test_errors_in_constants_are_reported_when_running() -> None:
    @pipeline_def(batch_size=2, num_threads=1)
    def define() -> Any:
        return types.Constant(np.int32([1]), device="cpu") // types.Constant(np.int32([0]), device="cpu")

    pipeline = define()
    pipeline.build()
    try:
        pipeline.run()
    except ValueError as error:
        assert "division by zero" in str(error)  # noqa: PT017
    else:
        raise AssertionError("the division by zero went unnoticed")


@pipeline_def(batch_size=2, num_threads=1)
def folding_and_fusing() -> Any:
    images = fn.external_source(lambda: [np.zeros((9, 9, 3), np.uint8)] * 2, layout="HWC")
    images = fn.resize(images, size=types.Constant(np.float32([2, 3]), device="cpu") * 2)
    return fn.crop_mirror_normalize(images)


@pytest.mark.parametrize(
    ("passes", "what"),
    [
        (None, {"folded", "fused"}),
        (["fuse"], {"fused"}),
        (("fuse", "fold_constants"), {"folded", "fused"}),
        ([], set()),
    ],
)
def test_passes_are_chosen_by_name(passes: Any, what: set[str]) -> None:
    pipeline = folding_and_fusing(passes=passes)
    operators = operators_of(pipeline)
    assert ("_ArithmeticGenericOp" not in operators) is ("folded" in what)
    assert ("_fused__Image" in operators) is ("fused" in what)
    assert {change.what for applied in apply_passes(pipeline.graph, passes) for change in applied.changes} == what


def test_passes_run_in_their_own_order() -> None:
    assert Pipeline(passes=["fuse", "prune"]).passes == ("prune", "fuse")
    assert Pipeline().passes is None


def test_unknown_passes_are_refused_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"no pass 'polish'.*prune.*fold_constants.*fuse"):
        Pipeline(batch_size=1, num_threads=1, passes=["fuse", "polish"])
    with pytest.raises(TypeError, match="list of names"):
        Pipeline(batch_size=1, num_threads=1, passes="fuse")


def test_passes_are_not_saved() -> None:
    saved = folding_and_fusing().serialize()
    assert folding_and_fusing(passes=[]).serialize() == saved
    assert Pipeline.deserialize(saved, passes=[]).passes == ()
