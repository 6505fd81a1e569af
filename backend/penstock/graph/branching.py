"""`if`, `and`, `or`, `not` and ternaries on nodes: both sides are traced, and each sample runs through one of them.

:mod:`penstock.graph.autograph` rewrites functions to call the functions of this module.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from penstock.data_types import ScalarConstant
from penstock.errors import as_imported
from penstock.graph.calls import call_operator, constant_node
from penstock.graph.conditionals import Branch, ConditionStack
from penstock.graph.nodes import DataNode
from penstock.graph.origin import capture
from penstock.graph.scope import current_scope
from penstock.graph.values import is_constant

# The name of the variable for the return value of a rewritten function.
RESULT = "__penstock_result__"
_INCONSISTENT = (
    "Encountered inconsistent outputs out of the `if/else` control flow statement. Variables need to be initialized in every "
    "code path (both `if` branches)."
)


class Unusable:
    """The value of a variable that is not set; reading the variable raises an error.

    Args:
        error: the error to raise.
    """

    def __init__(self, error: Exception) -> None:
        self.error = error


def undefined(name: str) -> Unusable:
    """Return the value of a variable that has not been assigned yet."""
    return Unusable(UnboundLocalError(f"local variable '{name}' is used before it is assigned"))


NO_RETURN = Unusable(RuntimeError("The function ended without a `return` statement in one branch."))
"""The result of a rewritten function that ends without a `return`."""


def no_return() -> Unusable:
    """Return the result of a path through a function that has no `return`."""
    return NO_RETURN


def returned(value: object) -> object:
    """Return the result of a rewritten function; None if it ended without a `return`."""
    return None if value is NO_RETURN else load(value)


def load(value: object) -> object:
    """Return a variable's value; raise an error if it is not set."""
    if isinstance(value, Unusable):
        raise value.error
    return value


def probe(getter: Callable[[], object], name: str) -> object:
    """Return the value of an attribute or item, or an :class:`Unusable` if it does not exist."""
    try:
        return getter()
    except (AttributeError, KeyError, IndexError, NameError):
        return undefined(name)


def _conditions() -> ConditionStack:
    conditions = current_scope().conditions
    if not isinstance(conditions, ConditionStack):
        raise TypeError(
            '"DataNode" was used in conditional context outside of a pipeline that was defined with `enable_conditionals=True`'
        )
    return conditions


def if_statement(
    condition: object,
    body: Callable[[], None],
    orelse: Callable[[], None],
    get_state: Callable[[], tuple[object, ...]],
    set_state: Callable[[tuple[object, ...]], None],
    names: Sequence[str],
) -> None:
    """Run an `if` statement, possibly on nodes; ``get_state`` and ``set_state`` access the variables that its branches assign."""
    if not isinstance(condition, DataNode):
        body() if condition else orelse()
        return
    before = get_state()
    states: dict[bool, tuple[Any, ...]] = {}

    def run(side: bool, statements: Callable[[], None]) -> None:
        set_state(before)
        statements()
        states[side] = get_state()

    branch = _trace_sides(condition, lambda: run(True, body), lambda: run(False, orelse))
    set_state(
        tuple(
            _merged_variable(branch, name, true, false, original)
            for name, true, false, original in zip(names, states[True], states[False], before)
        )
    )


def _trace_sides(condition: DataNode, if_true: Callable[[], object], if_false: Callable[[], object]) -> Branch:
    """Trace both sides of a conditional, each with its branch open."""
    conditions = _conditions()
    predicate = conditions.enter_branch(condition)
    if predicate.device != "cpu":
        raise ValueError(
            f"Invalid device \"gpu\" for argument 'predicate' of operator '{as_imported('penstock.fn._conditional.split')}'. "
            "Conditions of `if` statements must be on the CPU."
        )
    branch = Branch(predicate, sites=capture(current_scope().tracer))
    conditions.branches.append(branch)
    try:
        for branch.side, trace in ((True, if_true), (False, if_false)):
            trace()
    finally:
        conditions.branches.remove(branch)
    return branch


def _merged_variable(branch: Branch, name: str, true: object, false: object, original: object) -> object:
    if true is original and false is original:
        return original
    if true is NO_RETURN and false is NO_RETURN:
        return NO_RETURN
    try:
        _check_initialized(name, "if", true)
        if isinstance(false, Unusable):
            _check_leaves(name, true)
        _check_initialized(name, "else", false)
        return merge(branch, name, true, false)
    except (RuntimeError, TypeError, ValueError, OverflowError) as error:
        if true is NO_RETURN or false is NO_RETURN:
            raise
        # A variable that no later statement reads need not have a usable value.
        return Unusable(error)


def _check_initialized(name: str, side: str, value: object) -> None:
    if value is NO_RETURN:
        raise RuntimeError(f"{_INCONSISTENT} The `{side}` branch must also have a return statement.")
    if isinstance(value, Unusable):
        if not isinstance(value.error, UnboundLocalError):
            raise value.error
        raise RuntimeError(f"{_INCONSISTENT} Variable '{name}' must also be initialized in the `{side}` branch.")


def _check_leaves(name: str, value: object) -> None:
    """Raise TypeError for values that are neither nodes nor possible constants, also inside tuples, lists and dictionaries."""
    if isinstance(value, (tuple, list)):
        for item in value:
            _check_leaves(name, item)
    elif isinstance(value, dict):
        for item in value.values():
            _check_leaves(name, item)
    elif isinstance(value, ScalarConstant) or not (value is None or isinstance(value, DataNode) or is_constant(value)):
        # As in DALI, constants made with `types.Constant` are for arithmetic only.
        raise TypeError(
            f"Unexpected type: {type(value)}. The variable '{name}' has a value of this type after an `if` statement on a DataNode. "
            "Allowed are DataNodes, and numbers and arrays that can become constants."
        )


def merge(branch: Branch, name: str, true: object, false: object) -> object:
    """Return the value of a variable after an `if` statement: nodes of both branches are merged, also inside tuples, lists and
    dictionaries.

    Raises:
        ValueError: the values from the two branches have different structures.
        TypeError: the values are neither nodes nor constants.
    """
    if true is false and not isinstance(true, (DataNode, tuple, list, dict)):
        return true
    if isinstance(true, (tuple, list, dict)) or isinstance(false, (tuple, list, dict)):
        return _merge_nested(branch, name, true, false)
    if true is None or false is None:
        raise _divergent(name, true, false)
    _check_leaves(name, [true, false])
    return _merge_nodes(branch, true, false)


def _merge_nested(branch: Branch, name: str, true: Any, false: Any) -> object:
    if type(true) is not type(false) or len(true) != len(false):
        raise _divergent(name, true, false)
    if isinstance(true, dict):
        if true.keys() != false.keys():
            raise _divergent(name, true, false)
        return {key: merge(branch, f"{name}[{key!r}]", true[key], false[key]) for key in true}
    items = [merge(branch, f"{name}[{i}]", a, b) for i, (a, b) in enumerate(zip(true, false))]
    if hasattr(true, "_fields"):
        return type(true)(*items)
    return type(true)(items)


def _divergent(name: str, true: object, false: object) -> ValueError:
    _check_leaves(name, [true, false])
    return ValueError(
        "Divergent data found in different branches of `if/else` control flow statement. Variables in all code paths are merged "
        "into common output batches. The values assigned to a given variable need to have the same nesting structure in every "
        f"code path (both `if` branches). For '{name}' the two structures don't have the same nested structure: {_structure(true)} "
        f"in the `if` branch, {_structure(false)} in the `else` branch.{_keys(true, false)}\n"
        f"'If' output structure: {_outline(true)}\n'Else' output structure: {_outline(false)}"
    )


def _keys(true: object, false: object) -> str:
    if not (isinstance(true, dict) and isinstance(false, dict)):
        return ""
    return (
        " The two dictionaries don't have the same set of keys. First structure has keys "
        f"type=list str={list(true)}, while second structure has keys type=list str={list(false)}."
    )


def _structure(value: object) -> str:
    if isinstance(value, (tuple, list, dict)):
        return f"a {type(value).__name__} of {len(value)}"
    return "None" if value is None else "a single value"


def _outline(value: object) -> str:
    """Return the structure of a value as text, with a dot for each node and constant."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key!r}: {_outline(item)}" for key, item in value.items()) + "}"
    if isinstance(value, (tuple, list)):
        inner = ", ".join(map(_outline, value))
        return f"[{inner}]" if isinstance(value, list) else f"({inner},)" if len(value) == 1 else f"({inner})"
    return "None" if value is None else "."


def _merge_nodes(branch: Branch, true: object, false: object) -> DataNode:
    conditions = _conditions()
    parts = []
    for side, value in ((True, true), (False, false)):
        branch.side = side
        conditions.branches.append(branch)
        try:
            parts.append(conditions.enter_branch(value if isinstance(value, DataNode) else constant_node(value)))
        finally:
            conditions.branches.remove(branch)
    if "gpu" in (parts[0].device, parts[1].device):
        parts = [part if part.device == "gpu" else part.on_device("gpu") for part in parts]
    if conditions.branches:
        # The parts belong to deeper branches than the open ones; without this, they would be split again as inputs of the merge.
        around = conditions.branches[-1]
        assert around.side is not None
        around.produced[around.side].update(part.name for part in parts)
    arguments = {"predicate": branch.predicate}
    return call_operator("_conditional__Merge", parts, arguments, device=parts[0].device, sites=branch.sites)


def ternary(condition: object, if_true: Callable[[], object], if_false: Callable[[], object]) -> Any:
    """Return ``a if condition else b``."""
    if not isinstance(condition, DataNode):
        return if_true() if condition else if_false()
    values: list[Any] = []
    branch = _trace_sides(condition, lambda: values.append(if_true()), lambda: values.append(if_false()))
    return merge(branch, "the conditional expression", *values)


def negation(value: object) -> object:
    """Return ``not value``."""
    if not isinstance(value, DataNode):
        return not value
    if value.device != "cpu":
        raise RuntimeError(
            "Logical expression `not` is restricted to scalar (0-d tensors) inputs of `bool` type, that are placed on CPU. Got a "
            "GPU input in logical expression."
        )
    return call_operator("_conditional__Not_", (value,), {})


def conjunction(left: object, right: Callable[[], object]) -> object:
    """Return ``left and right``; the right side is traced for those samples for which the left one is true."""
    if not isinstance(left, DataNode):
        return left and right()
    left = _validated(left, "and", "left")
    return ternary(left, lambda: _validated(right(), "and", "right"), lambda: left)


def disjunction(left: object, right: Callable[[], object]) -> object:
    """Return ``left or right``; the right side is traced for those samples for which the left one is false."""
    if not isinstance(left, DataNode):
        return left or right()
    left = _validated(left, "or", "left")
    return ternary(left, lambda: left, lambda: _validated(right(), "or", "right"))


def comparison_chain(
    left: object, comparisons: Sequence[Callable[[object, object], object]], operands: Sequence[Callable[[], object]]
) -> object:
    """Return a chain such as ``left < a < b``: comparisons that are joined by `and`; each operand is evaluated only once."""
    right = operands[0]()
    result = comparisons[0](left, right)
    if len(operands) == 1:
        return result
    return conjunction(result, lambda: comparison_chain(right, comparisons[1:], operands[1:]))


def _validated(value: object, name: str, side: str) -> object:
    node = value if isinstance(value, DataNode) else constant_node(value)
    if node.device != "cpu":
        raise RuntimeError(
            f"Logical expression `{name}` is restricted to scalar (0-d tensors) inputs of `bool` type, that are placed on CPU. "
            f"Got a GPU input as the {side} argument in logical expression."
        )
    return call_operator(
        "_conditional__ValidateLogical", (node,), {"expression_name": name, "expression_side": side}, device="cpu"
    )


def refuse_loop(condition: object) -> object:
    """Return the condition of a `while` loop; raise an error if it is a node."""
    if isinstance(condition, DataNode):
        _refuse()
    return condition


def refuse_return(condition: object) -> object:
    """Return the condition of an `if` that returns from within a loop; raise an error if it is a node."""
    if isinstance(condition, DataNode):
        raise RuntimeError(
            f"{_INCONSISTENT} Inside of a loop, an `if` statement on a DataNode cannot have a return statement: the rest of the "
            "loop does not return."
        )
    return condition


def _refuse() -> NoReturn:
    raise TypeError(
        '"DataNode" was used in conditional context that cannot be traced: as the condition of a loop, or of an `if` with `break` or '
        "`continue` inside of a loop. Its values are known only when the pipeline runs, while loops run when it is "
        "defined. Conditional execution via `if` statements (`enable_conditionals=True` in `pipeline_def`) does not cover these."
    )
