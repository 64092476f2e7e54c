"""The library names parameters, the command line translates them into its options."""

import importlib

import click
import pytest

from modelwright.cli import eval as evaluating
from modelwright.cli import perf as timing
from modelwright.cli._app import _typed, find
from modelwright.cli._flags import with_flags
from modelwright.errors import UsageError


@pytest.mark.parametrize(
    ("command", "said", "shown"),
    [
        (evaluating.command, "give more `samples`, or `max_drop` 1%", "give more --samples, or --max-drop 1%"),
        (evaluating.command, "`columns` and `min_sqnr_db`", "--column and --min-sqnr"),
        (timing.command, "`duration_s` or `dims` of `model`", "--duration or --dim of MODEL"),
        (timing.command, "`target` cpu, `provider_options`", "--target cpu, --ep-option"),
        (timing.command, "run `wright sys`; `label` is a column", "run `wright sys`; `label` is a column"),
        (None, "`samples`", "`samples`"),
    ],
)
def test_parameters_become_options_of_the_command(command: click.Command, said, shown):
    assert with_flags(UsageError("p", cause="c", fix=said), command).fix == shown


@pytest.mark.parametrize(
    ("words", "option"),
    [
        (["support", "run", "model", "-o", "out"], "--random-weights"),
        (["support", "-v", "probe", "model"], "--trust-remote-code"),
        (["matrix", "run", "models.toml"], "--target"),
        (["eval", "build"], "--max-drop"),
    ],
)
def test_a_command_of_a_group_is_the_one_whose_options_are_known(words, option):
    importlib.import_module(find(words[0]).module)
    assert option in [name for item in _typed(words).params for name in item.opts]
