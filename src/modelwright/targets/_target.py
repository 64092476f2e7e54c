"""What a model is built for: a pure value, parsed from text, never from the host."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence

from modelwright._dataclass import dataclass
from modelwright.errors import UsageError, did_you_mean
from modelwright.targets._catalogue import Device, ExecutionProvider, Soc, catalogue
from modelwright.targets.eps import EpAdapter, adapter_of

ISA = "isa"
SOC = "soc"
THIS_HOST = "host"


@dataclass(frozen=True, order=True)
class Target:
    """An EP, a device kind and, where the EP has them, the chip it compiles for."""

    ep: str
    device: str
    chip: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        chip = ",".join(f"{key}={value}" for key, value in self.chip)
        return f"{self.word}:{chip}" if chip else self.word

    @property
    def word(self) -> str:
        """Without its chip: `qnn-npu`."""
        return self.ep if self.ep == self.device else f"{self.ep}-{self.device}"

    @property
    def folder_name(self) -> str:
        """With its chip, as the name of a folder: `qnn-npu-soc-x-elite`."""
        return str(self).replace(":", "-").replace(",", "-").replace("=", "-")

    @property
    def provider(self) -> ExecutionProvider:
        found = catalogue().find(self.ep)
        assert found is not None, "a Target is only made for an EP of the catalogue"
        return found

    @property
    def adapter(self) -> EpAdapter:
        """What is special about the EP."""
        return adapter_of(self.ep)

    @property
    def device_entry(self) -> Device:
        found = self.provider.device(self.device)
        assert found is not None, "a Target is only made for a device of its EP"
        return found

    @property
    def auto_precision(self) -> str:
        """What `precision = auto` means here."""
        return self.device_entry.precision

    @property
    def accepts_qdq(self) -> bool:
        """False where the EP quantizes by itself; a QDQ graph aborts such a compiler."""
        return not self.provider.quantizes_itself

    @property
    def isa(self) -> str | None:
        """The instruction set a CPU build may rely on; None is any."""
        return dict(self.chip).get(ISA)

    @property
    def exact_products(self) -> bool | None:
        """Are 8-bit products added up exactly on every machine this target means? None where no CPU computes them."""
        if self.device != "cpu" or ISA not in self.provider.chip_keys:
            return None
        return catalogue().isas.get(self.isa or "", False)

    @property
    def names_chip(self) -> bool:
        """Was a chip asked for? One that is only assumed is no reason to compile for it alone, and an instruction set
        is the quantizer's business."""
        return any(key != ISA for key, _ in self.chip)

    @property
    def provider_options(self) -> dict[str, str]:
        """Default EP options plus what the chip asks for. Library paths are the runtime's business."""
        return {**self.device_entry.options, **self._chip_options}

    @property
    def soc(self) -> Soc | None:
        """The chip that is compiled for, named or assumed; None for one that is not in the table."""
        return self.provider.socs.get(dict(self.chip).get(SOC) or self._assumed_soc or "")

    @property
    def assumption(self) -> str | None:
        """Which chip stands in where none is named, and how to name another."""
        name = self._assumed_soc
        if name is None:
            return None
        said = "only its architecture is named" if self.chip else "no chip is named"
        known = ", ".join(self.provider.socs)
        return (
            f"{said}, so it is taken to be {self.provider.socs[name].title}; "
            f"{Target(self.ep, self.device)}:{SOC}=NAME names another ({known})"
        )

    @property
    def _assumed_soc(self) -> str | None:
        """The device's usual one if it fits what is named, else the first that does."""
        chip, usual = dict(self.chip), self.device_entry.soc
        if usual is None or SOC in chip:
            return None
        fitting = [name for name, soc in self.provider.socs.items() if chip.items() <= soc.words.items()]
        return usual if usual in fitting else next(iter(fitting), None)

    @property
    def _chip_options(self) -> dict[str, str]:
        chip = {key: value for key, value in self.chip if key != ISA}
        assumed = self._assumed_soc
        return self.adapter.chip_options(self.provider, chip if assumed is None else {**chip, SOC: assumed})


def parse_target(text: str | Target) -> Target:
    """`qnn-npu`, `QNN_NPU`, `qnn-npu:htp_arch=73`, `cpu`, `QNNExecutionProvider`… → Target, which is one already."""
    return text if isinstance(text, Target) else _parsed(text)


@functools.lru_cache(256)
def _parsed(text: str) -> Target:
    head, _, chip = text.strip().partition(":")
    provider, device = _split(head, whole=text)
    return _checked(provider, device, _pairs(chip, text))


def parse_targets(targets: str | Target | Sequence[str | Target]) -> tuple[Target, ...]:
    """One or several, each once, in the order given."""
    several = [targets] if isinstance(targets, str | Target) else targets
    return tuple(dict.fromkeys(parse_target(target) for target in several))


def make_target(ep: str, device: str | None = None) -> Target:
    """The same value from `--ep` and `--device`; EP options of the chip follow the EP after a colon."""
    name, _, chip = ep.strip().partition(":")
    provider = catalogue().find(name)
    if provider is None:
        raise _unknown_ep(name)
    return _checked(provider, device, _pairs(chip, ep))


def known_targets() -> tuple[Target, ...]:
    """Every EP and device pair of the catalogue, without chips."""
    return tuple(Target(ep.key, device.kind) for ep in catalogue().eps for device in ep.devices)


def _split(head: str, whole: str) -> tuple[ExecutionProvider, str | None]:
    provider = catalogue().find(head)
    if provider is not None:
        return provider, None
    parts = re.split(r"[-_](?=[^-_]*$)", head)
    provider = catalogue().find(parts[0]) if len(parts) == 2 else None
    if provider is None:
        raise _unknown_target(whole)
    return provider, parts[1]


def _checked(provider: ExecutionProvider, device: str | None, chip: dict[str, str]) -> Target:
    kind = device.strip().lower() if device else provider.devices[0].kind
    if provider.device(kind) is None:
        kinds = ", ".join(entry.kind for entry in provider.devices)
        names = [str(Target(provider.key, entry.kind)) for entry in provider.devices]
        raise UsageError(
            f"{provider.name} has no device '{device}'",
            cause=f"it drives {kinds}",
            fix=did_you_mean(f"{provider.key}-{kind}", names) or f"use `target` {names[0]}",
        )
    if ISA in chip and kind != "cpu":
        raise UsageError(
            f"{provider.key}-{kind} has no instruction set to choose",
            cause="isa= is what the CPU of a CPU build can do",
            fix=f"leave isa= out, or use {Target(provider.key, 'cpu')}:{ISA}={chip[ISA]}",
        )
    return Target(provider.key, kind, tuple(sorted(_resolved_chip(provider, chip).items())))


def _pairs(text: str, whole: str) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for item in filter(None, (part.strip() for part in text.split(","))):
        key, equals, value = (part.strip().lower() for part in item.partition("="))
        if not equals or not value:
            raise UsageError(
                f"cannot read '{item}' in target '{whole}'",
                cause="chip settings are key=value",
                fix="write for example qnn-npu:htp_arch=73",
            )
        if key in pairs:
            raise UsageError(
                f"target '{whole}' sets {key} twice", cause="the values may differ", fix=f"keep one {key}="
            )
        pairs[key] = value
    return pairs


def _resolved_chip(provider: ExecutionProvider, chip: dict[str, str]) -> dict[str, str]:
    for key in chip:
        if key not in provider.chip_keys:
            allowed = ", ".join(provider.chip_keys) or "none"
            raise UsageError(
                f"{provider.name} has no chip setting '{key}'",
                cause=f"its chip settings are: {allowed}",
                fix=did_you_mean(key, provider.chip_keys) or f"leave '{key}' out",
            )
    if ISA in chip:
        _require_isa(chip[ISA])
    return adapter_of(provider.key).chip(provider, chip)


def _require_isa(value: str) -> None:
    known = [*catalogue().isas, THIS_HOST]
    if value not in known:
        raise UsageError(
            f"unknown isa '{value}'",
            cause=f"known instruction sets are {', '.join(known)}",
            fix=did_you_mean(value, known) or "leave isa= out to build for any CPU",
        )


def _unknown_target(text: str) -> UsageError:
    names = [str(target) for target in known_targets()]
    head = text.partition(":")[0].strip().lower().replace("_", "-")
    return UsageError(
        f"unknown target '{text}'",
        cause=f"known targets are {', '.join(names)}",
        fix=did_you_mean(head, names) or "run `wright sys` to see every target and what this machine can do",
    )


def _unknown_ep(name: str) -> UsageError:
    keys = [spelling for ep in catalogue().eps for spelling in ep.spellings]
    return UsageError(
        f"unknown execution provider '{name}'",
        cause=f"known providers are {', '.join(ep.key for ep in catalogue().eps)}",
        fix=did_you_mean(name.lower(), keys) or "run `wright sys` to see them all",
    )
