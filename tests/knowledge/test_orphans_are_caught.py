"""Each check of the references can fail: it is given a house with just that fault, and must name the culprit."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

import msgspec
import pytest

from straggler.engine.commands import Template
from straggler.engine.model import Status
from straggler.engine.sections import Sections
from tests.knowledge import orphans
from tests.knowledge.house import House, house

V = TypeVar("V")
SECTION = "cpu.md#cpu-governor"
RULES_FILE = "engine/rules/governor.py"
BUSBW = house().known.instances["p5.48xlarge"].busbw[0]


def without(table: Mapping[Any, V], key: Any) -> dict[Any, V]:
    return {name: one for name, one in table.items() if name != key}


def entry(table: str, key: Any, **changes: Any) -> House:
    """The house with one entry of one file of the references changed; a new key takes the fields of the first entry."""
    entries: Mapping[Any, Any] = getattr(house().known, table)
    old = entries.get(key) or next(iter(entries.values()))
    changed = {**entries, key: msgspec.structs.replace(old, **changes)}
    return _with(table, changed)


def lacking(table: str, key: Any) -> House:
    return _with(table, without(getattr(house().known, table), key))


def _with(table: str, entries: Mapping[Any, Any]) -> House:
    changes: dict[str, Any] = {table: entries}
    return replace(house(), known=replace(house().known, **changes))


def section(ref: str = SECTION, **changes: Any) -> House:
    old = house().sections.by_ref.get(ref) or house().sections.by_ref[SECTION]
    changed = {**house().sections.by_ref, ref: replace(old, ref=ref, **changes)}
    return replace(house(), sections=Sections(changed))


def command(*argv: str, **changes: Any) -> Template:
    words = {"preconditions": "The evidence is saved.", "blast_radius": "b", "undo": "u"} | changes
    return Template(argv or ("x",), **words)


def rule(**changes: Any) -> House:
    [old] = [one for one in house().rules if one.id == "cpu-governor"]
    return replace(
        house(), rules=tuple(replace(one, **changes) if one is old else one for one in house().rules)
    )


def code(text: str) -> House:
    return replace(house(), code={**house().code, RULES_FILE: ast.parse(text)})


def row(name: str, **fields: str) -> House:
    return replace(house(), rows={**house().rows, name: fields})


BROKEN: Mapping[str, tuple[orphans.Check, Callable[[], House], str]] = {
    "a rule finds what no entry describes": (
        orphans.findings_without_entry, lambda: rule(finds=("cpu.governor", "cpu.odd")), "cpu.odd"),
    "a fleet rule finds what no entry describes": (
        orphans.findings_without_entry, lambda: lacking("findings", "peers.differs"), "peers.differs"),
    "an entry no rule finds": (orphans.entries_nobody_finds, lambda: entry("findings", "cpu.odd"), "cpu.odd"),
    "a verdict its rule does not declare": (
        orphans.verdicts_not_declared, lambda: rule(finds=()), "engine/rules/governor.py: cpu.governor"),
    "a warning without priority": (
        orphans.faults_without_priority, lambda: entry("findings", "cpu.governor", priority=None), "cpu.governor"),
    "a finding that does not say when it is wrong": (
        orphans.findings_without_prose, lambda: entry("findings", "cpu.governor", false_alarm=" "), "cpu.governor: false_alarm"),
    "a finding that points to no section": (
        orphans.sections_that_do_not_exist, lambda: entry("findings", "cpu.governor", section="cpu.md#gone"),
        "cpu.governor: cpu.md#gone"),
    "a symptom that points to no section": (
        orphans.sections_that_do_not_exist, lambda: entry("symptoms", "gpu-errors", sections=("gone.md",)),
        "symptom gpu-errors: gone.md"),
    "a way of not knowing that points to no section": (
        orphans.sections_that_do_not_exist, lambda: replace(house(), coverage={Status.DENIED: "gone"}), "denied: coverage.md#gone"),
    "a section nobody points to": (orphans.sections_nobody_points_to, lambda: section("cpu.md#new"), "cpu.md#new"),
    "a way of not knowing without a section": (
        orphans.statuses_without_section, lambda: replace(house(), coverage=without(house().coverage, Status.DENIED)), "denied"),
    "a section that does not say what it means": (orphans.sections_without_prose, lambda: section(body=""), SECTION),
    "a placeholder no rule fills": (
        orphans.placeholders_nobody_fills, lambda: section(templates=(command("x", "{pci:pci}"),)), f"{SECTION}: {{pci:pci}}"),
    "a placeholder in prose no rule fills": (
        orphans.placeholders_nobody_fills, lambda: section(body="{mount:mount}"), f"{SECTION}: {{mount:mount}}"),
    "a command without undo": (
        orphans.commands_without_a_field, lambda: section(templates=(command(undo=""),)), f"{SECTION}: undo of x"),
    "a replacement offered before the reboot": (
        orphans.commands_out_of_order,
        lambda: section(templates=(command(guard="replace"), command(guard="reboot"))), SECTION),
    "a reboot that does not speak of evidence": (
        orphans.replacements_without_reboot_or_evidence,
        lambda: section(templates=(command(guard="reboot", preconditions="None."),)), f"{SECTION}: x"),
    "a replacement that does not speak of infrastructure-as-code": (
        orphans.guarded_commands_without_iac, lambda: section(templates=(command("aws", guard="replace"),)), f"{SECTION}: aws"),
    "a threshold from nowhere": (
        orphans.thresholds_without_source, lambda: entry("thresholds", "disk.warn", source="somebody said so"), "disk.warn"),
    "a threshold without unit": (
        orphans.thresholds_without_source, lambda: entry("thresholds", "disk.warn", unit=""), "disk.warn"),
    "a number without a bound": (
        orphans.thresholds_without_bounds, lambda: entry("thresholds", "disk.warn", high=None), "disk.warn"),
    "a number beyond its own bound": (
        orphans.thresholds_without_bounds, lambda: entry("thresholds", "disk.warn", value=200), "disk.warn"),
    "a threshold no code uses": (orphans.thresholds_nobody_uses, lambda: entry("thresholds", "disk.odd"), "disk.odd"),
    "code that uses no threshold there is": (
        orphans.thresholds_that_do_not_exist, lambda: code("known.number('disk.odd')"), f"{RULES_FILE}: disk.odd"),
    "an Xid from nowhere": (orphans.xids_without_source, lambda: entry("xids", 79, source="a blog"), "Xid 79"),
    "an Xid with an unknown action": (
        orphans.xids_with_an_action_nobody_explains, lambda: entry("xids", 79, action="SHRUG"), "Xid 79: SHRUG"),
    "an Xid with an unknown action for one generation": (
        orphans.xids_with_an_action_nobody_explains, lambda: entry("xids", 79, by_generation={"hopper": "SHRUG"}),
        "Xid 79: SHRUG"),
    "an instance from nowhere": (
        orphans.instances_without_source, lambda: entry("instances", "p5.48xlarge", source="memory"), "p5.48xlarge"),
    "a figure of bandwidth from nowhere": (
        orphans.instances_without_source,
        lambda: entry("instances", "p5.48xlarge", busbw=(msgspec.structs.replace(BUSBW, source="memory"),)), "p5.48xlarge"),
    "a symptom that asks no rule there is": (
        orphans.symptoms_that_lead_nowhere, lambda: entry("symptoms", "gpu-errors", rules=("xids",)), "gpu-errors: rule xids"),
    "a symptom without sections": (
        orphans.symptoms_that_lead_nowhere, lambda: entry("symptoms", "gpu-errors", sections=()), "gpu-errors: no sections"),
    "a rule no symptom leads to": (orphans.rules_only_everything_asks, lambda: rule(id="lonely"), "lonely"),
    "a pattern that matches everything": (
        orphans.error_patterns_that_match_anything, lambda: entry("symptoms", "gpu-errors", errors=("x*",)), "gpu-errors: x*"),
    "an acronym nobody explains": (
        orphans.words_not_explained, lambda: section(body="The QXZ is off."), f"QXZ ({SECTION})"),
    "an acronym in a finding nobody explains": (
        orphans.words_not_explained, lambda: entry("findings", "cpu.governor", why="QXZs."), "QXZ (finding cpu.governor)"),
    "an acronym in the tree nobody explains": (
        orphans.words_not_explained, lambda: entry("symptoms", "gpu-errors", title="QXZ"), "QXZ (symptom gpu-errors)"),
    "an acronym in a verdict nobody explains": (
        orphans.words_not_explained, lambda: code("Verdict('cpu.governor', Level.WARN, f'QXZ is {x}')"),
        f"QXZ ({RULES_FILE})"),
    "a plain word that is not needed": (
        orphans.plain_words_nobody_needs, lambda: replace(house(), plain={**house().plain, "QXZ": "x"}), "QXZ"),
    "a term explained twice": (
        orphans.glossary_entries_unclear, lambda: entry("glossary", "Efa", means="Once more."), "efa"),
    "a term without a sentence": (orphans.glossary_entries_unclear, lambda: entry("glossary", "EFA", means="fast"), "EFA"),
    "a link that is not https": (
        orphans.links_that_are_not_https, lambda: section(body="[x](http://example.com)"), f"{SECTION}: http://example.com"),
    "a source that is not https": (
        orphans.links_that_are_not_https, lambda: entry("thresholds", "disk.warn", source="http://example.com"),
        "threshold disk.warn: http://example.com"),
    "a row that points to no section": (
        orphans.sections_that_do_not_exist, lambda: row("Z9", what="x", section="gpu.md#none"), "row Z9: gpu.md#none"),
    "a row with a section and a reason why not": (
        orphans.rows_with_a_stale_reason, lambda: row("Z9", what="x", section=SECTION, why_not="later"), "Z9"),
    "a row nobody answers": (orphans.rows_nobody_answers, lambda: row("Z9", what="x"), "Z9"),
    "a row whose reason is empty": (orphans.rows_nobody_answers, lambda: row("A1", what="x", why_not=" "), "A1"),
    "a row with a rule and a reason why not": (
        orphans.rows_with_a_stale_reason, lambda: row("A7", what="x", why_not="later"), "A7"),
    "a rule for a row there is not": (orphans.rows_that_do_not_exist, lambda: rule(spec=("Z9",)), "cpu-governor: Z9"),
    "a rule for no row": (orphans.rules_without_a_row, lambda: rule(spec=()), "cpu-governor"),
}  # fmt: skip


@pytest.mark.parametrize("what", BROKEN)
def test_it_is_caught_and_named(what: str) -> None:
    check, break_it, culprit = BROKEN[what]
    before = check(house())
    assert culprit in set(check(break_it())) - set(before)


def test_every_check_is_shown_to_fail() -> None:
    assert set(orphans.CHECKS) == {check for check, _, _ in BROKEN.values()}
