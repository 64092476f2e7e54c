"""Values people type: sizes, times, shares and quantiles."""

from __future__ import annotations

import math
import re
from typing import Any

import click

_SIZES = {
    "": 1,
    "k": 10**3,
    "m": 10**6,
    "g": 10**9,
    "t": 10**12,
    "ki": 2**10,
    "mi": 2**20,
    "gi": 2**30,
    "ti": 2**40,
}
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}


SEED = click.IntRange(min=0)


class Finite(click.ParamType[float]):
    """A number to compare with: nothing is above or below NaN."""

    name = "FLOAT"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        number = float(click.FLOAT.convert(value, param, ctx))
        if not math.isfinite(number):
            self.fail(f"'{value}' is not a finite number", param, ctx)
        return number


class Size(click.ParamType[int]):
    """`20GB`, `500MiB`, `0`."""

    name = "SIZE"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([kmgt]?i?)b?", str(value).strip().lower())
        size = float(found.group(1)) * _SIZES.get(found.group(2), math.nan) if found is not None else math.nan
        if not math.isfinite(size):
            self.fail(f"'{value}' is not a size; write for example 20GB or 500MiB", param, ctx)
        return int(size)


class Duration(click.ParamType[float]):
    """`30d`, `12h`, `90s`, in seconds; a bare number too where `bare` says its unit."""

    name = "TIME"

    def __init__(self, bare: str = "") -> None:
        self._bare = bare

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([smhdw]?)", str(value).strip().lower())
        unit = (found.group(2) or self._bare) if found is not None else ""
        if found is None or not unit:
            self.fail(f"'{value}' is not a time; write for example 30d, 12h or 90s", param, ctx)
        return float(found.group(1)) * _SECONDS[unit]


class Milliseconds(click.ParamType[float]):
    """`20ms`, `1.5s`, `300us`, in ms."""

    name = "TIME"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(us|ms|s)?", str(value).strip().lower())
        unit = (found.group(2) or "") if found is not None else ""
        if found is None or not (isinstance(value, float) or unit) or not float(found.group(1)):
            self.fail(f"'{value}' is not a time; write for example 20ms, 300us or 1.5s", param, ctx)
        return float(found.group(1)) * {"us": 0.001, "ms": 1.0, "s": 1000.0, "": 1.0}[unit]


class Share(click.ParamType[float]):
    """A share of one: `3%` or `0.03`."""

    name = "SHARE"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        number, percent, rest = str(value).strip().partition("%")
        try:
            if rest:
                raise ValueError
            return float(number) / (100 if percent else 1)
        except ValueError:
            self.fail(f"'{value}' is not a share; write for example 3% or 0.03", param, ctx)


class Quantile(click.ParamType[float]):
    """A quantile of the time a run takes: `p50`."""

    name = "QUANTILE"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        try:
            share = float(str(value).lower().removeprefix("p")) / 100
        except ValueError:
            share = 0.0
        if not 0 < share < 1:
            self.fail(f"'{value}' is not a quantile; write for example p10, p50 or p99", param, ctx)
        return round(share, 6)


class Ratio(click.ParamType[float]):
    """`1/255`, `0.5`."""

    name = "FACTOR"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        above, _, below = str(value).partition("/")
        try:
            factor = float(above) / float(below or 1)
        except (ValueError, ZeroDivisionError):
            factor = math.nan
        if not math.isfinite(factor):
            self.fail(f"'{value}' is not a factor; write for example 1/255 or 0.5", param, ctx)
        return factor


class Numbers(click.ParamType[tuple[float, ...]]):
    """One number, or one per channel: `0.5`, `0.485,0.456,0.406`."""

    name = "NUMBERS"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[float, ...]:
        if isinstance(value, tuple):
            return value
        try:
            numbers = tuple(float(word) for word in str(value).split(","))
        except ValueError:
            numbers = (math.nan,)
        if not all(math.isfinite(number) for number in numbers):
            self.fail(f"'{value}' is no list of numbers; write for example 0.485,0.456,0.406", param, ctx)
        return numbers


class ImageSize(click.ParamType[tuple[int, int]]):
    """`224` or `224x320`: height and width."""

    name = "SIZE"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, int]:
        if isinstance(value, tuple):
            return value
        found = re.fullmatch(r"([1-9]\d{0,4})(?:x([1-9]\d{0,4}))?", str(value).strip().lower())
        if found is None:
            self.fail(f"'{value}' is not a size; write for example 224 or 224x320", param, ctx)
        return int(found[1]), int(found[2] or found[1])
