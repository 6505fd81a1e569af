"""``Checkpoint``: the states of readers and random generators in one object."""

from __future__ import annotations

import glob
import json
import os
import re
import string
from typing import NamedTuple, Protocol

VERSION = 2
_ANONYMOUS = "__op_"


class Stateful(Protocol):
    """An object whose state a checkpoint can store: a reader or a random number generator."""

    def get_state(self, *, cuda_stream: object = None) -> object: ...

    def set_state(self, state: str, /) -> None: ...


class _Entry(NamedTuple):
    """A state, and the name of the class of its object if that is known."""

    state: object
    type_name: str | None = None


class Checkpoint:
    """The states of readers and random number generators, from which a program can continue.

    Objects are registered, by name or in a fixed order; :meth:`collect` takes their states, and :meth:`save` writes them. In the program
    that continues, :meth:`load` reads the file, and each object gets its state when it is registered. The file is JSON, and nothing in it
    is executed.

    >>> from penstock.dynamic.random import RNG
    >>> rng, checkpoint = RNG(seed=7), Checkpoint()
    >>> checkpoint.register(rng, "augmentation")
    'augmentation'
    >>> checkpoint.collect()
    >>> continued = Checkpoint()
    >>> continued.deserialize(checkpoint.serialize())
    >>> other = RNG(seed=1)
    >>> continued.register(other, "augmentation"), other() == rng()
    ('augmentation', True)
    """

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Remove all objects and states."""
        self._ops: dict[str, Stateful] = {}
        self._keys: dict[int, str] = {}
        self._states: dict[str, _Entry] = {}
        self._dirty: set[str] = set()
        self._complete = self._loaded = False
        self._next_number: int | None = None

    @property
    def is_complete(self) -> bool:
        """Whether the states were collected from the registered objects."""
        return self._complete

    @property
    def is_loaded(self) -> bool:
        """Whether the states were loaded from a file or a string."""
        return self._loaded

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the registered objects."""
        return tuple(self._ops)

    def __len__(self) -> int:
        return len(self._ops)

    def __contains__(self, name: object) -> bool:
        return str(name) in self._ops

    def __repr__(self) -> str:
        state_text = "complete" if self._complete else "loaded" if self._loaded else "not collected"
        return f"Checkpoint({', '.join(self._ops) or 'nothing registered'}; {state_text})"

    # -- objects ---------------------------------------------------------------------------------------------------

    def register(self, op: Stateful, name: str | None = None) -> str:
        """Register a reader or a generator; set its state if a state with this name was loaded.

        Args:
            op: the object.
            name: the name under which the object's state is stored; another object of the same type under this name is replaced. By
                default, objects are numbered in the order in which they are registered.

        Returns:
            The name.

        Raises:
            KeyError: a checkpoint was loaded, and has no state of that name.
            TypeError: the object, or the state, that has this name is of another type.
            RuntimeError: the states have been collected already, or the object is registered under another name.
        """
        known = self._keys.get(id(op))
        prepare = getattr(op, "__keep_checkpoints__", None)
        if prepare is not None:
            prepare()
        key = self._key_for(known, name)
        if key not in self._ops:
            self._check_new(key)
        elif self._ops[key] is not op:
            self._replace(key, op)
        self._ops[key] = op
        self._keys[id(op)] = key
        self._apply(key)
        return key

    def _key_for(self, known: str | None, name: str | None) -> str:
        if name is None:
            return known or f"{_ANONYMOUS}{len(self._ops)}"
        if not name or name.startswith(_ANONYMOUS):
            raise ValueError(f"A name must not be empty or begin with '{_ANONYMOUS}', got {name!r}")
        if known not in (None, name):
            raise RuntimeError(f"The object is registered as {known!r} already, and cannot be {name!r} as well")
        return name

    def _check_new(self, key: str) -> None:
        if self._complete:
            raise RuntimeError(
                f"{key!r} cannot be added to the checkpoint, which `collect` has completed. Call `clear` first."
            )
        if self._loaded and key not in self._states:
            raise KeyError(
                f"Loaded checkpoint has no state for {key!r}; it has {sorted(self._states)}. Objects without a name must be "
                "registered in the same order as before."
            )

    def _replace(self, key: str, op: Stateful) -> None:
        old = self._ops[key]
        if type(old) is not type(op):
            raise TypeError(
                f"Cannot replace operator {key!r}, of type {type(old).__qualname__!r}, by one of {type(op).__qualname__!r}"
            )
        del self._keys[id(old)]

    def _apply(self, key: str) -> None:
        """Set the state of a registered object that has not received it yet."""
        if key not in self._dirty:
            return
        entry, op = self._states[key], self._ops[key]
        cls = type(op).__qualname__
        if entry.type_name not in (None, cls):
            raise TypeError(
                f"Type mismatch for {key!r}: the state is of type {entry.type_name!r}, the object of {cls!r}"
            )
        op.set_state(entry.state)  # type: ignore[arg-type]
        self._dirty.discard(key)

    # -- states ----------------------------------------------------------------------------------------------------

    def get_state(self, name: object) -> object:
        """Return the state of a registered object, or None if it has none yet; raise KeyError if no object has this name."""
        if str(name) not in self._ops:
            raise KeyError(f"Nothing is registered as {name!r}; the registered names are {sorted(self._ops)}")
        entry = self._states.get(str(name))
        return None if entry is None else entry.state

    def set_state(self, name: object, value: object, op_type: object = None) -> None:
        """Store the state for the object of that name; the object receives it when it is registered, or by :meth:`restore`.

        Args:
            op_type: the class of the object, or the class's name; if given, it is checked.

        Raises:
            KeyError: the states have been collected already, and no object has this name.
        """
        key = str(name)
        if self._complete and key not in self._ops:
            raise KeyError(f"Nothing is registered as {key!r}; the registered names are {sorted(self._ops)}")
        if op_type is not None and not isinstance(op_type, (str, type)):
            raise TypeError(f"`op_type` must be a class or its name, got {op_type!r}")
        self._states[key] = _Entry(value, op_type.__qualname__ if isinstance(op_type, type) else op_type)
        self._dirty.add(key)

    def collect(self) -> None:
        """Take the states of all registered objects.

        Raises:
            RuntimeError: there are states of objects that are not registered.
        """
        self._check_known()
        self._states = {key: _Entry(op.get_state(), type(op).__qualname__) for key, op in self._ops.items()}
        self._dirty.clear()
        self._complete, self._loaded = True, False

    def restore(self) -> None:
        """Set the states of all registered objects that have not received theirs yet.

        Raises:
            RuntimeError: the names of the states differ from the names of the objects.
        """
        if not self._states:
            return
        self._check_known()
        missing = sorted(self._ops.keys() - self._states.keys())
        if missing:
            raise RuntimeError(f"The checkpoint is incomplete: it has no states of {missing}")
        for key in sorted(self._dirty):
            self._apply(key)

    def _check_known(self) -> None:
        extra = sorted(self._states.keys() - self._ops.keys())
        if extra:
            raise RuntimeError(f"The checkpoint holds states with no corresponding registered ops: {extra}")

    # -- strings and files -----------------------------------------------------------------------------------------

    def serialize(self) -> str:
        """Return the states as JSON; raise RuntimeError if there are none."""
        if not self._states:
            raise RuntimeError("The checkpoint is empty: call `collect` before it is written")
        states = {key: {"state": str(entry.state), "type": entry.type_name} for key, entry in self._states.items()}
        return json.dumps({"version": VERSION, "states": states})

    def deserialize(self, data: str) -> None:
        """Load the states from JSON; raise ValueError if it is not a checkpoint, or one of another version."""
        document = json.loads(data)
        if not isinstance(document, dict) or not isinstance(document.get("states"), dict):
            raise ValueError("This is not a checkpoint: there are no `states` in it")
        if document.get("version") != VERSION:
            raise ValueError(
                f"This checkpoint is of version {document.get('version')}; only version {VERSION} can be read"
            )
        self._states = {str(key): _parsed(key, entry) for key, entry in document["states"].items()}
        self._dirty = set(self._states)
        self._complete, self._loaded = False, True

    def save(self, filename: str) -> str:
        """Write the states to a new file.

        Args:
            filename: the name of the file, with ``{seq}`` in place of the checkpoint's number: ``"step_{seq:05d}.json"``.

        Returns:
            The file's path.
        """
        number = self._next_number
        if number is None:
            number = max((found for found, _ in _checkpoint_files(filename)), default=-1) + 1
        data = self.serialize()
        while os.path.exists(path := filename.format(seq=number)):
            number += 1
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        part = f"{path}.part"
        with open(part, "w", encoding="utf-8") as file:
            file.write(data)
        os.replace(part, path)
        self._next_number = number + 1
        return path

    def load(self, filename: str) -> str:
        """Load the states from the file with the highest number.

        Args:
            filename: the name of the file, as for :meth:`save`.

        Returns:
            The file's path.

        Raises:
            FileNotFoundError: no file has such a name.
        """
        found = sorted(_checkpoint_files(filename))
        if not found:
            raise FileNotFoundError(f"No file matches '{filename}'")
        number, path = found[-1]
        with open(path, encoding="utf-8") as file:
            self.deserialize(file.read())
        self._next_number = number + 1
        return path


def _parsed(key: str, entry: object) -> _Entry:
    if not isinstance(entry, dict) or "state" not in entry:
        raise ValueError(f"Invalid checkpoint entry {key!r}: it has no `state`")
    kind = entry.get("type")
    if kind is not None and not isinstance(kind, str):
        raise ValueError(f"Invalid `type` of the entry {key!r}: expected a name, got {kind!r}")
    return _Entry(str(entry["state"]), kind)


def _checkpoint_files(filename: str) -> list[tuple[int, str]]:
    """Return the files whose names match ``filename``, with their numbers."""
    pattern, wildcard, num_sequence_fields = "", "", 0
    for text, field, _, _ in string.Formatter().parse(filename):
        pattern, wildcard = pattern + re.escape(text), wildcard + glob.escape(text)
        if field is not None:
            num_sequence_fields += field == "seq"
            if field != "seq":
                raise ValueError(
                    f"The name of a checkpoint can have only the field {{seq}}, got {{{field}}} in '{filename}'"
                )
            pattern, wildcard = pattern + r"(\d+)", wildcard + "*"
    if num_sequence_fields != 1:
        raise ValueError(f"The name of a checkpoint must have one field {{seq}}, for its number: '{filename}'")
    matches = ((re.fullmatch(pattern, path), path) for path in glob.iglob(wildcard))
    return [(int(match[1]), path) for match, path in matches if match]
