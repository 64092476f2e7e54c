"""Seeded mutations of valid models through `inspect`, and a share of them through `build`.

Bytes flipped, cut, copied, moved; fields of the parsed model set to odd values, dropped, doubled. Whatever comes out
is answered with an exit code of the contract: an internal error, a traceback, a signal, a hang or an answer that is no
JSON is a failure, listed with its seed. `python -m bench.mutations SEED` does one of them again and shows its answer.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import random
import select
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

import onnx  # noqa: E402
from google.protobuf.message import DecodeError, Message  # noqa: E402

from hostile.driver import Driver, Job  # noqa: E402
from support import models  # noqa: E402

COUNT = 3000
BUILDS = 25
LIMIT_S = 60.0
EXPECTED = (0, 3)
BUILD_EXPECTED = (0, 1, 3)
BASES: tuple[Callable[[], onnx.ModelProto], ...] = (
    models.mlp,
    models.conv_net,
    models.qdq,
    models.qlinear,
    models.weight_only_qdq,
    models.matmul_nbits,
    models.dynamic_int8,
    models.branching,
    models.with_function,
    models.ep_context,
)
_ODD_NUMBERS = (0, 1, -1, 2, 7, 99, 255, 2**31 - 1, -(2**31))
_ODD_LARGE = (2**62, -(2**63), 2**63 - 1)
_ODD_TEXTS = ("", "x", "y", "w1", "\0", "\x1b[2J", "[/x]", "../../etc/passwd", "n" * 5000, "Relu", "If")


def mutated(seed: int) -> bytes:
    """The same bytes for the same seed."""
    rng = random.Random(seed)
    proto = rng.choice(BASES)()
    if seed % 2:
        for _ in range(rng.randint(1, 3)):
            _change_field(rng, proto)
        return proto.SerializeToString()
    data = bytearray(proto.SerializeToString())
    for _ in range(rng.choice((1, 1, 1, 2, 4, 8))):
        rng.choice(_BYTES)(rng, data)
    return bytes(data)


def _flip(rng: random.Random, data: bytearray) -> None:
    if data:
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)


def _set(rng: random.Random, data: bytearray) -> None:
    if data:
        data[rng.randrange(len(data))] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)))


def _cut(rng: random.Random, data: bytearray) -> None:
    del data[rng.randrange(len(data) + 1) :]


def _drop(rng: random.Random, data: bytearray) -> None:
    at = rng.randrange(len(data) + 1)
    del data[at : at + rng.randint(1, 16)]


def _copy(rng: random.Random, data: bytearray) -> None:
    at, to = rng.randrange(len(data) + 1), rng.randrange(len(data) + 1)
    data[to:to] = data[at : at + rng.randint(1, 64)]


def _insert(rng: random.Random, data: bytearray) -> None:
    at = rng.randrange(len(data) + 1)
    data[at:at] = rng.randbytes(rng.randint(1, 16))


_BYTES = (_flip, _flip, _set, _cut, _drop, _copy, _insert)


def _messages(message: Message) -> Iterator[Message]:
    yield message
    for field, value in message.ListFields():
        if field.type == field.TYPE_MESSAGE:
            for inner in value if field.is_repeated else (value,):
                yield from _messages(inner)


def _change_field(rng: random.Random, proto: onnx.ModelProto) -> None:
    message = rng.choice(list(_messages(proto)))
    field = rng.choice(list(message.DESCRIPTOR.fields))
    with contextlib.suppress(ValueError, TypeError, DecodeError):
        if rng.random() < 0.25:
            message.ClearField(field.name)
        elif field.is_repeated:
            _change_list(rng, getattr(message, field.name), field)
        elif field.type == field.TYPE_MESSAGE:
            getattr(message, field.name).SetInParent()
        else:
            setattr(message, field.name, _odd(rng, field))


def _change_list(rng: random.Random, items, field) -> None:
    if items and rng.random() < 0.4:
        del items[rng.randrange(len(items))]
    elif field.type != field.TYPE_MESSAGE:
        items.append(_odd(rng, field))
    elif items:
        items.append(rng.choice(items))
    else:
        items.add()


def _odd(rng: random.Random, field):
    if field.type == field.TYPE_STRING:
        return rng.choice(_ODD_TEXTS)
    if field.type == field.TYPE_BYTES:
        return rng.randbytes(rng.choice((0, 1, 7, 64)))
    if field.type in (field.TYPE_FLOAT, field.TYPE_DOUBLE):
        return rng.choice((0.0, -1.0, float("nan"), float("inf"), 1e-45))
    wide = field.type in (field.TYPE_INT64, field.TYPE_UINT64)
    return rng.choice(_ODD_NUMBERS + (_ODD_LARGE if wide else ()))


def _inspect_here(seed: int, path: Path) -> dict[str, object]:
    """In this process, through the command line's own entry."""
    from modelwright.cli._app import run as wright

    path.write_bytes(mutated(seed))
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = wright(["inspect", str(path), "--json"])
    return {"seed": seed, "code": code, "complaint": _complaint(code, out.getvalue(), err.getvalue(), EXPECTED)}


def _complaint(code: int | str, out: str, err: str, expected: tuple[int, ...]) -> str | None:
    if code not in expected:
        return f"exit {code}: {err[-300:]}"
    if "Traceback" in err:
        return "a traceback"
    try:
        json.loads(out, parse_constant=lambda name: (_ for _ in ()).throw(ValueError(name)))
    except ValueError as error:
        return f"the answer is no JSON: {error}"
    return None


def _serve(first: int, last: int, folder: Path) -> None:
    for seed in range(first, last):
        print(json.dumps(_inspect_here(seed, folder / "model.onnx")), flush=True)


def _inspected(folder: Path) -> Iterator[dict[str, object]]:
    """All seeds, in children that take many each; one that dies or stands still costs its seed and is replaced."""
    seed = 0
    while seed < COUNT:
        command = [sys.executable, "-m", "bench.mutations", str(seed), str(COUNT), str(folder)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT, env=_environment(folder)) as child:
            assert child.stdout is not None
            while seed < COUNT and select.select([child.stdout], [], [], LIMIT_S)[0]:
                line = child.stdout.readline()
                if not line:
                    break
                yield json.loads(line)
                seed += 1
            child.kill()
        if seed < COUNT:
            yield {"seed": seed, "code": "lost", "complaint": f"no answer; the process ended with {child.returncode}"}
            seed += 1


def _built(seed: int, driver: Driver, folder: Path) -> dict[str, object]:
    case = folder / f"build-{seed}"
    case.mkdir()
    (case / "model.onnx").write_bytes(mutated(seed))
    words = ("build", "-m", "model.onnx", "-o", "out", "--json")
    answer = driver.run(Job(words, str(case), str(case / "scratch"), {"MODELWRIGHT_HOME": str(folder / "home")}))
    return {
        "seed": seed,
        "code": answer.code,
        "complaint": _complaint(answer.code, answer.out, answer.err, BUILD_EXPECTED),
    }


def _environment(folder: Path) -> dict[str, str]:
    return {**os.environ, "MODELWRIGHT_HOME": str(folder / "home")}


def run() -> dict[str, object]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        inspected = list(_inspected(folder))
        driver = Driver()
        try:
            # What inspect refuses, build refuses by the same reader.
            accepted = [item["seed"] for item in inspected if item["code"] == 0]
            built = [_built(seed, driver, folder) for seed in accepted[:: len(accepted) // BUILDS][:BUILDS]]
        finally:
            driver.close()
    failures = [
        {"command": command, **item}
        for command, items in (("inspect", inspected), ("build", built))
        for item in items
        if item["complaint"]
    ]
    return {
        "mutations": len(inspected),
        "base_models": len(BASES),
        "inspect_exit_codes": dict(sorted(Counter(str(item["code"]) for item in inspected).items())),
        "builds": len(built),
        "build_exit_codes": dict(sorted(Counter(str(item["code"]) for item in built).items())),
        "failures": failures,
        "met": not failures,
    }


if __name__ == "__main__":
    if len(sys.argv) > 3:
        _serve(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))
    elif len(sys.argv) > 1:
        with tempfile.TemporaryDirectory() as scratch:
            print(json.dumps(_inspect_here(int(sys.argv[1]), Path(scratch) / "model.onnx"), indent=2))
    else:
        print(json.dumps(run(), indent=2))
