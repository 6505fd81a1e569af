"""Protobuf messages of other programs' formats, declared in Python; the classes of messages are created on first use.

This needs no generated modules, and imports protobuf only when a message is read or written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from google.protobuf.descriptor_pool import DescriptorPool
    from google.protobuf.message import Message

# A field's number, name, label (required, optional or repeated), and type: one of protobuf's, or the name of another message.
Field = tuple[int, str, str, str]


class Messages:
    """The messages of one format.

    Args:
        package: the protobuf package of the messages; no other user of protobuf in the process may use the same name.
        fields: the fields of each message, by the message's name.
    """

    def __init__(self, package: str, fields: Mapping[str, Sequence[Field]]) -> None:
        self._package = package
        self._fields = fields
        self._classes: dict[str, type[Message]] = {}

    def new(self, name: str) -> Message:
        """Return an empty message; raise ImportError if protobuf is not installed."""
        kind = self._classes.get(name)
        if kind is None:
            described = self._pool.FindMessageTypeByName(f"{self._package}.{name}")
            from google.protobuf import message_factory

            kind = self._classes[name] = message_factory.GetMessageClass(described)
        return kind()

    def parse(self, name: str, data: bytes | memoryview) -> Message:
        """Parse the message in ``data``; fields that are not declared are ignored, and required ones may be absent.

        Raises:
            ValueError: the bytes are not a message of this kind.
            ImportError: protobuf is not installed.
        """
        message = self.new(name)
        from google.protobuf.message import DecodeError

        try:
            message.MergeFromString(bytes(data))
        except DecodeError as error:
            raise ValueError(f"{len(data)} bytes are not a {name} in protobuf's encoding: {error}") from error
        return message

    @cached_property
    def _pool(self) -> DescriptorPool:
        try:
            from google.protobuf import descriptor_pb2, descriptor_pool
        except ImportError as error:
            raise ImportError("protobuf is needed to read and write this format: pip install protobuf") from error
        file = descriptor_pb2.FileDescriptorProto(
            name=f"{self._package.replace('.', '/')}.proto", package=self._package, syntax="proto2"
        )
        kinds = descriptor_pb2.FieldDescriptorProto
        for message_name, fields in self._fields.items():
            message = file.message_type.add(name=message_name)
            for number, name, label, kind in fields:
                entry = message.field.add(number=number, name=name, label=kinds.Label.Value(f"LABEL_{label.upper()}"))
                if kind in self._fields:
                    entry.type = kinds.TYPE_MESSAGE
                    entry.type_name = f".{self._package}.{kind}"
                else:
                    entry.type = kinds.Type.Value(f"TYPE_{kind.upper()}")
        pool = descriptor_pool.DescriptorPool()
        pool.Add(file)
        return pool
