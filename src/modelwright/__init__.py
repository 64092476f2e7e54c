"""Take a model to the artifact that runs best on a chosen accelerator, and prove every claim about it.

    import modelwright as mw

    build = mw.build("model.onnx", "qnn-npu", precision="w8a16", data=mw.Data("samples.npz"), output="build")
    print(mw.analyze("build", "qnn-npu").supported)

Every verb is a command of `wright`, takes values, and answers with a frozen `Result` that can be saved, sent as JSON
and shown in a notebook. Nothing is imported before it is used.
"""

import sys

__version__ = "0.1.0"

TYPE_CHECKING = False  # as in typing, which would be half the cost of this module
if TYPE_CHECKING:
    from modelwright.api import catalog, kb, support
    from modelwright.api.advise import advise
    from modelwright.api.analyze import analyze
    from modelwright.api.build import build, config, plan
    from modelwright.api.compare import compare
    from modelwright.api.debug import debug
    from modelwright.api.diagnose import diagnose
    from modelwright.api.evaluate import evaluate
    from modelwright.api.find import find
    from modelwright.api.inspect import inspect
    from modelwright.api.matrix import matrix, matrix_plan, matrix_status
    from modelwright.api.perf import perf
    from modelwright.api.publish import publish, pull, verify
    from modelwright.api.read import open_build, read
    from modelwright.api.repair import repair
    from modelwright.api.ship import ship
    from modelwright.api.site import site
    from modelwright.api.sweep import sweep
    from modelwright.api.tune import tune
    from modelwright.api.watch import watch, watch_history
    from modelwright.errors import WrightError
    from modelwright.measure import Arm
    from modelwright.pipeline import Recipe
    from modelwright.store import Store
    from modelwright.targets import Target
    from modelwright.vocabulary import Data, On, PixelInputs, Progress, Result
    from modelwright.worker import limited

_WHERE = {
    "Arm": ("measure", "Arm"),
    "Data": ("vocabulary", "Data"),
    "On": ("vocabulary", "On"),
    "PixelInputs": ("vocabulary", "PixelInputs"),
    "Progress": ("vocabulary", "Progress"),
    "Recipe": ("pipeline", "Recipe"),
    "Result": ("vocabulary", "Result"),
    "Store": ("store", "Store"),
    "Target": ("targets", "Target"),
    "WrightError": ("errors", "WrightError"),
    "advise": ("api.advise", "advise"),
    "analyze": ("api.analyze", "analyze"),
    "build": ("api.build", "build"),
    "catalog": ("api", "catalog"),
    "compare": ("api.compare", "compare"),
    "config": ("api.build", "config"),
    "debug": ("api.debug", "debug"),
    "diagnose": ("api.diagnose", "diagnose"),
    "evaluate": ("api.evaluate", "evaluate"),
    "find": ("api.find", "find"),
    "inspect": ("api.inspect", "inspect"),
    "kb": ("api", "kb"),
    "limited": ("worker", "limited"),
    "matrix": ("api.matrix", "matrix"),
    "matrix_plan": ("api.matrix", "matrix_plan"),
    "matrix_status": ("api.matrix", "matrix_status"),
    "open_build": ("api.read", "open_build"),
    "perf": ("api.perf", "perf"),
    "plan": ("api.build", "plan"),
    "publish": ("api.publish", "publish"),
    "pull": ("api.publish", "pull"),
    "read": ("api.read", "read"),
    "repair": ("api.repair", "repair"),
    "ship": ("api.ship", "ship"),
    "site": ("api.site", "site"),
    "support": ("api", "support"),
    "sweep": ("api.sweep", "sweep"),
    "tune": ("api.tune", "tune"),
    "verify": ("api.publish", "verify"),
    "watch": ("api.watch", "watch"),
    "watch_history": ("api.watch", "watch_history"),
}

__all__ = [
    "Arm",
    "Data",
    "On",
    "PixelInputs",
    "Progress",
    "Recipe",
    "Result",
    "Store",
    "Target",
    "WrightError",
    "__version__",
    "advise",
    "analyze",
    "build",
    "catalog",
    "compare",
    "config",
    "debug",
    "diagnose",
    "evaluate",
    "find",
    "inspect",
    "kb",
    "limited",
    "matrix",
    "matrix_plan",
    "matrix_status",
    "open_build",
    "perf",
    "plan",
    "publish",
    "pull",
    "read",
    "repair",
    "ship",
    "site",
    "support",
    "sweep",
    "tune",
    "verify",
    "watch",
    "watch_history",
]


def __getattr__(name: str) -> object:
    if name not in _WHERE:
        raise AttributeError(f"module 'modelwright' has no attribute '{name}'")
    module, attribute = _WHERE[name]
    value: object = getattr(__import__(f"modelwright.{module}", fromlist=[attribute]), attribute)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_WHERE})


class _FrontDoor(type(sys)):  # type: ignore[misc]
    """`modelwright.support` is also a room: importing that puts the room in place of the verbs, which are what somebody
    means who writes the name."""

    def __setattr__(self, name: str, value: object) -> None:
        if name != "support" or not isinstance(value, type(sys)) or value.__name__ != "modelwright.support":
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _FrontDoor
