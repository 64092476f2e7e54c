"""`isa=host`: the instruction set of this machine, for a build that will run here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from modelwright.targets._host import Cpu, read_cpu
from modelwright.targets._target import ISA, THIS_HOST, Target

# What the operating system calls a feature, and the instruction set it stands for; the best comes first.
_BY_FEATURE = {
    "amx_int8": "amx",
    "avx512_vnni": "vnni",
    "avx_vnni": "vnni",
    "i8mm": "i8mm",
    "dotprod": "dotprod",
    "avx512": "avx512",
    "avx2": "avx2",
}


def on_this_host(target: Target) -> Target:
    """The same target with `isa=host` replaced by what this machine has; any CPU where that cannot be read."""
    if target.isa != THIS_HOST:
        return target
    found = isa_of(read_cpu())
    chip = {**dict(target.chip), ISA: found} if found else {key: value for key, value in target.chip if key != ISA}
    return replace(target, chip=tuple(sorted(chip.items())))


def isa_of(cpu: Cpu) -> str | None:
    """The catalogue's name for what this CPU does best with 8-bit numbers."""
    features: Sequence[str] = cpu.features or ()
    return next((isa for feature, isa in _BY_FEATURE.items() if feature in features), None)
