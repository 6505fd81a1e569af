"""The compiled core's library, which is compiled from its sources if it does not ship with the package."""

from __future__ import annotations

from penstock.core.compiling import NativeLibrary

CORE = NativeLibrary("libpenstock_core.so", "core", ("-std=c++20",))
