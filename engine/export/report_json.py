"""The report as JSON, schema 1 of the command-line contract. Scripts depend on every name here."""

from __future__ import annotations

import json
from typing import Any

from straggler.engine.diagnosis import Diagnosis
from straggler.engine.judge import Report
from straggler.engine.model import Finding, Node
from straggler.engine.safetext import safe
from straggler.engine.window import utc


def render(diagnosis: Diagnosis, report: Report) -> str:
    """One JSON document and a newline. Cluster text is escaped by JSON and neutralised besides."""
    return json.dumps(document(diagnosis, report), indent=1, ensure_ascii=True) + "\n"


def document(diagnosis: Diagnosis, report: Report) -> dict[str, Any]:
    target = diagnosis.target
    return {
        "schema": 1,
        "target": {"kind": target.kind, "title": safe(target.title), **target.spec},
        "symptom": diagnosis.plan.symptom,
        "started": utc(target.now or diagnosis.started),
        "ended": utc(target.now or diagnosis.ended or diagnosis.started),
        "window": {"since": utc(diagnosis.window.since), "until": utc(diagnosis.window.until)},
        "nodes": [_node(node, report) for node in diagnosis.nodes],
        "coverage": {
            "nodes_total": report.nodes_total,
            "nodes_read": report.nodes_read,
            "percent": round(report.coverage, 1),
            "waiting": list(report.waiting),
            "unknown": [
                {
                    "collector": one.collector,
                    "subjects": list(one.subjects),
                    "status": one.status.value,
                    "reason": safe(one.reason),
                }
                for one in report.uncovered
            ],
        },
        "theirs": list(diagnosis.known.theirs),
        "findings": [finding(one) for one in report.findings],
    }


def _node(node: Node, report: Report) -> dict[str, Any]:
    return {
        "id": safe(node.id),
        "names": [safe(name) for name in node.names],
        "group": node.group,
        "instance_type": node.instance_type,
        "placement": {
            "az": node.placement.az,
            "layers": list(node.placement.layers),
            "block": node.placement.block,
            "ultraserver": node.placement.ultraserver,
        },
        "state": report.levels[node.id].value,
    }


def finding(one: Finding) -> dict[str, Any]:
    return {
        "id": one.id,
        "also": list(one.also),
        "level": one.level.value,
        "priority": one.priority.value if one.priority else None,
        "title": safe(one.title),
        "subjects": list(one.subjects),
        "details": [{"nodes": nodes, "text": safe(text)} for nodes, text in one.details],
        "evidence": [{"source": safe(line.source), "text": safe(line.text)} for line in one.evidence],
        "confidence": round(one.confidence, 2),
        "why": one.why,
        "false_alarm": one.false_alarm,
        "next_step": one.next_step,
        "reference": one.reference,
        "theirs": one.theirs,
        "route": one.route,
        "not_offered": [safe(text) for text in one.left_out],
        "suggested_commands": [
            {
                "command": command.command,
                "preconditions": command.preconditions,
                "blast_radius": command.blast_radius,
                "undo": command.undo,
                "note": command.note,
            }
            for command in one.commands
        ],
    }
