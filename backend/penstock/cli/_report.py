"""The page that ``penstock inspect --html`` writes: a single self-contained file."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from itertools import chain

from penstock.cli._trial import Trial
from penstock.graph import Graph, OpNode
from penstock.graph.drawing import to_svg
from penstock.graph.listing import arguments, title
from penstock.passes import Applied, Change
from penstock.tensors.pictures import MAX_SHOWN, batch_html

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2em auto; max-width: 1200px; padding: 0 1em; color: #1a1a1a }
h1 { font-size: 1.5em } h2 { font-size: 1.2em; border-top: 1px solid #ddd; padding-top: 1em; margin-top: 2em }
code, pre { font-family: ui-monospace, monospace; font-size: 13px }
table { border-collapse: collapse } th, td { text-align: left; padding: .2em 1.2em .2em 0; vertical-align: top }
.scroll { overflow-x: auto } .sides { display: flex; gap: 2em; overflow-x: auto } .quiet { color: #777 }
.failure { background: #fdecea; border-left: 4px solid #c92a2a; padding: .3em 1em; white-space: pre-wrap }
.step { margin: 1.5em 0 } .step:target { background: #fff9db } summary { cursor: pointer }
"""


def report(heading: str, graph: Graph, applied: Sequence[Applied], trial: Trial | None) -> str:
    """Return the page as HTML.

    Args:
        heading: the heading of the page: what was inspected.
        graph: the graph as written.
        applied: the effect of each pass.
        trial: the results of a run, if there was one.
    """
    links = {op.name: f"#{_anchor(op)}" for op in graph.operators} if trial else {}
    parts = [
        f"<h1>{escape(heading)}</h1>",
        "<h2>As it was written</h2>",
        _scrolled(to_svg(graph.operators, graph.outputs, links=links)),
        _details("as text", f"<pre>{escape(repr(graph))}</pre>"),
        "<h2>What each pass did</h2>",
        *map(_pass, applied),
        "<h2>What runs</h2>",
        _what_runs(applied[-1].after if applied else graph, applied, trial),
    ]
    if trial is not None:
        parts += [
            "<h2>What each operator returns</h2>",
            *_failures(trial),
            *(_step(op, trial) for op in graph.operators),
        ]
    body = "\n".join(parts)
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(heading)}</title>'
        f"<style>{_STYLE}</style></head>\n<body>\n{body}\n</body></html>\n"
    )


def _anchor(op: OpNode) -> str:
    return f"step-{op.name}"


def _scrolled(content: str) -> str:
    return f'<div class="scroll">{content}</div>'


def _details(what: str, content: str) -> str:
    return f"<details><summary>{escape(what)}</summary>{content}</details>"


def _pass(applied: Applied) -> str:
    before, after = applied.before, applied.after
    counts = f"<b>{escape(applied.name)}</b>: {len(before.operators)} → {len(after.operators)} operators"
    if not applied.changes:
        return f'<p class="quiet">{counts}: nothing</p>'
    gone = {op.name for change in applied.changes for op in change.operators}
    made = {change.into.name for change in applied.changes if change.into is not None}
    lines = "".join(f"<li>{escape(str(change))}{_exceptions(change)}</li>" for change in applied.changes)
    sides = "".join(
        f"<div><p class='quiet'>{when}</p>{to_svg(graph.operators, graph.outputs, marked)}</div>"
        for when, graph, marked in (("before", before, gone), ("after", after, made))
    )
    return f"<p>{counts}</p><ul>{lines}</ul>{_details('before and after', f'<div class=sides>{sides}</div>')}"


def _exceptions(change: Change) -> str:
    if not change.exceptions:
        return ""
    return f' <span class="quiet">(step by step for: {escape(", ".join(change.exceptions))})</span>'


def _what_runs(graph: Graph, applied: Sequence[Applied], trial: Trial | None) -> str:
    made = {change.into.name for step in applied for change in step.changes if change.into is not None}
    drawn = _scrolled(to_svg(graph.operators, graph.outputs, made))
    if trial is None:
        return drawn
    rows = "".join(
        f"<tr><td><code>{escape(title(op))} '{escape(op.name)}'</code></td><td>{escape(trial.how_computed(op.name))}</td></tr>"
        for op in graph.operators
        if op.name in trial.counts
    )
    return drawn + (f"<table><tr><th>fused</th><th>how this batch was computed</th></tr>{rows}</table>" if rows else "")


def _failures(trial: Trial) -> list[str]:
    return [
        f'<p class="failure">Sample #{index}: {escape(str(error))}</p>'
        for index, error in sorted(trial.failures.items())
    ]


def _step(op: OpNode, trial: Trial) -> str:
    operands = ", ".join(chain((node.name for node in op.inputs), (f"{name}={value}" for name, value in arguments(op))))
    time_text = f"{trial.seconds[op.name] * 1000:.2f} ms" if op.name in trial.seconds else ""
    batches = "".join(
        batch_html(
            f"{node.name}: {batch.dtype}, layout '{batch.layout()}'",
            batch.subset(range(min(len(batch), MAX_SHOWN))).as_cpu().samples,
            batch.layout(),
            len(batch),
            edge=240,
        )
        for node, batch in zip(op.outputs, trial.outputs[op.name])
    )
    return (
        f'<div class="step" id="{escape(_anchor(op))}"><b>{escape(title(op))}</b> '
        f'<code class="quiet">({escape(operands)})</code> <span class="quiet">{op.device} {time_text}</span>{batches}</div>'
    )
