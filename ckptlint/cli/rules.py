"""``ckptlint rules``."""

from __future__ import annotations

import click

from ckptlint.rule import Rule, all_rules

_HEAD = ("code", "name", "severity", "fix", "summary")


@click.command(short_help="Print the catalogue.")
@click.option("--output-format", type=click.Choice(["text", "json"]), default="text", show_default=True)
def rules(output_format: str) -> None:
    """Print all rules: code, name, default severity, what its fix is, and what it reports."""
    if output_format == "json":
        import json

        catalogue = [dict(zip(_HEAD, _row(rule), strict=True)) for rule in all_rules()]
        click.echo(json.dumps(catalogue, indent=2, ensure_ascii=False))
        return
    rows = [_HEAD, *map(_row, all_rules())]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        click.echo("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def _row(rule: Rule) -> tuple[str, ...]:
    return rule.code, rule.name, rule.severity.value, rule.fix, rule.summary()
