"""The closed list: nothing but what it names can be started, on a node or here, and nothing is written but our scratch."""

from __future__ import annotations

import ast
import dataclasses
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import pytest

from straggler import engine
from straggler.engine import collectors, gate, script
from straggler.engine.collectors import COLLECTORS
from straggler.engine.collectors.base import AnyCollector
from straggler.engine.errors import FatalError
from straggler.engine.gate import OPEN, allowed
from straggler.engine.script import SSM_LIMIT, Request, compose
from tests.nodeshell import collector, rendered
from tests.shellscan import BUILTINS, scan

RUNNER = files("straggler.engine").joinpath("node_script.sh").read_text()
HELPERS = frozenset({"have", "missing", "denied", "absent", "priv", "beside", "besides"})
EVERY = pytest.mark.parametrize("one", COLLECTORS, ids=lambda one: one.id)
ROOT = Path(engine.__file__).parent.parent


def refused(snippet: str, commands: tuple[str, ...]) -> list[str]:
    """Why this snippet may not run on a node; empty: it may."""
    shell = scan(snippet)
    why = [*shell.trouble]
    for argv in shell.commands:
        name = argv[0]
        bare = started(argv)
        if OPEN in name or not name:
            why.append(f"the name of the program is not fixed: {argv}")
        elif name in HELPERS - gate.WRAPPERS.keys() or name in BUILTINS or name in shell.functions - HELPERS:
            continue
        elif not allowed(argv):
            why.append(f"may not be started so: {argv}")
        elif bare not in commands:
            why.append(f"{bare} is not in `commands`")
    why += [
        f"writes to {target}"
        for target in shell.writes
        if not re.fullmatch(r"&>?/dev/null|>/dev/null|>&[12]|>&-", target)
    ]
    if taken := shell.functions & (HELPERS | {"s_main"} | gate.NODE_COMMANDS.keys()):
        why.append(f"defines what is not its own: {sorted(taken)}")
    return why


def started(argv: tuple[str, ...]) -> str:
    """The program behind `priv`, `timeout 5`, ..."""
    return (*gate.unwrapped(argv), "")[0]


@EVERY
def test_a_registered_snippet_starts_only_what_it_names_and_the_list_allows(one: AnyCollector) -> None:
    assert refused(one.snippet, one.commands) == []


@EVERY
def test_a_registered_snippet_names_nothing_it_does_not_start(one: AnyCollector) -> None:
    assert (
        set(one.commands)
        == {started(argv) for argv in scan(one.snippet).commands} & gate.NODE_COMMANDS.keys()
    )


PLANTED = [
    "rm -rf /tmp/x",
    "echo x >/etc/x",
    "echo x >>~/.profile",
    "echo x >$d/file",
    "cat <>/dev/sda",
    "nvidia-smi -r",
    "nvidia-smi --gpu-reset -i 0",
    "nvidia-smi -pm 1",
    "nvidia-smi $opt",
    "priv nvidia-smi -r",
    "dmesg -C",
    "dmesg -c",
    "dmesg --clear",
    "dmesg -n 1",
    "dmesg -Tc",
    "priv dmesg -D",
    "journalctl --vacuum-time=1s",
    "journalctl --rotate",
    "systemctl restart slurmd",
    "systemctl $verb x",
    "eval ls",
    'eval "$x"',
    "sh -c 'rm x'",
    "`rm x`",
    "echo `rm x`",
    "echo $(rm x)",
    "x=$(rm x)",
    "if rm x; then :; fi",
    "case $(rm x) in *) ;; esac",
    "echo ${x:-$(rm x)}",
    "cat <<E\n$(rm x)\nE",
    "cat < <(rm x)",
    "$cmd x",
    '"$cmd" x',
    "exec rm x",
    "exec >/etc/x",
    "command rm x",
    "timeout 5 rm x",
    "nice -n 5 sudo reboot",
    "priv rm x",
    "priv $x",
    "sudo -n ls",
    ". /etc/profile",
    "source /etc/profile",
    "trap 'rm x' EXIT",
    "curl -s http://example.com/",
    "curl -s -m 2 -o /etc/x http://169.254.169.254/latest/meta-data/x",
    "curl -s -m 2 -X DELETE http://169.254.169.254/latest/api/token",
    "sed -i s/a/b/ x",
    "sed 'w /etc/x' y",
    "sed -n 's/a/b/e' y",
    "sort -o x y",
    "uniq a b",
    "awk 'BEGIN { system(\"rm x\") }'",
    "awk '{ print > \"/etc/x\" }'",
    'awk "$program"',
    "find / -delete",
    "tee /etc/x",
    "dd of=/dev/sda",
    "date -s 12:00",
    "hostname mine",
    "mount /dev/sda /mnt",
    "ip link set eth0 down",
    "ethtool -s eth0 speed 10",
    "sysctl -w kernel.x=1",
    "sysctl kernel.x=1",
    "ldconfig",
    "rpm -e x",
    "dpkg-query() { rm x; }",
    "have() { :; }",
    "kill -9 1",
    "cat() { rm x; }; cat",
    "xargs rm",
    "env rm x",
    "echo x | tee y",
    "LD_PRELOAD=/tmp/x ls",
    "reboot &",
    "(reboot)",
    "! reboot",
    "while reboot; do :; done",
    "for x in $(reboot); do :; done",
    "echo x | (read -r y; reboot)",
    "if [ x = y ]; then",
]


@pytest.mark.parametrize("snippet", PLANTED)
def test_a_planted_snippet_is_refused(snippet: str) -> None:
    every = (*gate.NODE_COMMANDS, *snippet.split())
    assert refused(snippet, tuple(every)) != []


@pytest.mark.parametrize(
    "snippet",
    ["ls /proc", "priv dmesg -T", "timeout 5 nvidia-smi -L", 'x=$(cat /proc/uptime) && echo "$x" >&2'],
)
def test_what_only_reads_is_allowed(snippet: str) -> None:
    assert refused(snippet, tuple(gate.NODE_COMMANDS)) == []
    assert any("not in `commands`" in why for why in refused(snippet, ()))


def test_the_runner_starts_only_what_it_is_known_to_start() -> None:
    shell = scan(RUNNER)
    assert [one for one in shell.trouble if not one.startswith("sets S_JOB")] == []
    names = set()
    for argv in shell.commands:
        if argv[0] in shell.functions | BUILTINS | {"exec", "export", "trap", "eval"} or argv[:2] == (
            "command",
            "-v",
        ):
            continue
        if argv in (("s_" + OPEN,), (OPEN,)):
            continue
        names.add(argv[0])
        assert allowed(argv, runner=True), argv
    assert names <= set(script._RUNNER_STARTS)
    assert {argv[1:] for argv in shell.commands if argv[0] == "exec"} <= {(), ("cat",)}


def test_the_runner_runs_what_it_is_handed_only_in_its_helpers() -> None:
    handed = [line for line in RUNNER.splitlines() if '"$@"' in line]
    rest = re.sub(r"(?ms)^priv\(\) .*?\}$|^beside\(\) \{.*?^\}$", "", RUNNER)
    assert handed
    assert '"$@"' not in rest
    assert len(re.findall(r'"s_\$', rest)) == 2


def test_the_runner_evaluates_only_names_it_numbered_itself() -> None:
    """Each `eval` sets or reads one of its own variables, numbered; a value from outside is never part of the text."""
    number = r"\$(s_i|s_n|s_k|1)"
    value = rf"(\$s_t|\$!|-|\\\$1|\\\$(S_MAX|s_killed|s_label|s_beside)_{number})?"
    form = re.compile(
        rf'"(s_(killed|label|beside)_{number}|s_(max|killed|label|p))={value}( s_killed={value})?"'
    )
    evals = re.findall(r'eval ("[^"]*")', RUNNER)
    assert len(evals) == RUNNER.count("eval ") > 0
    assert [one for one in evals if not form.fullmatch(one)] == []


def test_the_runner_writes_only_into_its_scratch() -> None:
    inside = re.compile(r">(\x00/(probe|\x00\.[a-z]|\x00\x00)|/dev/null)|>&[0-9-]")
    assert [target for target in scan(RUNNER).writes if not inside.fullmatch(target)] == []
    assert RUNNER.count("s_d=") == 4
    assert "s_d=$s_base/straggler.$S_MARK" in RUNNER


def test_what_is_not_registered_is_not_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    known = COLLECTORS[0]
    for stranger in (
        collector("ls"),
        dataclasses.replace(known, snippet="reboot"),
        dataclasses.replace(known),
    ):
        with pytest.raises(FatalError, match="closed list"):
            compose(Request((known, stranger)))
    greedy = dataclasses.replace(known, commands=("reboot",))
    monkeypatch.setitem(collectors.BY_ID, greedy.id, greedy)
    with pytest.raises(FatalError, match="would start reboot"):
        compose(Request((greedy,)))


def test_only_compose_may_render_a_script() -> None:
    users = [
        path.name
        for path in sources()
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Name | ast.Attribute)
        and (getattr(node, "id", "") or getattr(node, "attr", "")) == "_render"
    ]
    assert users == ["script.py"]


def test_all_collectors_together_fit_one_parameter() -> None:
    assert len(compose(Request(COLLECTORS)).body) <= SSM_LIMIT


@pytest.mark.skipif(sys.platform != "linux", reason="shellcheck is installed beside the interpreter")
def test_shellcheck_has_nothing_to_say() -> None:
    """2086: lists are split on purpose. 2154, 2034: set by the head or read by eval. 2317, 2329: called as "s_$1".
    2013: the words are file names of /proc.

    2015: `a && b || c` where b cannot fail. 3045: read -r is POSIX; 2046: pids are split. 1007: `x= y=` are empty on purpose.
    """
    tool = shutil.which("shellcheck", path=f"{Path(sys.executable).parent}:/usr/bin")
    assert tool is not None
    quiet = "--exclude=2086,2154,2034,2317,2329,2013,2015,2046,1007"
    said = subprocess.run(
        [tool, "-s", "sh", quiet, "-"], input=rendered(*COLLECTORS), capture_output=True, check=False
    )
    assert said.stdout.decode() == ""


# This side.

MAY_START = {
    "transports/local.py": {"asyncio.create_subprocess_exec"},
    "transports/ssh_proxy.py": {"asyncio.create_subprocess_exec"},
}
"""Where a program is started here: the shell of --local, and the ProxyCommand the operator's own ssh config names."""

STARTERS = re.compile(
    r"(os\.(system|popen|exec\w*|spawn\w*|posix_spawn\w*|fork\w*)|subprocess(\.\w+)?|pty\.\w+|pickle(\.\w+)?|marshal(\.\w+)?"
    r"|shelve(\.\w+)?|runpy(\.\w+)?|multiprocessing(\.\w+)?|eval|exec|compile|__import__|asyncio\.create_subprocess_\w+"
    r"|\w+\.subprocess_(exec|shell)|ctypes(\.\w+)?)"
)


def sources() -> Iterator[Path]:
    for room in ("engine", "tui"):
        yield from sorted((ROOT / room).rglob("*.py"))


def calls(tree: ast.AST) -> Iterator[str]:
    """Names that are called, and modules that are imported."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            yield ast.unparse(node.func)
            yield from ("shell=True" for word in node.keywords if word.arg == "shell")
        elif isinstance(node, ast.Import):
            yield from (one.name for one in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""


@pytest.mark.parametrize("path", list(sources()), ids=lambda path: str(path.relative_to(ROOT)))
def test_nothing_is_started_here_outside_the_named_places(path: Path) -> None:
    found = {
        one for one in calls(ast.parse(path.read_text())) if STARTERS.fullmatch(one) or one == "shell=True"
    }
    assert found <= MAY_START.get(
        str(path.relative_to(ROOT / "engine")) if "engine" in path.parts else "", set()
    )


@pytest.mark.parametrize(
    ("file", "arguments"),
    [("local.py", ["LOCAL_SHELL"]), ("ssh_proxy.py", ["LOCAL_SHELL", "'-c'", "f'exec {command}'"])],
)
def test_the_one_local_program_is_the_shell(file: str, arguments: list[str]) -> None:
    tree = ast.parse((ROOT / "engine/transports" / file).read_text())
    starts = [
        one
        for one in ast.walk(tree)
        if isinstance(one, ast.Call) and ast.unparse(one.func).endswith("create_subprocess_exec")
    ]
    assert [[ast.unparse(argument) for argument in one.args] for one in starts] == [arguments]
    assert gate.LOCAL_SHELL == "/bin/sh"
