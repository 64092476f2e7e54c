"""The library names parameters, the command line translates them into its options."""

import click
import pytest

from modelwright.cli import eval as evaluating
from modelwright.cli import perf as timing
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
