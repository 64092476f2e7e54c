"""Completion for PowerShell, which click does not know."""

from __future__ import annotations

import os
from typing import Any, ClassVar

from click.shell_completion import CompletionItem, ShellComplete, add_completion_class

_SCRIPT = """\
Register-ArgumentCompleter -Native -CommandName %(prog_name)s -ScriptBlock {
    param($wordToComplete, $commandAst, $cursorPosition)
    $words = $commandAst.CommandElements | Where-Object { $_.Extent.StartOffset -lt $cursorPosition }
    $env:%(complete_var)s = "powershell_complete"
    $env:COMP_WORDS = ($words | ForEach-Object { $_.ToString() }) -join "`n"
    $env:COMP_WORD = $wordToComplete
    try { $lines = & %(prog_name)s }
    finally { Remove-Item Env:%(complete_var)s, Env:COMP_WORDS, Env:COMP_WORD -ErrorAction SilentlyContinue }
    foreach ($line in $lines) {
        $kind, $value, $help = $line -split "`t", 3
        if ($kind -eq "plain") {
            if (-not $help) { $help = $value }
            [System.Management.Automation.CompletionResult]::new($value, $value, "ParameterValue", $help)
        } else {
            [System.Management.Automation.CompletionCompleters]::CompleteFilename($wordToComplete)
        }
    }
}
"""


class PowerShellComplete(ShellComplete):
    """The words so far come with a newline between, the one being typed by itself."""

    name: ClassVar[str] = "powershell"
    source_template: ClassVar[str] = _SCRIPT

    def get_completion_args(self) -> tuple[list[str], str]:
        words, typed = os.environ["COMP_WORDS"].split("\n")[1:], os.environ.get("COMP_WORD", "")
        return (words[:-1] if typed and words and words[-1] == typed else words), typed

    def format_completion(self, item: CompletionItem) -> str:
        kind: Any = item.type if item.type == "plain" else "file"
        return f"{kind}\t{item.value}\t{item.help or ''}"


def add_powershell() -> None:
    add_completion_class(PowerShellComplete)
