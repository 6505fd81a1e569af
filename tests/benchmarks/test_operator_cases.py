"""Every public operator is in the benchmark's table, or has a reason to be missing; and every case runs."""

from __future__ import annotations

import numpy as np
import pytest
from operator_cases import BATCH, FRAMES, PHOTO, Batches, Case, cases, unmeasured

from penstock import fn, pipeline_def
from penstock.schema.catalogue import public_operators

CASES = list(cases())


def test_every_operator_is_measured_or_has_a_reason() -> None:
    measured = {case.operator for case in CASES} - {"pipeline"}
    assert measured | set(unmeasured()) == {schema.fn_path for _, schema in public_operators()}
    assert not measured & set(unmeasured())


def test_rows_have_different_names() -> None:
    names = [(case.operator, case.title) for case in CASES]
    assert len(set(names)) == len(names)


def test_each_batch_is_new() -> None:
    batches = Batches(Case("flip", "two inputs", (PHOTO, FRAMES), lambda m, x, y: (x, y)), 4)
    first, second = batches.renewed(), batches.renewed()
    assert [sample.shape for sample in first[0]] != [sample.shape for sample in second[0]]
    assert not np.array_equal(first[1][0], second[1][0])
    batches.inputs = second
    assert batches.source(1)() is second[1]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.cases(12)
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.operator}: {case.title}")
def test_each_case_runs(case: Case) -> None:
    import penstock

    batches = Batches(case, BATCH)
    batches.inputs = batches.renewed()

    @pipeline_def(
        batch_size=BATCH, num_threads=1, device_id=None, prefetch_queue_depth=1, enable_conditionals=case.conditionals
    )
    def pipeline() -> object:
        inputs = [
            fn.external_source(source=batches.source(number), batch=True, layout=source.layout or None)
            for number, source in enumerate(case.sources)
        ]
        return case.work(penstock, *inputs)

    for output in pipeline().run():
        # Some operators split samples into several parts.
        assert output.made_of(0, BATCH) == (0, len(output))
