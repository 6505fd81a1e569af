"""`if`, `and`, `or`, `not` and conditional expressions on nodes choose a branch for each sample."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from choices import flag, number, values

from penstock import fn, pipeline_def, types
from penstock.pipeline import do_not_convert


def constants() -> Any:
    if flag():
        y = 1
    else:
        y = 2
    return y


def tuples() -> Any:
    n = number()
    if flag():
        y = (n, n + 1)
    else:
        y = (n + 2, n + 3)
    return y[0], y[1]


def early_return() -> Any:
    n = number()
    if flag():
        return n
    return n * 10


def chain() -> Any:
    n = number()
    if n == 0:
        y = n + 10
    elif n == 1:
        y = n + 20
    elif n == 2:
        y = n + 30
    else:
        y = n
    return y


def nested() -> Any:
    n = number()
    if n > 0:
        if flag():
            y = n + 100
        else:
            y = n + 200
    else:
        y = n
    return y


def doubled_above_one(n: Any) -> Any:
    if n > 1:
        return n * 2
    return n


class Holder:
    value: Any = None

    def choose(self, n: Any) -> Any:
        if n > 1:
            self.value = n + 1
        else:
            self.value = n + 2
        return self.value


def loop() -> Any:
    n = number()
    for i in range(3):
        if n > i:
            n = n + 10
    return n


def dictionary() -> Any:
    n = number()
    if n > 1:
        d = {"a": n}
    else:
        d = {"a": n + 1}
    return d["a"]


def only_one_branch() -> Any:
    n = number()
    y = n
    if n > 1:
        y += 5
    return y


class Chooser:
    def __init__(self, n: Any) -> None:
        self.n = n

    def __call__(self, condition: Any) -> Any:
        if condition:
            return self.n
        return -self.n


def passed_on() -> Any:
    def larger(condition: Any, n: Any) -> Any:
        if condition:
            n = n + 10
        return n

    return tuple(map(functools.partial(larger, flag()), [number(), -number()]))


def item_of_variable() -> Any:
    items, index = [number(), number()], 1
    if flag():
        items[index] = items[index] + 5
        items[-2] = items[0] * 2
    return items[0], items[1]


def unused_in_one_branch() -> Any:
    n = number()
    if n > 1:
        unused = n + 1  # noqa: F841
    return n


@pytest.mark.parametrize(
    ("define", "expected"),
    [
        (constants, [2, 1, 2, 1]),
        (tuples, [[2, 1, 4, 3], [3, 2, 5, 4]]),
        (early_return, [0, 1, 20, 3]),
        (chain, [10, 21, 32, 3]),
        (nested, [0, 101, 202, 103]),
        (lambda: doubled_above_one(number()), [0, 1, 4, 6]),
        (lambda: Holder().choose(number()), [2, 3, 3, 4]),
        (loop, [0, 31, 32, 33]),
        (dictionary, [1, 2, 2, 3]),
        (only_one_branch, [0, 1, 7, 8]),
        (unused_in_one_branch, [0, 1, 2, 3]),
        (lambda: Chooser(number())(flag()), [0, 1, -2, 3]),
        (lambda: functools.partial(Chooser.__call__, Chooser(number()))(flag()), [0, 1, -2, 3]),
        (passed_on, [[0, 11, 2, 13], [0, 9, -2, 7]]),
        (item_of_variable, [[0, 2, 2, 6], [0, 6, 2, 8]]),
        (lambda: number() if flag() else -number(), [0, 1, -2, 3]),
        (lambda: flag() and (number() > 1), [False, False, False, True]),
        (lambda: flag() or (number() > 1), [False, True, True, True]),
        (lambda: not number(), [True, False, False, False]),
        (lambda: True and number() > 1, [False, False, True, True]),
    ],
)
def test_each_sample_takes_its_branch(define: Callable[[], Any], expected: Any) -> None:
    assert values(define) == expected


def one_branch_only() -> Any:
    if flag():
        y = number()
    return y


def no_else_return() -> Any:  # noqa: RET503  # what is tested
    if flag():
        return number()


def return_of_none() -> Any:
    if flag():
        return number()
    return None


def return_in_loop() -> Any:
    for i in range(3):
        if flag():
            return number() + i
    return number()


def typed_constants() -> Any:
    if flag():
        y = types.Constant(1)
    else:
        y = types.Constant(2)
    return y


def text_or_nothing() -> Any:
    if flag():
        y = "a"
    return y


def structures_in_elif() -> Any:
    n = number()
    if n > 2:
        y: Any = n
    elif n > 1:
        y = (n, n)
    else:
        y = n
    return y


def different_structures() -> Any:
    n = number()
    if flag():
        y: Any = (n, n)
    else:
        y = n
    return y


def text_results() -> Any:
    if flag():
        y = "a"
    else:
        y = "b"
    return y


def different_types() -> Any:
    n = number()
    if flag():
        y = n
    else:
        y = fn.cast(n, dtype=types.FLOAT)
    return y


def node_in_while() -> Any:
    n = number()
    while n > 1:
        n = n - 1
    return n


def vector_condition() -> Any:
    x = fn.external_source(lambda: [np.array([i], np.int32) for i in range(4)])
    if x:
        y = 1
    else:
        y = 2
    return y


class Unset:
    """An object that has its attribute only after it has been set."""

    value: Any


def attribute_of_one_branch() -> Any:
    holder = Unset()
    if flag():
        holder.value = number()
    return holder.value


@pytest.mark.parametrize(
    ("define", "kind"),
    [
        (attribute_of_one_branch, RuntimeError),
        (one_branch_only, RuntimeError),
        (no_else_return, RuntimeError),
        (return_of_none, ValueError),
        (return_in_loop, RuntimeError),
        (typed_constants, TypeError),
        (text_or_nothing, TypeError),
        (structures_in_elif, ValueError),
        (different_structures, ValueError),
        (text_results, TypeError),
        (different_types, RuntimeError),
        (node_in_while, TypeError),
        (vector_condition, RuntimeError),
        (lambda: number() and flag(), RuntimeError),
    ],
)
def test_what_cannot_be_merged_is_refused(define: Callable[[], Any], kind: type[Exception]) -> None:
    with pytest.raises(kind):
        values(define)


def test_functions_that_are_not_to_be_converted() -> None:
    @do_not_convert
    def plain(n: Any) -> Any:
        return n if n is not None else 0

    assert values(lambda: plain(number())) == [0, 1, 2, 3]


def test_randomness_does_not_depend_on_the_branch() -> None:
    def drawn() -> Any:
        if flag():
            y = fn.random.uniform(range=[0, 1], seed=3)
        else:
            y = fn.random.uniform(range=[0, 1], seed=3)
        return y

    def whole() -> Any:
        return fn.random.uniform(range=[0, 1], seed=3) * 1.0

    assert values(drawn) == values(whole)


def test_samples_keep_their_places_in_errors() -> None:
    def define() -> Any:
        image = fn.external_source(lambda: [np.zeros((4 if i != 3 else 1, 4, 3), np.uint8) for i in range(4)])
        if flag():
            y = fn.crop(image, crop=(2, 2))
        else:
            y = fn.crop(image, crop=(2, 2), crop_pos_x=0.0)
        return y

    pipeline = pipeline_def(define, batch_size=4, num_threads=1, enable_conditionals=True, prefetch_queue_depth=1)()
    pipeline.build()
    pipeline._session.feed_from_sources(pipeline.executor)
    result = pipeline.executor.run_once(isolate=True)
    assert list(result.failures) == [3]
    assert [shape[0] for shape in result.outputs[0].shapes] == [2, 2, 2, 0]


def test_conditionals_can_be_enabled_at_the_call() -> None:
    @pipeline_def
    def chosen(a: int, b: int) -> Any:
        return a if flag() else b

    pipe = chosen(10, b=4, enable_conditionals=True, batch_size=4, num_threads=1)
    assert pipe.run()[0].as_array().tolist() == [4, 10, 4, 10]
    with pytest.raises(TypeError, match="enable_conditionals=True"):
        chosen(10, 4, batch_size=4, num_threads=1)


def test_one_of_several_lambdas_in_a_statement() -> None:
    first, second = (lambda n: n if flag() else 0), (lambda n: n if not flag() else 7)
    assert values(lambda: second(number())) == [0, 7, 2, 7]
    assert values(lambda: first(number())) == [0, 1, 0, 3]


# fmt: off
try: IN_A_BLOCK_OF_ONE_LINE = lambda: number() if flag() else -number()  # noqa: E701, E731
finally: pass  # noqa: E701
# fmt: on


def test_functions_whose_lines_alone_are_no_program() -> None:
    def with_text_at_the_margin() -> Any:
        text = """
at the margin"""
        y = number() + len(text)
        if flag():
            y = y + 100
        return y

    assert values(IN_A_BLOCK_OF_ONE_LINE) == [0, 1, -2, 3]
    assert values(with_text_at_the_margin) == [14, 115, 16, 117]


def test_errors_tell_the_users_lines() -> None:
    def helper() -> Any:
        raise ValueError("no good")

    def define() -> Any:
        if flag():
            y = helper()
        else:
            y = 1
        return y

    with pytest.raises(ValueError, match=r"in user code(.|\n)*in define(.|\n)*in helper(.|\n)*ValueError: no good"):
        values(define)


def test_parts_of_constants_are_not_folded() -> None:
    def define() -> Any:
        table, row = types.Constant(np.array([True, False]), device="cpu"), types.Constant(np.int32(0), device="cpu")
        return table[row] or table[row + 42]

    assert values(define) == [True] * 4


def deleted_in_a_branch() -> Any:
    x = number()
    if flag():
        y = x + 1
        del y
        z = x
    else:
        z = -x
    return z


def deleted_and_read() -> Any:
    if flag():
        y = number()
        del y
    else:
        y = number()
    return y


def test_variables_can_be_deleted() -> None:
    assert [abs(value) for value in values(deleted_in_a_branch)] == values(number)
    with pytest.raises(RuntimeError, match="Variable 'y' must also be initialized in the `if` branch"):
        values(deleted_and_read)


def test_pipelines_themselves_are_converted() -> None:
    with pytest.raises(ValueError, match="do_not_convert"):
        do_not_convert(pipeline_def(number))
    with pytest.raises(ValueError, match="do_not_convert"):
        pipeline_def(do_not_convert(lambda: number()))


@pytest.mark.parametrize(
    ("define", "kind", "text"),
    [
        (one_branch_only, RuntimeError, "must also be initialized in the `else` branch"),
        (no_else_return, RuntimeError, "must also have a return statement"),
        (vector_condition, RuntimeError, "1-d input as a condition of the `if` statement"),
        (lambda: number() and flag(), RuntimeError, "of type `int32` as the left argument in logical expression"),
        (lambda: not fn.stack(flag(), flag()), RuntimeError, "1-d input in logical expression"),
        (lambda: flag().gpu() or flag(), RuntimeError, "Got a GPU input"),
        (different_types, RuntimeError, "distinct types: int"),
    ],
)
def test_what_messages_say(define: Callable[[], Any], kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=text):
        values(define)


@pytest.mark.parametrize(("define", "line"), [(vector_condition, "if "), (different_types, "if ")])
def test_messages_name_the_line_of_the_condition(define: Callable[[], Any], line: str) -> None:
    with pytest.raises(RuntimeError, match=rf"in {define.__name__}\n    {line}"):
        values(define)


def test_chained_comparisons() -> None:
    asked = []

    def limit(value: Any) -> Any:
        asked.append(value)
        return value

    def define() -> Any:
        x = number()
        if 1 < limit(x) <= limit(2):
            x = x + 100
        if 0 < limit(5) < 3 or 3 > x > 0:
            x = x + 10
        return x

    assert values(define) == [0, 11, 102, 3]
    assert len(asked) == 3


TOTAL: Any = None


def test_variables_of_the_module_and_of_outer_functions() -> None:
    outer: Any = None

    def define() -> Any:
        global TOTAL
        nonlocal outer
        TOTAL = outer = number()
        if TOTAL > 1:
            TOTAL = TOTAL + 10
            outer = outer + 20
        return TOTAL, outer

    assert values(define) == [[0, 1, 12, 13], [0, 1, 22, 23]]


def test_errors_show_the_innermost_line_of_a_function_alone() -> None:
    @pipeline_def(batch_size=1, num_threads=1, device_id=None, enable_conditionals=True)
    def graph(early: bool, size: object) -> Any:
        value = fn.random.uniform(seed=1)
        if early:
            return value
        if value > -2:
            value = fn.resize(value, size=size)
        return value

    for size in (2, "invalid"):
        with pytest.raises(Exception, match=r"fn\.resize") as told:
            graph(False, size).run()
        assert str(told.value).count(", in graph") == 1


def test_constant_indices_in_a_branch_without_samples() -> None:
    @pipeline_def(batch_size=2, num_threads=1, device_id=None, enable_conditionals=True)
    def pipeline() -> Any:
        taken = fn.external_source(lambda: [np.bool_(False)] * 2)
        numbers = fn.external_source(lambda: [np.int32(1), np.int32(2)])
        if taken:
            numbers = fn.permute_batch(numbers, indices=[1, 0])
        return numbers

    (numbers,) = pipeline().run()
    assert [int(np.array(number)) for number in numbers] == [1, 2]
