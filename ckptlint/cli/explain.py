"""``ckptlint explain``."""

from __future__ import annotations

import click

from ckptlint.rule import Rule, UnknownRule, rule_named


@click.command(short_help="Print a rule's page.")
@click.argument("rule", metavar="CODE|NAME")
def explain(rule: str) -> None:
    """Print the page of one rule: what it does, why it matters, examples, and how safe its fix is."""
    try:
        click.echo(page(rule_named(rule)))
    except UnknownRule as error:
        raise click.UsageError(f"{error}\nAll rules: ckptlint rules") from None


def page(rule: Rule) -> str:
    """A rule's page with its heading, in Markdown."""
    fix = f", fix {rule.fix}" if rule.fix else ""
    return f"# {rule.name} ({rule.code}, {rule.severity.value}{fix})\n\n{rule.page()}"
