"""What may not happen to the references. Each function names the culprits; an empty list is a house in order."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator

from straggler.engine import commands
from straggler.engine.knowledge import FindingKind, Xid
from straggler.engine.model import Status
from straggler.engine.sections import Section
from tests.knowledge.house import House

Check = Callable[[House], list[str]]

_ALWAYS = {"node", "nodes", "instance_ids", *commands.FILL_IN}
"""Placeholders every finding fills from its nodes, or the operator by hand."""

_ACRONYM = re.compile(r"(?<![\w-])[A-Z][A-Z0-9]+(?=s?(?![\w]))")
_CODE = re.compile(r"```.*?```|`[^`]*`", re.DOTALL)
_LINK = re.compile(r"\]\(([^)]*)\)|((?:http|ftp|git|ssh)s?://[^\s)>\"']*)")
_ORDER = {"": 0, "reboot": 1, "replace": 2}


# Findings and rules


def findings_without_entry(house: House) -> list[str]:
    return sorted(house.finds - house.known.findings.keys())


def entries_nobody_finds(house: House) -> list[str]:
    return sorted(house.known.findings.keys() - house.finds)


def verdicts_not_declared(house: House) -> list[str]:
    """A finding id in the code of a rule that its `finds` does not name."""
    by_file = {_file(rule.judge.__module__): rule for rule in house.rules}
    return [
        f"{file}: {name}"
        for file, rule in by_file.items()
        for call in _verdicts(house.code[file])
        if (name := _text(call.args[0])) and name not in rule.finds
    ]


def faults_without_priority(house: House) -> list[str]:
    """Whoever warns must say how urgent it is: the verdict itself, or the finding's entry."""
    return sorted(
        {
            name
            for file, tree in house.code.items()
            if file.startswith("engine/rules/")
            for call in _verdicts(tree)
            if (name := _text(call.args[0]))
            and len(call.args) > 1
            and ast.unparse(call.args[1]) in ("Level.WARN", "Level.FAIL")
            and not any(one.arg == "priority" for one in call.keywords)
            and name in house.known.findings
            and house.known.findings[name].priority is None
        }
    )


def findings_without_prose(house: House) -> list[str]:
    return [
        f"{name}: {field}"
        for name, one in house.known.findings.items()
        for field in ("section", "why", "false_alarm", "next_step")
        if not str(getattr(one, field)).strip()
    ]


# Sections


def sections_that_do_not_exist(house: House) -> list[str]:
    wanted = {name: one.section for name, one in house.known.findings.items()}
    wanted |= {status.value: f"coverage.md#{anchor}" for status, anchor in house.coverage.items()}
    wanted |= {f"row {name}": one["section"] for name, one in house.rows.items() if "section" in one}
    missing = [f"{name}: {ref}" for name, ref in wanted.items() if not house.sections.has(ref)]
    have = {*house.sections.by_ref, *(ref.split("#")[0] for ref in house.sections.by_ref)}
    return missing + [
        f"symptom {name}: {ref}"
        for name, one in house.known.symptoms.items()
        for ref in one.sections
        if ref not in have
    ]


def sections_nobody_points_to(house: House) -> list[str]:
    used = {one.section for one in house.known.findings.values()}
    used |= {f"coverage.md#{anchor}" for anchor in house.coverage.values()}
    used |= {ref for one in house.known.symptoms.values() for ref in one.sections}
    return sorted(house.sections.by_ref.keys() - used)


def statuses_without_section(house: House) -> list[str]:
    return [one.value for one in Status if one is not Status.OK and one not in house.coverage]


def sections_without_prose(house: House) -> list[str]:
    return [
        ref
        for ref, one in house.sections.by_ref.items()
        if "**What it means.**" not in one.body and not _means(one)
    ]


def _means(section: Section) -> bool:
    return section.body.startswith("**Means**")


# Suggested commands


def placeholders_nobody_fills(house: House) -> list[str]:
    """A placeholder that no rule pointing to the section supplies: the command would never be offered."""
    supplied: dict[str, set[str]] = {}
    for rule in house.rules:
        keys = _dict_keys(house.code[_file(rule.judge.__module__)])
        for name in rule.finds:
            if name in house.known.findings:
                supplied.setdefault(house.known.findings[name].section, set()).update(keys)
    return [
        f"{ref}: {{{name}:{kind}}}"
        for ref, section in house.sections.by_ref.items()
        for name, kind in _placeholders(section)
        if name not in _ALWAYS | supplied.get(ref, set())
    ]


def commands_without_a_field(house: House) -> list[str]:
    return [
        f"{ref}: {field} of {' '.join(one.argv[:3])}"
        for ref, section in house.sections.by_ref.items()
        for one in section.templates
        for field in ("argv", "preconditions", "blast_radius", "undo")
        if not getattr(one, field)
    ]


def commands_out_of_order(house: House) -> list[str]:
    """Investigate, then reboot, then replace: never the harder remedy first."""
    return [
        ref
        for ref, section in house.sections.by_ref.items()
        if [_ORDER[one.guard] for one in section.templates]
        != sorted(_ORDER[one.guard] for one in section.templates)
    ]


def replacements_without_reboot_or_evidence(house: House) -> list[str]:
    """Before a node is rebooted or replaced its evidence is saved, and the block says so."""
    return [
        f"{ref}: {' '.join(one.argv[:3])}"
        for ref, section in house.sections.by_ref.items()
        for one in section.templates
        if one.guard and "evidence" not in f"{one.preconditions} {section.body}"
    ]


def guarded_commands_without_iac(house: House) -> list[str]:
    """What changes a cluster through AWS says what infrastructure-as-code makes of it."""
    return [
        f"{ref}: {' '.join(one.argv[:3])}"
        for ref, section in house.sections.by_ref.items()
        for one in section.templates
        if one.guard and one.argv[0] == "aws" and not one.iac
    ]


# Limits, Xids, instances


def thresholds_without_source(house: House) -> list[str]:
    return [
        name
        for name, one in house.known.thresholds.items()
        if not one.unit.strip() or not ("https://" in one.source or one.source.startswith("own decision"))
    ]


def thresholds_without_bounds(house: House) -> list[str]:
    """A number a user may change has a sanity bound, and ours keeps to it."""
    return [
        name
        for name, one in house.known.thresholds.items()
        if not isinstance(one.value, str)
        and (one.low is None or one.high is None or not one.low <= one.value <= one.high)
    ]


def thresholds_nobody_uses(house: House) -> list[str]:
    words = {word for tree in house.code.values() for word in _strings(tree)}
    heads = {head for tree in house.code.values() for head in _heads(tree)}
    return [
        name for name in house.known.thresholds if name not in words and not any(map(name.startswith, heads))
    ]


def thresholds_that_do_not_exist(house: House) -> list[str]:
    return [
        f"{file}: {name}"
        for file, tree in house.code.items()
        for call in ast.walk(tree)
        if isinstance(call, ast.Call)
        and isinstance(call.func, ast.Attribute)
        and call.func.attr in ("number", "word")
        and call.args
        and (name := _text(call.args[0]))
        and name not in house.known.thresholds
    ]


def xids_without_source(house: House) -> list[str]:
    return [
        f"Xid {number}"
        for number, one in house.known.xids.items()
        if not _https(one.source) or not one.meaning
    ]


def xids_with_an_action_nobody_explains(house: House) -> list[str]:
    return [
        f"Xid {number}: {action}"
        for number, one in house.known.xids.items()
        for action in _actions(one)
        if f"xid:{action}" not in house.known.findings
    ]


def instances_without_source(house: House) -> list[str]:
    return [
        name
        for name, one in house.known.instances.items()
        if not all(map(_https, (one.source, *(row.source for row in one.busbw))))
    ]


# The tree


def symptoms_that_lead_nowhere(house: House) -> list[str]:
    rules = {one.id for one in house.rules}
    wrong = [
        f"{name}: rule {one}"
        for name, it in house.known.symptoms.items()
        for one in it.rules
        if one not in rules
    ]
    for name, one in house.known.symptoms.items():
        wrong += [
            f"{name}: no {field}"
            for field in ("title", "hint", "asked", "steps", "sections")
            if not getattr(one, field)
        ]
    return wrong


def rules_only_everything_asks(house: House) -> list[str]:
    """A rule that no symptom of its own leads to is found by nobody who knows what hurts."""
    asked = {rule for one in house.known.symptoms.values() for rule in one.rules}
    return [one.id for one in house.rules if one.id not in asked]


def error_patterns_that_match_anything(house: House) -> list[str]:
    wrong = []
    for name, one in house.known.symptoms.items():
        for pattern in one.errors:
            try:
                if re.search(pattern, "", re.IGNORECASE) or re.search(pattern, "all is well", re.IGNORECASE):
                    wrong.append(f"{name}: {pattern}")
            except re.error as error:
                wrong.append(f"{name}: {pattern}: {error}")
    return wrong


# Words and links


def words_not_explained(house: House) -> list[str]:
    """Acronyms of what an operator reads that are neither in the glossary nor plain words."""
    have = {name for key, one in house.known.glossary.items() for name in (key, *one.also)}
    return sorted(
        {
            f"{word} ({where})"
            for where, text in _prose(house)
            for word in _ACRONYM.findall(_CODE.sub(" ", text))
            if word not in have and word not in house.plain
        }
    )


def plain_words_nobody_needs(house: House) -> list[str]:
    used = {word for _, text in _prose(house) for word in _ACRONYM.findall(_CODE.sub(" ", text))}
    return sorted(house.plain.keys() - used)


def glossary_entries_unclear(house: House) -> list[str]:
    """One sentence each; no two entries for one term."""
    names = [name.casefold() for key, one in house.known.glossary.items() for name in (key, *one.also)]
    twice = {name for name in names if names.count(name) > 1}
    vague = [key for key, one in house.known.glossary.items() if not re.fullmatch(r"[A-Z\"].*\.", one.means)]
    return sorted(twice) + vague


def links_that_are_not_https(house: House) -> list[str]:
    texts = list(_prose(house))
    texts += [(f"threshold {name}", one.source) for name, one in house.known.thresholds.items()]
    texts += [
        (f"instance {name}", source)
        for name, one in house.known.instances.items()
        for source in (one.source, *(row.source for row in one.busbw))
    ]
    texts += [(f"Xid {name}", one.source) for name, one in house.known.xids.items()]
    return [
        f"{where}: {link}"
        for where, text in texts
        for pair in _LINK.findall(text)
        if not (link := pair[0] or pair[1]).startswith("https://")
    ]


# The specification


def rows_nobody_answers(house: House) -> list[str]:
    """A row needs a rule, a section where it is knowledge only, or a written reason why not."""
    done = {row for rule in house.rules for row in rule.spec}
    return [
        row
        for row, one in house.rows.items()
        if row not in done and not one.get("section") and not one.get("why_not", "").strip()
    ]


def rows_with_a_stale_reason(house: House) -> list[str]:
    done = {row for rule in house.rules for row in rule.spec}
    return [row for row, one in house.rows.items() if (row in done or "section" in one) and "why_not" in one]


def rows_that_do_not_exist(house: House) -> list[str]:
    return [f"{rule.id}: {row}" for rule in house.rules for row in rule.spec if row not in house.rows]


def rules_without_a_row(house: House) -> list[str]:
    return [rule.id for rule in house.rules if not rule.spec]


CHECKS: tuple[Check, ...] = (
    findings_without_entry,
    entries_nobody_finds,
    verdicts_not_declared,
    faults_without_priority,
    findings_without_prose,
    sections_that_do_not_exist,
    sections_nobody_points_to,
    statuses_without_section,
    sections_without_prose,
    placeholders_nobody_fills,
    commands_without_a_field,
    commands_out_of_order,
    replacements_without_reboot_or_evidence,
    guarded_commands_without_iac,
    thresholds_without_source,
    thresholds_without_bounds,
    thresholds_nobody_uses,
    thresholds_that_do_not_exist,
    xids_without_source,
    xids_with_an_action_nobody_explains,
    instances_without_source,
    symptoms_that_lead_nowhere,
    rules_only_everything_asks,
    error_patterns_that_match_anything,
    words_not_explained,
    plain_words_nobody_needs,
    glossary_entries_unclear,
    links_that_are_not_https,
    rows_nobody_answers,
    rows_with_a_stale_reason,
    rows_that_do_not_exist,
    rules_without_a_row,
)


def _file(module: str) -> str:
    return module.removeprefix("straggler.").replace(".", "/") + ".py"


def _verdicts(tree: ast.Module) -> Iterator[ast.Call]:
    for one in ast.walk(tree):
        if (
            isinstance(one, ast.Call)
            and isinstance(one.func, ast.Name)
            and one.func.id == "Verdict"
            and one.args
        ):
            yield one


def _shown(verdict: ast.Call) -> Iterator[str]:
    """Title and detail as they stand in the code; what a rule puts together has its words in pieces."""
    for part in verdict.args[2:]:
        yield from (
            one.value
            for one in ast.walk(part)
            if isinstance(one, ast.Constant) and isinstance(one.value, str)
        )


def _text(node: ast.expr) -> str | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def _strings(tree: ast.Module) -> Iterator[str]:
    for one in ast.walk(tree):
        if isinstance(one, ast.Constant) and isinstance(one.value, str):
            yield one.value


def _heads(tree: ast.Module) -> Iterator[str]:
    """Beginnings of names that are put together: `xid.recovery.` of f"xid.recovery.{word}"."""
    for one in ast.walk(tree):
        if (
            isinstance(one, ast.JoinedStr)
            and (head := _text(one.values[0]))
            and re.fullmatch(r"[a-z-]+\.[a-z-]+\.", head)
        ):
            yield head


def _dict_keys(tree: ast.Module) -> set[str]:
    dicts = (one for one in ast.walk(tree) if isinstance(one, ast.Dict))
    return {word for one in dicts for key in one.keys if key is not None and (word := _text(key))}


def _placeholders(section: Section) -> set[tuple[str, str]]:
    found = {pair for one in section.templates for pair in one.placeholders}
    return found | set(commands.PLACEHOLDER.findall(section.body))


def _actions(xid: Xid) -> set[str]:
    return {xid.action, *xid.by_generation.values()}


def _https(source: str) -> bool:
    return "https://" in source


def _prose(house: House) -> Iterator[tuple[str, str]]:
    for ref, section in house.sections.by_ref.items():
        words = [
            " ".join((one.preconditions, one.blast_radius, one.undo, one.iac, one.note))
            for one in section.templates
        ]
        yield ref, "\n".join((section.title, section.body, *words))
    for name, kind in house.known.findings.items():
        yield f"finding {name}", _kind_prose(kind)
    for name, one in house.known.symptoms.items():
        yield f"symptom {name}", "\n".join((one.title, one.hint, one.asked, *one.steps))
    for number, xid in house.known.xids.items():
        yield f"Xid {number}", f"{xid.meaning}\n{xid.note}"
    for key, term in house.known.glossary.items():
        yield f"glossary {key}", term.means
    for file, tree in house.code.items():
        if file.startswith("engine/rules/"):
            yield file, "\n".join(word for call in _verdicts(tree) for word in _shown(call))


def _kind_prose(kind: FindingKind) -> str:
    return "\n".join((kind.why, kind.false_alarm, kind.next_step))
