"""Parses the parts of Dockerfiles that the tests need."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCKERFILE = ROOT / "docker" / "Dockerfile"


def instructions(path: Path = DOCKERFILE) -> list[tuple[str, str]]:
    """Return the name and the arguments of each instruction of a Dockerfile, in order; continued lines are joined."""
    lines = [line for line in path.read_text().splitlines() if not line.lstrip().startswith("#")]
    joined = re.sub(r"\\\n", " ", "\n".join(lines))
    pairs = (line.split(maxsplit=1) for line in joined.splitlines() if line.strip())
    return [(name.upper(), " ".join(rest.split())) for name, rest in pairs]


def build_arguments() -> dict[str, str]:
    """Return the Dockerfile's build arguments with their defaults."""
    return dict(text.split("=", 1) for name, text in instructions() if name == "ARG")


def run_commands(extras: str | None = None) -> list[str]:
    """Return the Dockerfile's shell commands that install or set up penstock, with ``extras`` as the build argument EXTRAS,
    or else its default.
    """
    chosen = extras if extras is not None else build_arguments()["EXTRAS"]
    commands = [text for name, text in instructions() if name == "RUN"]
    ours = [text for text in commands if re.match(r"(pip|penstock|export) ", text)]
    return [text.replace("${EXTRAS}", chosen) for text in ours]
