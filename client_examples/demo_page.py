"""The demonstration's page: the sent images, the answers, and the speed, in one HTML file without scripts."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

_STYLE = """
:root { color-scheme: light dark }
body { font: 16px/1.45 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem }
h2 { margin-top: 2.5rem }
.pictures { display: grid; grid-template-columns: repeat(auto-fill, minmax(var(--width), 1fr)); gap: 1rem }
figure { margin: 0; border: 1px solid #8886; border-radius: .5rem; overflow: hidden }
figure img { width: 100%; aspect-ratio: var(--shape); object-fit: cover; display: block }
figcaption { padding: .5rem .75rem .75rem }
figcaption b { display: block; margin-bottom: .25rem }
.answer { position: relative; padding: 0 .4rem; margin-top: .2rem; display: flex; justify-content: space-between }
.answer i { position: absolute; inset: 0 auto 0 0; background: #8884; border-radius: .2rem }
.answer.right i { background: #2a96 }
.answer span { position: relative }
table { border-collapse: collapse }
th, td { padding: .3rem .9rem; border-bottom: 1px solid #8886; text-align: right }
th:first-child, td:first-child { text-align: left; padding-left: 0 }
"""


@dataclass(frozen=True)
class Answer:
    """One label and its probability."""

    label: str
    probability: float
    is_right: bool


@dataclass(frozen=True)
class Picture:
    """A picture that was sent, and the answers to it, best first."""

    name: str
    content: bytes
    media_type: str
    answers: Sequence[Answer]


@dataclass(frozen=True)
class Section:
    """One network's pictures and figures.

    Attributes:
        title, text: above the pictures.
        pictures: some or all of those that were sent.
        figures: rows of a table, the first with headings.
        width: the smallest width of a picture on the page, in CSS pixels.
        shape: the aspect ratio of pictures, width / height.
    """

    title: str
    text: str
    pictures: Sequence[Picture]
    figures: Sequence[Sequence[str]]
    width: int
    shape: str


def page(title: str, text: str, sections: Sequence[Section]) -> str:
    """Return the page."""
    return (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n<title>{escape(title)}</title>\n'
        f"<style>{_STYLE}</style>\n</head>\n<body>\n<h1>{escape(title)}</h1>\n<p>{escape(text)}</p>\n"
        + "".join(map(_section, sections))
        + "</body>\n</html>\n"
    )


def _section(section: Section) -> str:
    heading, *rows = section.figures
    cells = "".join(f"<th>{escape(cell)}</th>" for cell in heading)
    body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>\n" for row in rows)
    return (
        f"<h2>{escape(section.title)}</h2>\n<p>{escape(section.text)}</p>\n"
        f"<table>\n<tr>{cells}</tr>\n{body}</table>\n<p></p>\n"
        f'<div class="pictures" style="--width: {section.width}px; --shape: {section.shape}">\n'
        f"{''.join(map(_picture, section.pictures))}</div>\n"
    )


def _picture(picture: Picture) -> str:
    source = f"data:{picture.media_type};base64,{base64.b64encode(picture.content).decode()}"
    return (
        f'<figure><img src="{source}" alt="{escape(picture.name)}"><figcaption><b>{escape(picture.name)}</b>\n'
        f"{''.join(map(_answer, picture.answers))}</figcaption></figure>\n"
    )


def _answer(answer: Answer) -> str:
    right = " right" if answer.is_right else ""
    return (
        f'<div class="answer{right}"><i style="width: {answer.probability:.1%}"></i>'
        f"<span>{escape(answer.label)}</span><span>{answer.probability:.2f}</span></div>\n"
    )
