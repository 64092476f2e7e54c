"""How an arm of a comparison is written: NAME=MODEL@key=value,key=value."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import get_args

from modelwright._dataclass import dataclass
from modelwright.errors import UsageError, did_you_mean
from modelwright.targets import GraphOptimization

_NAME = re.compile(r"[A-Za-z0-9][\w.+-]*")
_OPTION, _CONFIG = "opt.", "config."
_KEYS = ("target", "runtime", "threads", "level")
_EXAMPLE = "int8=model_int8.onnx@threads=1,opt.device_type=CPU"


@dataclass(frozen=True)
class Arm:
    """One arm. What is None is what is said for all arms; one without a name is called after its file."""

    model: str
    name: str = ""
    target: str | None = None
    runtime: str | None = None
    threads: int | None = None
    level: GraphOptimization | None = None
    options: dict[str, str] = field(default_factory=dict)
    config: dict[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        """As it is written on the command line."""
        own = {key: value for key in _KEYS if (value := getattr(self, key)) is not None}
        own |= {f"{_OPTION}{key}": value for key, value in self.options.items()}
        own |= {f"{_CONFIG}{key}": value for key, value in self.config.items()}
        settings = ",".join(f"{key}={value}" for key, value in own.items())
        return (f"{self.name}=" if self.name else "") + self.model + (f"@{settings}" if settings else "")


def parse_arms(arms: Sequence[str | Path | Arm]) -> tuple[Arm, ...]:
    """All arms, the base first. Arms without a name are called after their file, or A, B, C where those clash."""
    read = [parse_arm(arm) for arm in arms]
    if len(read) < 2:
        raise UsageError(
            "a comparison needs two arms or more",
            cause=f"{len(read)} was given",
            fix="wright compare base.onnx other.onnx",
        )
    stems = [arm.name or Path(arm.model).stem for arm in read]
    if len(set(stems)) < len(stems):
        stems = [arm.name or chr(ord("A") + place) for place, arm in enumerate(read)]
    twice = sorted({name for name in stems if stems.count(name) > 1})
    if twice:
        raise UsageError(
            f"two arms are called {twice[0]}", cause="arms are told apart by name", fix=f"write for example {_EXAMPLE}"
        )
    return tuple(replace(arm, name=name) for arm, name in zip(read, stems, strict=True))


def parse_arm(arm: str | Path | Arm) -> Arm:
    """One arm, without a name where none is said."""
    if isinstance(arm, Arm):
        return arm
    text = str(arm)
    head, settings = _split_settings(text)
    name, equals, model = head.partition("=")
    if not equals or not _NAME.fullmatch(name) or Path(head).exists():
        name, model = "", head
    if not model:
        raise UsageError(f"arm '{text}' names no model", cause="it is empty", fix=f"write for example {_EXAMPLE}")
    return _arm(name, model, settings)


def _split_settings(text: str) -> tuple[str, dict[str, str]]:
    """Settings follow the last @. A path that has one of its own is known by existing, or by what follows."""
    head, at, tail = text.rpartition("@")
    if not at or "=" not in tail or Path(text).exists():
        return text, {}
    settings: dict[str, str] = {}
    for item in tail.split(","):
        key, equals, value = item.partition("=")
        if not equals or not value or not _is_key(key):
            known = (*_KEYS, f"{_OPTION}KEY", f"{_CONFIG}KEY")
            raise UsageError(
                f"cannot read '{item}' in arm '{text}'",
                cause=f"settings are {', '.join(f'{name}=' for name in known)}",
                fix=did_you_mean(key, _KEYS) or f"write for example {_EXAMPLE}",
            )
        if key in settings:
            raise UsageError(f"arm '{text}' sets {key} twice", cause="the values may differ", fix=f"keep one {key}=")
        settings[key] = value
    return head, settings


def _is_key(key: str) -> bool:
    return key in _KEYS or any(key.startswith(prefix) and key != prefix for prefix in (_OPTION, _CONFIG))


def _arm(name: str, model: str, settings: dict[str, str]) -> Arm:
    return Arm(
        model=model,
        name=name,
        target=settings.get("target"),
        runtime=settings.get("runtime"),
        threads=_threads(name, settings.get("threads")),
        level=_level(name, settings.get("level")),
        options=_prefixed(settings, _OPTION),
        config=_prefixed(settings, _CONFIG),
    )


def _prefixed(settings: dict[str, str], prefix: str) -> dict[str, str]:
    return {key.removeprefix(prefix): value for key, value in settings.items() if key.startswith(prefix)}


def _threads(name: str, text: str | None) -> int | None:
    if text is None:
        return None
    if not text.isdigit() or int(text) < 1:
        raise UsageError(
            f"arm {name} cannot use {text} threads", cause="it is a whole number from 1", fix="try threads=1"
        )
    return int(text)


def _level(name: str, text: str | None) -> GraphOptimization | None:
    for level in get_args(GraphOptimization):
        if text == level:
            return level  # type: ignore[no-any-return]
    if text is None:
        return None
    levels = ", ".join(get_args(GraphOptimization))
    raise UsageError(f"arm {name} has no level {text}", cause=f"levels are {levels}", fix="try level=all")
