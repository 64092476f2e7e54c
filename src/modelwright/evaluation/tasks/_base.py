"""What a task is: how one row and the model's outputs become numbers, and how those become one metric."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field as field_of
from typing import TYPE_CHECKING, Any, ClassVar

from modelwright._dataclass import dataclass
from modelwright._lazy import lazy
from modelwright.data import Row as Row
from modelwright.errors import InputError, UsageError, did_you_mean
from modelwright.judge import Form, contributions, heaviest

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
else:
    np = lazy("numpy")

Outputs = Mapping[str, "NDArray[Any]"]
Run = Callable[[Row], Outputs]
IGNORED = -100


@dataclass(frozen=True)
class Metric:
    """`form` says what the metric is computed from.

    A failed sample counts as `worst`; where there is no worst score, it leaves the metric unknown. `span` is how far
    two models' scores of one sample can lie apart (of a set: what one sample can take from the metric, times their
    number); None where only the user can know that.
    """

    name: str
    unit: str = "fraction"
    higher_is_better: bool = True
    form: Form = "mean"
    span: float | None = 1.0
    worst: float | None = 0.0


@dataclass(frozen=True)
class Context:
    """What a task may know beside the rows: names of the classes, arrays all rows share, how to get the tokenizer.

    `writes`: the model takes the tokens it has written so far. `generation` is what its folder says about that.
    """

    label_names: tuple[str, ...] = ()
    tokenizer: Callable[[], Any] | None = None
    shared: Mapping[str, Any] | None = None
    writes: bool = False
    generation: Mapping[str, Any] = field_of(default_factory=dict)


class EvalTask(ABC):
    """One object per evaluation. `settings` are the user's, checked against `defaults`."""

    metric: Metric
    defaults: ClassVar[Mapping[str, str]] = {}
    compares_outputs: bool = True

    def __init__(self, context: Context, settings: Mapping[str, str]) -> None:
        self.context = context
        self.settings = {**self.defaults, **_known(settings, self.defaults)}

    def views(self, row: Row) -> Sequence[Row]:
        """The model inputs of one row; several where a row is run more than once."""
        return (row,)

    def answer(self, run: Run, row: Row) -> tuple[Outputs, ...] | None:
        """Run the model by hand where its outputs feed it again; None leaves the running to the caller."""
        return None

    @abstractmethod
    def score(self, row: Row, outputs: Sequence[Outputs]) -> Any:
        """The numbers of one sample, from the outputs of each view (without the batch axis)."""

    def collect(self, numbers: Sequence[Any]) -> list[NDArray[Any] | None]:
        """The numbers of all samples, None for failed ones, where a sample's number depends on the others."""
        if all(isinstance(item, float) for item in numbers):
            return list(np.reshape(np.asarray(numbers, np.float64), (-1, 1)))
        return [None if item is None else np.atleast_1d(np.asarray(item, np.float64)) for item in numbers]

    def value(self, numbers: NDArray[Any]) -> float:
        """The metric: of the sums, or of the set, as `metric.form` says."""
        return float(numbers[0])

    def spoiled(self, numbers: NDArray[Any]) -> NDArray[Any]:
        """Of a metric of sums: one sample's numbers when it is as bad as can be, or as `metric.span` lets it be."""
        raise NotImplementedError(f"{self.metric.name} does not say what a sample can cost")

    def parts(self, numbers: NDArray[Any]) -> tuple[float, NDArray[Any]]:
        """The metric of these samples, and what each contributes to it."""
        return contributions(self.metric.form, self.value, numbers)

    def span(self, numbers: NDArray[Any]) -> float | None:
        """The most by which one contribution can change; None where only the user can know that."""
        span = self.metric.span
        if span is None or self.metric.form != "sums":
            return span
        return max(span, heaviest(self.value, self.spoiled, numbers))

    def more(self, numbers: NDArray[Any]) -> dict[str, float]:
        """Further metrics of all samples."""
        return {}

    def chance(self) -> float | None:
        """What guessing scores, once samples were seen; a reference that is no better has wrong data."""
        return None

    def number(self, key: str) -> float:
        try:
            return float(self.settings[key])
        except ValueError as error:
            raise UsageError(
                f"`settings` {key}={self.settings[key]} is not a number", cause=str(error), fix=f"`settings` {key}=1"
            ) from error

    def choice(self, key: str, allowed: Sequence[str]) -> str:
        word = self.settings[key]
        if word not in allowed:
            raise UsageError(
                f"`settings` {key}={word} is not known",
                cause=f"{key} is one of {', '.join(allowed)}",
                fix=did_you_mean(word, allowed) or f"`settings` {key}={allowed[0]}",
            )
        return word


def _known(settings: Mapping[str, str], defaults: Mapping[str, str]) -> Mapping[str, str]:
    for key in settings:
        if key not in defaults:
            raise UsageError(
                f"this task has no setting '{key}'",
                cause=f"its settings are {', '.join(defaults) or 'none'}",
                fix=did_you_mean(key, defaults) or f"leave `settings` {key} out",
            )
    return settings


def field(row: Row, name: str, meaning: str) -> Any:
    if name not in row or row[name] is None:
        raise InputError(
            f"the data has no '{name}'",
            cause=f"this task needs it: {meaning}; the rows hold {', '.join(sorted(row)) or 'nothing'}",
            fix=f"Add it, or say which column it is with `columns` {name}=COLUMN.",
        )
    return row[name]


def label_of(row: Row, classes: int, name: str = "label") -> int:
    """A class number that the head has."""
    value = np.asarray(field(row, name, "the number of the right class"))
    if value.size != 1 or (value.dtype.kind not in "iub" and not float(value.reshape(())).is_integer()):
        raise InputError(
            f"{name} {value.tolist()} is not a class number",
            cause="it must be one integer for each sample",
            fix="Write the number of the class, counted from 0 in the order of the head.",
        )
    label = int(value.reshape(()))
    if not 0 <= label < classes:
        raise InputError(
            f"label {label} does not fit the model",
            cause=f"its head has {classes} classes, numbered 0 to {classes - 1}",
            fix="Check that the data belongs to this model and that its labels count from 0.",
        )
    return label


def labels_of(row: Row, length: int, classes: int) -> NDArray[Any]:
    """A class number for each position; -100 where there is none."""
    labels = np.asarray(field(row, "label", "a class for each position, -100 for none")).reshape(-1)
    if len(labels) != length:
        raise InputError(
            f"a row has {len(labels)} labels for {length} positions",
            cause="every position of the output needs a label, -100 where there is none",
            fix="Pad the labels as the inputs are padded.",
        )
    used = labels[labels != IGNORED]
    if len(used) and not (used.min() >= 0 and used.max() < classes):
        worst = int(used.max() if used.max() >= classes else used.min())
        raise InputError(
            f"label {worst} does not fit the model",
            cause=f"its head has {classes} classes, numbered 0 to {classes - 1}",
            fix="Check that the data belongs to this model and that its labels count from 0.",
        )
    return labels


def pick(outputs: Outputs, names: Sequence[str], rank: int) -> NDArray[Any]:
    """The output of one of these names; else the only one with this many axes."""
    for name in names:
        if name in outputs:
            found = np.asarray(outputs[name], np.float64)
            if found.ndim == rank:
                return found
    fitting = [np.asarray(value, np.float64) for value in outputs.values() if value.ndim == rank]
    if len(fitting) == 1:
        return fitting[0]
    shapes = ", ".join(f"{name}{list(value.shape)}" for name, value in outputs.items())
    raise InputError(
        f"the model does not look like this task: it has no {names[0]}",
        cause=f"for one sample its outputs are {shapes}; {len(fitting)} of them have {rank} axes",
        fix="Choose the task the model is for, or score it yourself with `metric` file.py:function.",
    )


def nothing_right(numbers: NDArray[Any], rights: int) -> NDArray[Any]:
    """Of counts that begin with so many of what is right: the same sample with none of it."""
    return np.append(np.zeros(rights), numbers[rights:])


def log_softmax(scores: NDArray[Any]) -> NDArray[Any]:
    shifted = scores - scores.max(axis=-1, keepdims=True)
    result: NDArray[Any] = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    return result


def softmax(scores: NDArray[Any]) -> NDArray[Any]:
    result: NDArray[Any] = np.exp(log_softmax(scores))
    return result
