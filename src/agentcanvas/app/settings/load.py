"""Putting the layers on top of each other, and remembering where each value came from."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from msgspec import Struct

from agentcanvas.app.settings.keys import (
    ENVIRONMENT_PREFIX,
    KEYS,
    UnfitValueError,
    Value,
    limits_from,
    unknown_key,
)
from agentcanvas.app.settings.yaml_file import Trouble, read_yaml_file
from agentcanvas.errors import SettingsError
from agentcanvas.protocol.limits import Limits, contradictions

WORKSPACE_FILE = "agentcanvas.yaml"

# How alike an unknown variable and a setting's must be to call it a slip. Others that begin with
# the prefix are left alone: they may be meant for another part, or for an agent.
_VARIABLE_LIKENESS = 0.8


class Layer(StrEnum):
    """Where a value came from; a later one wins."""

    USER_FILE = "user_file"
    WORKSPACE_FILE = "workspace_file"
    ENVIRONMENT = "environment"
    FLAG = "flag"


class Origin(Struct, frozen=True):
    """The winning source of one value: ``place`` is file:line:column, a variable or a flag."""

    key: str
    layer: Layer
    place: str


class Settings(Struct, frozen=True):
    """Everything that can be set, and for each value that was set, by what."""

    limits: Limits = Limits()
    where: tuple[Origin, ...] = ()

    def origin(self, key: str) -> Origin | None:
        """Who set ``key``; None for a default."""
        return next((origin for origin in self.where if origin.key == key), None)


def load_settings(
    workspace: Path,
    *,
    environ: Mapping[str, str],
    flags: Mapping[str, object] | None = None,
    own_file: bool = True,
) -> Settings:
    """The settings that hold in ``workspace``; every problem of every layer in one error.

    ``own_file`` says whether that of the workspace counts. ``flags`` are keys such as
    ``heartbeat.interval_s``; a flag that is None was not given.
    """
    layers = _Layers()
    if (file := user_file(environ)) is not None:
        layers.add_file(Layer.USER_FILE, file)
    if own_file:
        layers.add_file(Layer.WORKSPACE_FILE, workspace / WORKSPACE_FILE)
    layers.add_environment(environ)
    layers.add_flags(flags or {})
    limits = limits_from(layers.values)
    layers.problems += layers.contradictions_in(limits)
    if layers.problems:
        raise SettingsError(_sentence(layers.problems))
    return Settings(limits, tuple(layers.origins[key] for key in KEYS if key in layers.origins))


def user_file(environ: Mapping[str, str]) -> Path | None:
    """Where a user's own settings would be; None without a home."""
    base = environ.get("XDG_CONFIG_HOME", "")
    if not Path(base).is_absolute():  # the XDG rules say to ignore a relative one
        home = environ.get("HOME", "")
        if not Path(home).is_absolute():
            return None
        base = f"{home}/.config"
    return Path(base) / "agentcanvas" / "config.yaml"


@dataclass
class _Layers:
    """The values so far, each with its origin; later calls win."""

    values: dict[str, Value] = field(default_factory=dict)
    origins: dict[str, Origin] = field(default_factory=dict)
    wrong: set[str] = field(default_factory=set)
    problems: list[str] = field(default_factory=list)

    def add_file(self, layer: Layer, path: Path) -> None:
        for found in read_yaml_file(path):
            if isinstance(found, Trouble):
                self.problems.append(found.sentence)
            else:
                self._set(found.name, found.value, Origin(found.name, layer, found.place))

    def add_environment(self, environ: Mapping[str, str]) -> None:
        variables = {key.variable: name for name, key in KEYS.items()}
        for variable, text in sorted(environ.items()):
            if not variable.startswith(ENVIRONMENT_PREFIX) or not text.strip():
                continue
            if variable in variables:
                name = variables[variable]
                self._set(name, text, Origin(name, Layer.ENVIRONMENT, variable))
            elif meant := _resembling(variable, variables):
                self.problems.append(f"{variable} is not a setting; did you mean {meant}?")

    def add_flags(self, flags: Mapping[str, object]) -> None:
        for name, value in flags.items():
            if name not in KEYS:
                self.problems.append(f"flag {name}: {unknown_key(tuple(name.split('.')))}")
            elif value is not None:
                self._set(name, value, Origin(name, Layer.FLAG, f"flag {name}"))

    def contradictions_in(self, limits: Limits) -> Iterator[str]:
        for found in contradictions(limits):
            # A value that was refused has its default here, which nobody asked for.
            if not self.wrong & {found.key, found.against}:
                origin = self.origins.get(found.key) or self.origins[found.against]
                yield f"{origin.place}: {found.key}: {found.sentence}"

    def _set(self, name: str, given: object, origin: Origin) -> None:
        textual = origin.layer in (Layer.ENVIRONMENT, Layer.FLAG) and isinstance(given, str)
        key = KEYS[name]
        try:
            value = key.take_text(str(given)) if textual else key.take(given)
        except UnfitValueError as wrong:
            self.wrong.add(name)
            in_file = origin.layer in (Layer.USER_FILE, Layer.WORKSPACE_FILE)
            self.problems.append(f"{origin.place}{f': {name}' if in_file else ''} {wrong}")
            return
        self.values[name] = value
        self.origins[name] = origin


def _resembling(variable: str, variables: Mapping[str, str]) -> str:
    names = {known.removeprefix(ENVIRONMENT_PREFIX): known for known in variables}
    close = difflib.get_close_matches(
        variable.removeprefix(ENVIRONMENT_PREFIX), names, n=1, cutoff=_VARIABLE_LIKENESS
    )
    return names[close[0]] if close else ""


def _sentence(problems: list[str]) -> str:
    if len(problems) == 1:
        return problems[0] if problems[0].endswith("?") else f"{problems[0]}."
    listed = "\n".join(f"- {problem}" for problem in problems)
    return f"There are {len(problems)} problems in the settings:\n{listed}"
