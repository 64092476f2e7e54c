"""Results as large as users have them, made in milliseconds. Names are as hostile as a model's author may be."""

from __future__ import annotations

import dataclasses
import enum
import random
import types
import typing
from collections.abc import Mapping
from typing import Any, TypeVar

from modelwright.diagnosis import (
    Activation,
    DebugReport,
    DebugSummary,
    DecibelSpread,
    NoiseShare,
    OutputScore,
    WeightScore,
)
from modelwright.evaluation import EvalOutput, EvalResult, SampleScore
from modelwright.judge import VerdictKind
from modelwright.measure import (
    ArmResult,
    CompareResult,
    Latency,
    Operator,
    OpTrace,
    PerfResult,
    SessionRecord,
    TelemetrySeries,
    TraceShare,
    TraceStatus,
)
from modelwright.pipeline import Analyses, Analysis, Suggestion, TriedChange
from modelwright.repairs import FixResult, FixRow, FixScore, Repaired
from modelwright.search import (
    CarriedArtifact,
    FallbackStep,
    Portfolio,
    PortfolioRow,
    SearchFailure,
    SweepRow,
    TuneFront,
    TuneResult,
    TuneRow,
    TuneSweep,
)
from modelwright.targets import BoundaryCopy, EpShare, LeftNode, PlacedNode, Placement, Refusal

T = TypeVar("T")
QNN, CPU = "QNNExecutionProvider", "CPUExecutionProvider"
HOSTILE = "</script><img src=x onerror=console.error(1)>&\"'\x1b[31m"
LARGE = 2000
_OPS = ("Conv", "Relu", "Add", "MatMul", "LayerNormalization", "Softmax", "Transpose", "Reshape", "Mul", "Gelu")


def made(cls: type[T], **known: Any) -> T:
    """A dataclass with these fields; all others hold the least their type allows, so that new ones do no harm."""
    hints = typing.get_type_hints(cls)
    fields = [field for field in dataclasses.fields(cls) if field.init and field.name not in known]
    return cls(**known, **{field.name: _least(hints[field.name]) for field in fields if _needed(field)})


def _needed(field: dataclasses.Field[Any]) -> bool:
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING


def _least(hint: Any) -> Any:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return None if type(None) in arguments else _least(arguments[0])
    if origin is typing.Literal:
        return arguments[0]
    if origin is tuple:
        return ()
    if origin is not None and isinstance(origin, type) and issubclass(origin, Mapping):
        return {}
    if dataclasses.is_dataclass(hint):
        return made(hint)
    return next(iter(hint)) if issubclass(hint, enum.Enum) else hint()


def node_name(place: int) -> str:
    return (
        HOSTILE if place == 3 else f"/encoder/layer.{place // 40}/block.{place % 40 // 10}/{_OPS[place % 10]}_{place}"
    )


def placed(count: int = LARGE) -> Placement:
    """A chain with residual paths, of which the target leaves every 97th node."""

    def ep(place: int) -> str:
        return CPU if place % 97 == 50 else QNN

    nodes = []
    for place in range(count):
        reads = {place - 1, place - 7} if place % 10 == 9 else {place - 1}
        nodes.append(
            PlacedNode(
                node_name(place), _OPS[place % 10], ep(place), tuple(read for read in sorted(reads) if read >= 0)
            )
        )
    left = [place for place in range(count) if ep(place) == CPU]
    why = made(Refusal, kind="unsupported", reason=f"rank 5 tensors are not supported {HOSTILE}")
    return made(
        Placement,
        target="qnn-npu",
        status="placed",
        nodes=count,
        eps=(
            made(EpShare, ep=QNN, nodes=count - len(left), partitions=len(left) + 1),
            made(EpShare, ep=CPU, nodes=len(left), partitions=len(left)),
        ),
        left=tuple(made(LeftNode, name=nodes[at].name, op_type=nodes[at].op_type, ep=CPU, why=why) for at in left),
        copies=tuple(BoundaryCopy(f"t{at}", QNN, CPU, 4096 * at) for at in left),
        graph=tuple(nodes),
    )


def analyses(count: int = LARGE) -> Analyses:
    helps = made(Suggestion, title="Quantize to w8a16", how="--precision w8a16", left_before=20, left_after=2)
    unknown = made(
        Analysis,
        model="net.onnx",
        target="openvino-npu",
        placement=made(Placement, status="unknown", reason="no Intel NPU is seen", fix="install its driver"),
    )
    tried = tuple(TriedChange(f"Change {number}", f"--opset {number}", "3 of 90 nodes left") for number in range(5))
    one = made(Analysis, model="net.onnx", target="qnn-npu", placement=placed(count), suggestions=(helps,), tried=tried)
    return Analyses((one, unknown))


def trace(count: int = LARGE) -> OpTrace:
    coins = random.Random(0)
    times = sorted((coins.expovariate(1 / 40) + 1 for _ in range(count)), reverse=True)
    total, start = sum(times), 0.0
    operators, spans = [], []
    hints = typing.get_type_hints(OpTrace)
    span_type, totals_type = typing.get_args(hints["timeline"])[0], hints["totals"]
    spread_type = typing.get_type_hints(Operator)["self_us"]
    for place, us in enumerate(times):
        share = 100 * us / total
        operators.append(
            made(
                Operator,
                id=f"op{place}",
                node=node_name(place),
                onnx_nodes=(node_name(place), "bias", "act") if place % 5 == 0 else (node_name(place),),
                op_type=_OPS[place % 10],
                provider=QNN if place % 3 else CPU,
                calls_per_run=1.0,
                self_us=made(spread_type, p50=us, p90=1.2 * us, max=2 * us),
                percent=share,
                inputs=("float32[1,64,56,56]",),
                outputs=("float32[1,64,56,56]",),
            )
        )
        spans.append(span_type(f"op{place}", start, us, 0))
        start += us
    shares = tuple(
        TraceShare(op, count // 10, sum(times[place::10]), 100 * sum(times[place::10]) / total, None)
        for place, op in enumerate(_OPS)
    )
    return made(
        OpTrace,
        model="net.onnx",
        status=TraceStatus.OK,
        operators=tuple(operators),
        by_op_type=shares,
        by_provider=(TraceShare(QNN, count, total, 100.0, None),),
        timeline=tuple(spans),
        totals=made(totals_type, model_run_us=1.1 * total, kernel_us=total, overhead_us=0.1 * total),
    )


def perf(count: int = LARGE) -> PerfResult:
    coins = random.Random(1)
    times = tuple(int(1e6 * (3 + coins.random() + 4 * (coins.random() < 0.01))) for _ in range(5000))
    series_type = typing.get_args(typing.get_type_hints(TelemetrySeries)["recent"])[0]
    load = tuple(series_type(at / 4, 60 + 30 * coins.random()) for at in range(120))
    seen = typing.get_args(typing.get_type_hints(SessionRecord)["telemetry"])[0]
    meters = (
        made(TelemetrySeries, name="CPU of the process", unit="%", mean=75.0, max=90.0, recent=load),
        made(TelemetrySeries, name="NPU", unit="%", reason="no NPU is seen"),
    )
    record = made(SessionRecord, samples_ns=times, p50_ms=3.5, telemetry=made(seen, interval_s=0.25, series=meters))
    short = made(SessionRecord, samples_ns=times[:400], p50_ms=3.6)
    latency = made(
        Latency, count=5400, mean_ms=3.6, p50_ms=3.5, p90_ms=3.9, p95_ms=4.0, p99_ms=7.4, min_ms=3.0, max_ms=8.0
    )
    return made(
        PerfResult,
        status="complete",
        model="net.onnx",
        latency=latency,
        sessions=(record, short),
        warnings=(f"the clock moved {HOSTILE}",),
        op_trace=trace(count),
    )


def compare() -> CompareResult:
    coins = random.Random(2)
    finding, by = typing.get_args(typing.get_type_hints(ArmResult)["verdict"])[0], []
    verdict = typing.get_args(typing.get_type_hints(finding)["by"])[0]
    for kind, effect in ((VerdictKind.IMPROVED, 0.31), (VerdictKind.INCONCLUSIVE, 0.004)):
        one = made(verdict, kind=kind, effect=effect, low=effect - 0.03, high=effect + 0.02, units=24, min_effect=0.02)
        by.append(finding(kind, (one, dataclasses.replace(one, quantile=0.5))))
    arms = (
        made(ArmResult, name="float", model="float.onnx", target="cpu", times_ms=(4.1, 4.4)),
        made(
            ArmResult,
            name="w8a8",
            model="w8a8.onnx",
            target="cpu",
            times_ms=(3.1, 3.3),
            verdict=by[0],
            sentence="w8a8 is faster than float by 31 %",
        ),
        made(
            ArmResult,
            name="other",
            model=HOSTILE,
            target="cpu",
            times_ms=(4.1, 4.4),
            verdict=by[1],
            sentence="not decided",
            settled_after_s=400.0,
        ),
    )
    unit = typing.get_args(typing.get_type_hints(CompareResult)["units"])[0]
    units = tuple(
        made(
            unit,
            number=place,
            arm=(None, "w8a8", "other")[place % 3],
            base_ns=((4_000_000 + coins.randrange(90_000),),),
            arm_ns=((3_100_000 + coins.randrange(90_000),),),
        )
        for place in range(60)
    )
    return made(
        CompareResult,
        status="complete",
        base="float",
        arms=arms,
        units=units,
        total_s=118.0,
        arms_as_written=("float.onnx", "w8a8.onnx", HOSTILE),
    )


def evaluation() -> EvalResult:
    coins = random.Random(3)
    scores = tuple(
        SampleScore(place, float(coins.random() > 0.1), float(coins.random() > 0.08)) for place in range(3000)
    )
    hints = typing.get_type_hints(EvalResult)
    metric, values, paired = (typing.get_args(hints[name])[0] for name in ("metric", "values", "comparison"))
    found = made(
        paired, low=0.002, seen=0.02, high=0.041, margin=0.03, alpha=0.05, verdict=VerdictKind.INCONCLUSIVE, needed=9000
    )
    side = hints["candidate"]
    return made(
        EvalResult,
        status="complete",
        task="image-classification",
        max_drop="0.03",
        verdict=VerdictKind.INCONCLUSIVE,
        reasons=("3,000 samples do not decide",),
        metric=metric("accuracy"),
        candidate=made(side, model="w8a8.onnx", target="cpu", engine="onnxruntime 1.31.1"),
        reference=made(side, model="float.onnx", target="cpu", engine="onnxruntime 1.31.1"),
        values=values(0.90, 0.92, 0.02, None, {"top-5": (0.99, 0.99)}),
        comparison=found,
        outputs=(EvalOutput(HOSTILE, None, "other shape"),),
        scores=scores,
    )


def debug(count: int = LARGE) -> DebugReport:
    coins = random.Random(4)
    weights = [coins.expovariate(1) for _ in range(count)]
    rows = tuple(
        made(
            Activation,
            tensor_name=f"{node_name(place)}_output_0",
            order=place,
            node=node_name(place),
            op_type=_OPS[place % 10],
            dtype="uint8",
            absorbed="Relu" if place % 10 == 0 else None,
            local_sqnr_db=45 + 10 * coins.random(),
            cumulative_sqnr_db=max(12.0, 60 - place / count * 45 + 4 * coins.random()),
            introduced_sqnr_db=30 + 20 * coins.random(),
            origin_share=weights[place] / sum(weights) if place else 0.05,
            clip_fraction=coins.random() / 100,
        )
        for place in range(count)
    )
    spread = made(DecibelSpread, count=count, mean=40.0, std=5.0, min=12.0, max=60.0)
    return made(
        DebugReport,
        summary=DebugSummary(spread, spread, spread),
        status="ok",
        mode="static",
        float_model="float.onnx",
        quant_model="w8a8.onnx",
        samples=8,
        model_outputs=(
            made(
                OutputScore,
                output_name=HOSTILE,
                cumulative_sqnr_db=18.2,
                executed_sqnr_db=17.9,
                cosine=0.991,
                top1=0.97,
            ),
        ),
        activations=rows,
        weights=tuple(
            made(WeightScore, weight_name=f"w{place}", dtype="int8", elements=1 << 16, weight_sqnr_db=30 + place / 10)
            for place in range(200)
        ),
        by_op_type=tuple(NoiseShare(op, 0.5 / (place + 1), 200) for place, op in enumerate(_OPS)),
        notes=(HOSTILE,),
    )


def fix() -> FixResult:
    rows = tuple(
        made(
            FixRow,
            name=name,
            raised=raised,
            file_bytes=size,
            choose=made(FixScore, sqnr_db=db),
            check=made(FixScore, sqnr_db=db),
            p50_ms=3.1,
        )
        for name, raised, size, db in (
            ("float", 0, 4 << 20, None),
            ("quantized", 0, 1 << 20, 17.9),
            ("repaired", 3, 1_300_000, 31.0),
        )
    )
    promotion = typing.get_args(typing.get_type_hints(FixResult)["raised"])[0]
    raised = made(promotion, tensor=HOSTILE, node="conv1", what="activation", level="16bit", origin_share=0.4)
    return made(
        FixResult,
        status=VerdictKind.MET,
        wanted="every output at 30 dB",
        target="cpu",
        rows=rows,
        raised=(raised,),
        builds=7,
        random_data=True,
    )


def tune() -> TuneResult:
    coins = random.Random(5)
    words = ("improved", "no gain", "not decided", "placement", "duplicate")
    rows = tuple(
        TuneRow(
            f"+pass_number_{place}_{HOSTILE}",
            words[place % len(words)],
            "the reason in a sentence of some length, as the tool says it",
            *((effect, effect - 0.01, effect + 0.02) if place % len(words) < 3 else ()),
            size=10**6 + place,
        )
        for place, effect in ((place, coins.uniform(-0.2, 0.2)) for place in range(40))
    )
    front = TuneFront(("latency", "size"), (rows[0].label, rows[1].label))
    said = {"model": f"net{HOSTILE}.onnx", "target": "cpu", "champion": "threads=1", "timed": True}
    return made(TuneResult, **said, rows=rows, front=front)


def sweep() -> TuneSweep:
    row = PortfolioRow(f"+pass_{HOSTILE}", (0.1, None), 0.1, None, front=True)
    out = PortfolioRow("+other", (0.2, None), 0.2, "placement for qnn-npu: it leaves 3 more nodes to the CPU")
    artifacts = (CarriedArtifact("cpu", "baseline", "portable", "standard ONNX, nothing compiled"),)
    chain = (
        FallbackStep((), "cpu", True, "cpu", "opened and run"),
        FallbackStep(("cpu",), "dml-gpu", False, None, HOSTILE),
    )
    found = Portfolio(
        f"net{HOSTILE}.onnx", ("cpu", "qnn-npu"), row.label, 0.1, "by screenings", (row, out), artifacts, chain
    )
    rows = (
        SweepRow(f"net{HOSTILE}", "cpu", tune(), None, fresh=True),
        SweepRow("other", "cpu", None, SearchFailure(f"not there {HOSTILE}", "gone", "look", 3), fresh=True),
    )
    return made(TuneSweep, rows=rows, portfolios=(found,), spent_s=12.0)


def matrix(models: int = 200) -> Any:
    """A model in 40 failed for an NPU, one in 50 could not be judged, and one is still at work. All that are built are
    scored, and those for the CPU timed."""
    from modelwright.farm import (
        EIGHT,
        CellAccuracy,
        CellFacts,
        CellFailure,
        CellPerf,
        CellStatus,
        MatrixCell,
        MatrixResult,
        PartTime,
    )

    facts = CellFacts("k" * 64, "d" * 64, 98_000_000, "w8a16", True, None, 0.99812, 120, 118, True, False, None, 41.0,
                      62.5, 1 << 30, 3, 2, ("e" * 64, "f" * 64))  # fmt: skip
    crash = CellFailure(
        "crash", "The worker process of quantize failed.", "crashed with SIGSEGV", "see the log", "a.log"
    )
    cells = []
    for number in range(models):
        for target in EIGHT:
            cell = MatrixCell(f"{number}{target}", f"organisation-{number % 7}/model-of-some-length-{number}", target)
            if target == "qnn-npu" and number % 40 == 3:
                cells.append(CellStatus(cell, "failed", attempt=1, failure=crash))
            elif target == "openvino-npu" and number % 50 == 7:
                cells.append(CellStatus(cell, "built", facts=dataclasses.replace(facts, gate=None)))
            else:
                time = (PartTime("model", 5.0 + number / 7, 6.0 + number / 7, "a" * 64),)
                perf = CellPerf("d" * 64, None, time) if target == "cpu" else CellPerf("d" * 64, reason="no device")
                score = CellAccuracy("d" * 64, "accuracy", 0.7 + number / 1000, 0.9, 500, "cpu", record="b" * 64)
                measured = {"facts": facts, "perf": perf, "accuracy": score} if number else {}
                cells.append(CellStatus(cell, "published" if number else "building", **measured))
    return MatrixResult(tuple(cells), "oci://registry.example/models")


def every_page() -> dict[str, str]:
    """The pages by name, all of them."""
    from modelwright.farm import LinkedMatrix
    from modelwright.report.html import page

    return {
        "analyze": page(analyses()),
        "compare": page(compare()),
        "debug": page(debug()),
        "debug_fix": page(debug(60), Repaired(fix(), None)),
        "eval": page(evaluation()),
        "matrix": page(LinkedMatrix(matrix())),
        "matrix_model": page(matrix(5).models[3]),
        "perf": page(perf(60)),
        "repair": page(fix()),
        "sweep": page(sweep()),
        "trace": page(trace()),
        "tune": page(tune()),
    }
