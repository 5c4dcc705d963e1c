"""The hosts target before any host is reached: ssh config looked at, programs listed, keys asked for."""

from __future__ import annotations

from pathlib import Path

import asyncssh
import pytest

from straggler.engine.errors import UsageError
from straggler.engine.targets.hosts import config_hosts, hosts_target
from straggler.engine.transports.ssh import keep_limit


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of our own: no key, no config, no agent."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    (tmp_path / ".ssh").mkdir()
    return tmp_path


def config(home: Path, text: str) -> Path:
    path = home / ".ssh" / "config"
    path.write_text(text)
    return path


def write_key(path: Path, passphrase: str | None = None) -> None:
    key = asyncssh.generate_private_key("ssh-ed25519")
    path.write_bytes(key.export_private_key(passphrase=passphrase))


def test_a_node_is_called_what_the_operator_typed(home: Path) -> None:
    target = hosts_target("me@n[1-2]:2222,gw")
    assert [node.id for node in target.nodes] == ["n1", "n2", "gw"]
    assert (target.kind, target.title) == ("hosts", "3 hosts by SSH: gw,n[1-2]")
    assert target.spec == {"hosts": "me@n[1-2]:2222,gw"}


def test_the_chooser_gets_the_hosts_that_are_named_one_by_one(home: Path) -> None:
    (home / ".ssh" / "more").write_text("Host included\n")
    config(home, "Host login gpu-01\nHost *.internal !bad worker-?\n  User me\nInclude more\nHost login\n")
    assert config_hosts()[:3] == ["login", "gpu-01", "included"]


def test_without_a_config_there_is_nothing_to_choose(home: Path) -> None:
    assert config_hosts(home / "none") == []


def test_programs_that_would_start_are_listed_for_the_hosts_asked_for_only(home: Path) -> None:
    ran = home / "ran"
    config(
        home,
        f"Host a\n ProxyCommand touch {ran}-a %h\nHost b\n ProxyCommand=touch {ran}-b\nHost c\n ProxyCommand none\n"
        f'Match host d exec "touch {ran}-d"\n User x\n',
    )
    starts = hosts_target("a,c").starts
    assert [one.split(" (")[0] for one in starts] == [
        f"ProxyCommand touch {ran}-a %h",
        f"Match exec touch {ran}-d",
    ]
    assert not list(home.glob("ran*"))


def test_a_proxy_command_of_a_jump_host_is_listed_too(home: Path) -> None:
    config(home, "Host inner\n ProxyJump me@gate:2222\nHost gate\n ProxyCommand relay %h\n")
    assert [one.split(" (")[0] for one in hosts_target("inner").starts] == ["ProxyCommand relay %h"]


def test_a_negated_pattern_keeps_a_host_out(home: Path) -> None:
    config(home, "Host n* !n2\n ProxyCommand relay\n")
    assert hosts_target("n1").starts != ()
    assert hosts_target("n2").starts == ()


def test_a_config_that_includes_itself_is_read_once_round(home: Path) -> None:
    path = config(home, "Host a\nInclude config\n")
    assert config_hosts(path) == ["a"]


def test_an_unreadable_config_is_one_line(home: Path) -> None:
    (home / ".ssh" / "config").mkdir()
    with pytest.raises(UsageError, match="cannot read the ssh config") as caught:
        hosts_target("a")
    assert "\n" not in str(caught.value)


def test_a_config_that_is_no_text_is_one_line(home: Path) -> None:
    (home / ".ssh" / "config").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UsageError, match="is not a text file"):
        hosts_target("a")


def asked_for(text: str) -> list[str]:
    asked: list[str] = []

    def ask(what: str) -> str | None:
        asked.append(what)
        return "right" if "again" in what else "wrong"

    hosts_target(text, ask=ask)
    return asked


def test_an_encrypted_key_that_the_config_names_is_asked_for_until_it_opens(home: Path) -> None:
    write_key(home / "named", "right")
    config(home, "Host *\n IdentityFile ~/named\n")
    assert asked_for("a,b") == [f"the key {home}/named", f"the key {home}/named (that was not it; again)"]


def test_a_key_named_for_another_host_is_not_asked_for(home: Path) -> None:
    write_key(home / "named", "right")
    config(home, "Host other\n IdentityFile ~/named\n")
    assert asked_for("a") == []


def test_an_encrypted_default_key_is_asked_for_only_where_no_other_key_is(home: Path) -> None:
    write_key(home / ".ssh" / "id_ed25519", "right")
    assert len(asked_for("a")) == 2
    write_key(home / ".ssh" / "id_rsa")
    assert asked_for("a") == []


def test_nobody_is_asked_where_there_is_nobody_to_ask(home: Path) -> None:
    write_key(home / ".ssh" / "id_ed25519", "right")
    assert hosts_target("a", ask=None).nodes[0].id == "a"


def test_kept_connections_leave_files_to_the_rest_of_the_program() -> None:
    assert keep_limit(1024) == 298
    assert keep_limit(64) == 1
