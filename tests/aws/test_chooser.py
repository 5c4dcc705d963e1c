"""HyperPod clusters on the screen: to pick from, opened, and what is said of credentials."""

from __future__ import annotations

from pathlib import Path

import pytest

from straggler.engine.targets.hyperpod import hyperpod_target
from straggler.tui.app import StragglerApp
from straggler.tui.beside import beside
from straggler.tui.screens.choices import Choices
from straggler.tui.screens.chooser import ChooserScreen
from straggler.tui.screens.intake import IntakeScreen
from straggler.tui.screens.main import MainScreen
from straggler.tui.screens.offers import clusters
from straggler.tui.start import Start
from tests.aws import hyperpod
from tests.aws.fake import FakeAws
from tests.tui.driving import painted, until


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home without ssh config, sessions or host files."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_clusters_of_the_region_are_offered_with_their_status(aws: FakeAws) -> None:
    there = [hyperpod.cluster(f"c{number}", region="eu-west-1") for number in range(12)]
    hyperpod.serve(
        aws, [hyperpod.cluster("train"), hyperpod.cluster("old", ClusterStatus="Deleting"), *there]
    )
    assert [(one.title, one.hint) for one in clusters().found] == [
        ("train", "InService · us-east-1"),
        ("old", "Deleting · us-east-1"),
    ]
    assert len(clusters("eu-west-1").found) == 12


def test_what_keeps_them_from_being_listed_is_one_line(aws: FakeAws, monkeypatch: pytest.MonkeyPatch) -> None:
    hyperpod.serve(aws, [])
    assert clusters().note == "none in us-east-1 (--region R looks elsewhere)"
    aws.deny("sagemaker", "ListClusters")
    assert clusters().note.startswith("sagemaker:ListClusters is not allowed: straggler iam-policy")
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    assert clusters().note.startswith("no AWS credentials found")
    monkeypatch.delenv("AWS_DEFAULT_REGION")
    assert clusters().note.startswith("no AWS region")


def test_nobody_is_asked_for_a_code_below_the_screen(
    aws: FakeAws, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "config").write_text(
        "[profile mfa]\nrole_arn = arn:aws:iam::123456789012:role/ops\nsource_profile = base\nmfa_serial = x\n"
        "[profile base]\naws_access_key_id = AKIABASE\naws_secret_access_key = s\n"
    )
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setattr("getpass.getpass", lambda *_: pytest.fail("the terminal was asked"))
    assert clusters("us-east-1", "mfa").note.startswith("this profile asks for an MFA code")
    assert aws.calls == []


async def test_a_cluster_is_picked_and_opened(aws: FakeAws, home: Path) -> None:
    hyperpod.serve(aws, [hyperpod.cluster("train", 3)])
    aws.deny("ec2", "DescribeSecurityGroups")
    app = StragglerApp(start=Start(state_dir=home / "state"))
    async with app.run_test(size=(100, 40)) as pilot:
        await until(pilot, lambda: isinstance(app.screen, ChooserScreen) and "train" in painted(pilot))
        app.screen.query_one(Choices).land("hyperpod:0")
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, IntakeScreen))
        assert "HyperPod train in us-east-1 (3 nodes, eks)" in painted(pilot)


async def test_what_is_denied_is_a_notice_when_the_session_opens(aws: FakeAws, home: Path) -> None:
    hyperpod.serve(aws, [hyperpod.cluster("train", 2)])
    aws.deny("ec2", "DescribeSecurityGroups")
    aws.deny("fsx", "DescribeFileSystems")
    aws.fail("ssm", "StartSession", "TargetNotConnected", message="is not connected.")
    target = await beside(lambda: hyperpod_target("train", rate=100.0))
    app = StragglerApp(start=Start(target=target, symptom="everything", state_dir=home / "state"))
    async with app.run_test(size=(160, 40)) as pilot:
        await until(pilot, lambda: isinstance(app.screen, MainScreen))
        await until(pilot, lambda: "without ec2:DescribeSecurityGroups" in painted(pilot))
        assert "and 1 more" in painted(pilot)
        assert target.hyperpod is not None
        target.hyperpod.clients.on_trouble("waiting: the AWS credentials have expired: aws login")
        await until(pilot, lambda: "waiting: the AWS credentials have expired: aws login" in painted(pilot))
