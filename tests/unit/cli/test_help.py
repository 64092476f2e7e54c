"""What `wright --help` prints."""

from modelwright.cli._commands import root_help


def test_the_list_of_commands_fits_80_columns():
    assert [line for line in root_help(with_missing=False).splitlines() if len(line) > 80] == []
