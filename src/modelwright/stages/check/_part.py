"""The smallest part of a model that a target fails on, and what avoids it: each try is a child of its own."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from modelwright._lazy import lazy
from modelwright._scratch import scratch
from modelwright.data import DataSource
from modelwright.graph import model_bytes
from modelwright.stages.check._cut import Cuttable, told
from modelwright.stages.check._types import OPENS, Avoided, CheckOutcome, FailingPart, TargetGate, kind_of_failure
from modelwright.stages.check._widths import in_bits
from modelwright.stages.optimize import narrow_doubles
from modelwright.targets import parse_target
from modelwright.worker import RemoteTask, run, task

if TYPE_CHECKING:
    import onnx
    import onnx_ir as ir
else:
    onnx = lazy("onnx")
    ir = lazy("onnx_ir")

# What looking for it may take; a model above the size is not cut, because every try writes its part again.
TRIES, SECONDS = 24, 180.0
_LARGEST = 256 << 20
_TRY_S = 60.0
_FEW = 8
_CHECK: RemoteTask[CheckOutcome] = RemoteTask("modelwright.stages.check._run:run_check")
Places = tuple[int, ...]


def smallest_part(model: str, params: TargetGate, reason: str) -> FailingPart | None:
    """What fails in the same way as the whole, with everything left out that can be; None where the model cannot be cut
    or where what fails is gone as soon as it is."""
    if model_bytes(model) > _LARGEST:
        return None
    hunt = _Hunt(Cuttable(onnx.load(model)), params, kind_of_failure(reason))
    with scratch("part") as folder:
        hunt.folder = Path(folder)
        return hunt.result() if hunt.fails(hunt.all) else None


@task
def run_look(model: str, target: str, reason: str) -> FailingPart | None:
    """For a model that a target does not open, whatever its precision is."""
    return smallest_part(model, TargetGate(target=target, precision="fp32"), f"{OPENS}: {reason}")


class _Hunt:
    def __init__(self, model: Cuttable, params: TargetGate, kind: str) -> None:
        self.model, self.kind, self.folder = model, kind, Path()
        self.params = replace(params, samples=1, limit_s=min(params.limit_s, _TRY_S / 2), look=False)
        self.all: Places = tuple(range(len(model.operators)))
        self.tries, self.began = 0, time.monotonic()
        self._seen: dict[Places, str | None] = {}

    def result(self) -> FailingPart:
        places = self._narrowed()
        places, minimal = self._without_each(places)
        nodes = [self.model.operators[place] for place in places]
        return FailingPart(
            operators=tuple(map(told, nodes)),
            of=len(self.all),
            reason=self._seen[places] or "",
            minimal=minimal,
            avoided_by=self._avoided(nodes),
            tries=self.tries,
            seconds=time.monotonic() - self.began,
        )

    def fails(self, places: Places) -> bool:
        """As the whole does. What cannot be cut out does not count."""
        if places not in self._seen:
            part = self.model.part([self.model.operators[place] for place in places]) if places else None
            outcome = None if part is None else self._asked(part)
            self._seen[places] = None if outcome is None or outcome.passed is not False else outcome.reason
        return kind_of_failure(self._seen[places] or "") == self.kind

    def _narrowed(self) -> Places:
        """The fewest first operators that fail; of them those that the last one needs; of those the fewest last."""
        end = self._least(len(self.all), lambda count: self.all[:count])
        places = self.all[:end]
        needed = self.model.ancestors(self.model.operators[places[-1]])
        above = tuple(place for place in places if place in needed)
        places = above if above != places and not self._spent() and self.fails(above) else places
        return places[-self._least(len(places), lambda count: places[-count:]) :]

    def _least(self, count: int, chosen: Callable[[int], Places]) -> int:
        good = 0
        while count - good > 1 and not self._spent():
            middle = (good + count) // 2
            if self.fails(chosen(middle)):
                count = middle
            else:
                good = middle
        return count

    def _without_each(self, places: Places) -> tuple[Places, bool]:
        """Left out one by one; whether every one was tried in vain."""
        if len(places) > _FEW:
            return places, False
        for place in places:
            fewer = tuple(one for one in places if one != place)
            if self._spent():
                return places, False
            if fewer and self.fails(fewer):
                return self._without_each(fewer)
        return places, True

    def _avoided(self, nodes: Sequence[onnx.NodeProto]) -> tuple[Avoided, ...]:
        """What keeps the part on integers first."""
        whole, floats = self.model.part(nodes), self.model.part(nodes, floats=True)
        found = [] if whole is None else self._in_other_widths(whole)
        if whole is not None and floats is not None and len(floats.graph.node) != len(whole.graph.node):
            names = ", ".join(f'"{node.name}"' for node in nodes)
            found.append(self._tried(floats, "left in float", f"[quantize] nodes_to_exclude = [{names}]"))
        narrow = None if whole is None else ir.from_proto(whole)
        if narrow is not None and narrow_doubles(narrow):
            how = f'[optimize] passes = ["portable", "{narrow_doubles.__name__}"]'
            found.append(self._tried(ir.to_proto(narrow), "in float32 instead of double", how))
        return tuple(one for one in found if one is not None)

    def _in_other_widths(self, whole: onnx.ModelProto) -> list[Avoided | None]:
        """16 bits, and 8 where those do not pass."""
        found: list[Avoided | None] = []
        for bits in (16, 8):
            other = in_bits(whole, bits, self._fixed_scale)
            if other is not None and not any(one is not None and one.passed for one in found):
                items = ", ".join(f'{{tensor = "{name}", dtype = "uint{bits}"}}' for name in other.tensors)
                found.append(self._tried(other.part, f"in {bits} bits", f"[quantize] overrides = [{items}]"))
        return found

    def _fixed_scale(self, op_type: str, bits: int) -> tuple[float, int] | None:
        adapter = parse_target(self.params.target).adapter
        rules = adapter.tensor_rules(op_type, "int8", f"uint{bits}")
        said = (rule for rule in rules if rule.tensor == "output" and rule.scale is not None)
        return next(((rule.scale, rule.zero_point or 0) for rule in said if rule.scale is not None), None)

    def _tried(self, part: onnx.ModelProto, title: str, how: str) -> Avoided | None:
        outcome = None if self._spent() else self._asked(part)
        if outcome is None:
            return None
        # Of a part nobody has real samples: what agrees on made-up ones is worth a try.
        passed = True if outcome.agrees and outcome.passed is None else outcome.passed
        unknown = str(outcome.reason) if outcome.samples else "opens, but was not computed"
        return Avoided(title, how, passed, {True: "passes", None: unknown}.get(passed, str(outcome.reason)))

    def _asked(self, part: onnx.ModelProto) -> CheckOutcome | None:
        """A child that dies is a failure of another kind."""
        self.tries += 1
        path = self.folder / f"{self.tries}.onnx"
        onnx.save(part, path)
        data = DataSource(specs=self.model.feeds(part))
        call = _CHECK.call(artifact=str(path), plain=str(path), workdir=str(self.folder), params=self.params, data=data)
        result = run(call, timeout=_TRY_S)
        path.unlink()
        return result.value if result.ok else None

    def _spent(self) -> bool:
        return self.tries >= TRIES or time.monotonic() - self.began > SECONDS
