"""No credential survives, and no evidence is eaten."""

from __future__ import annotations

import string
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from straggler.engine.redact import counts, redact, redact_counted, redact_tree

# Put together from halves, so that a scanner of this repository finds no credential that looks real.
AKIA = "AKIA" + "IOSFODNN7EXAMPLE"
ASIA = "ASIA" + "Y34FZKBOKMUTVV7A"
AWS_SECRET = "wJalrXUtnFEMI" + "/K7MDENG/bPxRfiCYEXAMPLEKEY"
AWS_SESSION = "IQoJb3JpZ2lu" + "X2VjEJr//////////wEaCXVzLXdlc3QtMiJHMEUCIQDx"
JWT = (
    "eyJhbGciOiJSUzI1NiIsImtpZCI6" + "IkEifQ.eyJpc3MiOiJrdWJlcm5ldGVzL3NlcnZpY2VhY2NvdW50In0.c2lnbmF0dXJl-_x"
)
GITHUB, FINE = (
    "ghp_" + "16C7e42F292c6912E7710c838347Ae178B4a",
    "github_pat_" + "11AAAAAAA0abcdefghijkl_mnopqrstuvwxyz",
)
GITLAB, HF = "glpat-" + "xyz_ABC-1234567890ab", "hf_" + "abcdefGHIJKLmnopQRSTuvwx1234567890"
SLACK, WANDB = "xoxb-" + "123456789012-abcdefGHIJKL", "0123456789abcdef" + "0123456789abcdef01234567"
OPENAI, CLAUDE = "sk-proj-" + "Abc123Def456Ghi789Jkl012", "sk-ant-api03-" + "Abc123Def456Ghi789"
GOOGLE, NGC = "AIza" + "SyA1234567890abcdefghijklmnopqrstuv", "nvapi-" + "Abc123-Def456_Ghi789Jkl012"
WORD = "hunter2!Zx"
BASE64 = "ZGVwbG95OnMzY3IzdHBhc3M="
KEY_BODY = "\n".join(["MIIEowIBAAKCAQEA7bq8" + "Q" * 44] * 4)
PEM = f"-----BEGIN RSA PRIVATE KEY-----\n{KEY_BODY}\n-----END RSA PRIVATE KEY-----"

CANARIES = [
    (f"aws_access_key_id = {AKIA}\naws_secret_access_key = {AWS_SECRET}\n", [AKIA, AWS_SECRET]),
    (
        f"AWS_ACCESS_KEY_ID={ASIA} AWS_SECRET_ACCESS_KEY={AWS_SECRET} AWS_SESSION_TOKEN={AWS_SESSION} torchrun t.py",
        [ASIA, AWS_SECRET, AWS_SESSION],
    ),
    (f'{{"AccessKeyId": "{ASIA}", "SecretAccessKey": "{AWS_SECRET}", "SessionToken": "{AWS_SESSION}"}}', [ASIA, AWS_SECRET, AWS_SESSION]),
    (f"{AKIA}:{AWS_SECRET}\n", [AKIA, AWS_SECRET]),
    (f"User name,Access key ID,Secret access key\nbob,{AKIA},{AWS_SECRET}\n", [AKIA, AWS_SECRET]),
    (f"caller used {AWS_SESSION} today", [AWS_SESSION]),
    (
        f"https://b.s3.amazonaws.com/k?X-Amz-Credential={AKIA}%2F20261130%2Fus-west-2&X-Amz-Security-Token={AWS_SESSION}"
        "&X-Amz-Signature=9f2c77aa01&x=1",
        [AKIA, AWS_SESSION, "9f2c77aa01"],
    ),
    ("https://b.s3.amazonaws.com/k?Expires=1796083200&Signature=vjbyPxybdZ%2BNm%3D", ["vjbyPxybdZ"]),
    (
        f"Authorization: AWS4-HMAC-SHA256 Credential={AKIA}/20261130/s3/aws4_request, SignedHeaders=host, Signature=fe5f80f77d",
        [AKIA, "fe5f80f77d"],
    ),
    (
        '"StreamUrl": "wss://ssmmessages.us-west-2.amazonaws.com/v1/data-channel/bob-0a1?role=publish_subscribe", '
        f'"TokenValue": "AAEAAd{WORD}"',
        ["data-channel", WORD],
    ),
    ("connected to wss://ssmmessages.us-west-2.amazonaws.com/v1/data-channel/bob-0a1?role=x ok", ["data-channel"]),
    (f"srun --password {WORD} --nodes 4", [WORD]),
    (f"mount -o username=bob,password={WORD},vers=3 //fs/x", [WORD]),
    (f"run --api-key={WORD} --x", [WORD]),
    (f"python train.py\0--hub-token\0{WORD}\0--lr\x001e-4", [WORD]),
    (f'["python", "train.py", "--password", "{WORD}", "--lr", "1"]', [WORD]),
    (f"    - --db-password\n    - {WORD}\n    - --lr\n", [WORD]),
    (f"password: {WORD}\n", [WORD]),
    (f"token: {WORD}", [WORD]),
    (f'{{"password":"{WORD} with blanks","user":"bob"}}', [WORD, "with blanks"]),
    (f'{{"password":"a\\"{WORD}","user":"bob"}}', [WORD]),
    (f'"log":"{{\\"db_password\\":\\"{WORD}\\",\\"user\\":\\"bob\\"}}"', [WORD]),
    (f"export DB_PASSWORD='{WORD} x'", [WORD, " x'"]),
    (f"Environment=WANDB_API_KEY={WANDB}", [WANDB]),
    (f"wandb login --relogin {WANDB}", [WANDB]),
    (f"machine api.wandb.ai\n  login user\n  password {WANDB}\n", [WANDB]),
    (f"AccountingStoragePass={WORD}", [WORD]),
    (f"pass={WORD}\n", [WORD]),
    (("plain line\n" * 40 + f"token={WORD}\n") * 20 + "plain line\n" * 40, [WORD]),
    (f"      - name: DB_PASSWORD\n        value: {WORD}\n", [WORD]),
    (f'{{"name": "HF_TOKEN", "value": "{WORD}"}}', [WORD]),
    (f"password: |\n  {WORD}\nnext: 1\n", [WORD]),
    (f"'Env': ['NCCL_DEBUG=INFO', 'MY_SECRET={WORD}', 'X=1']", [WORD]),
    (f"PASSWORD={WORD}&more,stuff", [WORD, "more", "stuff"]),
    (f"GET /x?access_token={WORD}&page=2", [WORD]),
    (f"Authorization: Bearer {WORD}", [WORD]),
    (f"curl -H 'Authorization: Basic {BASE64}' http://x", [BASE64]),
    (f'"Authorization": "Bearer {WORD}abc"', [WORD]),
    (f"X-Auth-Token: {WORD}", [WORD]),
    (f"curl -s -u bob:{WORD} http://x/", [WORD]),
    (f"Cookie: session={WORD}; path=/", [WORD]),
    (f"sshpass -p {WORD} ssh node", [WORD]),
    (f"ipmitool -H bmc -U root -P {WORD} sel list", [WORD]),
    (f"token is {JWT}.", [JWT[40:]]),
    (f"SLURM_JWT={JWT}", [JWT[40:]]),
    (f"kind: Config\nusers:\n- user:\n    token: {JWT}\n    client-key-data: LS0tLS1CRUdJTi\n", [JWT[40:], "LS0tLS1CRUdJTi"]),
    (f"before\n{PEM}\nafter", [KEY_BODY[:30], KEY_BODY[-30:]]),
    ('"key": "' + PEM.replace("\n", "\\n") + '"', [KEY_BODY[:30]]),
    (PEM[:200], [KEY_BODY[:30], KEY_BODY[64:90]]),
    (PEM[-150:] + "\nafter", [KEY_BODY[-30:]]),
    ("-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAA\n-----END OPENSSH PRIVATE KEY-----", ["b3BlbnNza"]),
    *((f"cloning with {secret} now", [secret[8:]]) for secret in (GITHUB, FINE, GITLAB, HF, SLACK, OPENAI, CLAUDE, GOOGLE, NGC)),
    (f'{{"log":"start\\n{GITHUB}\\nend"}}', [GITHUB]),
    (f"https://hooks.slack.com/services/T000/B000/{WORD[:7]}abc", [WORD[:7]]),
    (f"git clone https://bob:{WORD}@github.com/x/y.git", [WORD]),
    (f"pip --extra-index-url https://{HF}@host/simple", [HF]),
    (f"postgres://app:p@ss{WORD}@db:5432/x", [WORD, "p@ss"]),
    (f'"auths": {{"https://index.docker.io/v1/": {{"auth": "{BASE64}"}}}}', [BASE64]),
]  # fmt: skip


@pytest.mark.parametrize(("text", "secrets"), CANARIES, ids=[text[:40] for text, _ in CANARIES])
def test_a_planted_secret_never_survives(text: str, secrets: list[str]) -> None:
    cleaned, taken = redact_counted(text)
    for secret in secrets:
        assert secret not in cleaned
    assert taken
    assert sum(taken.values()) == sum(counts(cleaned).values())
    assert redact(cleaned) == cleaned


def test_the_shape_of_a_line_stays_readable() -> None:
    assert redact(f"run --password {WORD} --nodes 4") == "run --password [redacted:password] --nodes 4"
    assert redact(f'{{"token": "{WORD}", "rank": 3}}') == '{"token": "[redacted:token]", "rank": 3}'
    assert redact(f"https://bob:{WORD}@host/x?a=1") == "https://bob:[redacted:url-password]@host/x?a=1"
    assert redact(f"before\n{PEM}\nafter") == "before\n[redacted:private-key]\nafter"


@pytest.mark.parametrize(
    "text",
    [
        "NVRM: Xid (PCI:0000:5c:00): 79, pid=1234, name=python, GPU has fallen off the bus.",
        "commit 460247f0c1d2e3f4a5b6c7d8e9f0a1b2c3d4e5f6",
        "GPU-5c1f8a3e-1111-2222-3333-444455556666, 00000000:5C:00.0, 0x10de",
        "boot id d3de50db-344c-49ec-80c8-40bb1dfb8499",
        "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "instance i-0d5a41c31dd5bb86c in account 123456789012, arn:aws:sagemaker:us-west-2:123456789012:cluster/abc",
        "max_tokens=4096 num_tokens: 512 tokenizer=gpt2 tokens_per_second=1234.5 eos_token: </s> pad_token='[PAD]'",
        "time per output token: 12.3 ms, prompt token: 512",
        "NVRM: GPU6 kbusSendSysmembarSingle_GH100: timeout error waiting for startToken = 0x3 cnt=24105122",
        "bash: syntax error near unexpected token `('",
        "AWS_WEB_IDENTITY_TOKEN_FILE=/var/run/secrets/eks.amazonaws.com/serviceaccount/token",
        "imagePullSecrets: [regcred]\n  secretName: tls-cert",
        "passwd:         files systemd\nshadow: files",
        "root:x:0:0:root:/root:/bin/bash",
        "sudo: a password is required",
        "[sudo] password for bob: ",
        "PWD=/home/bob OLDPWD=/tmp",
        "pass: 12 fail: 0, pass=12, passed=True",
        "password: $DB_PASSWORD token=${TOKEN} secret: {{ .Values.secret }} api_key: null",
        "ssh://git@github.com/x/y.git https://host:8080/a@b file:///x/y@1.2",
        "disk-aAbBcC1234567890defghijk mounted; sk-learn-intelex-is-fine-here",
        "nccl: NET/OFI Selected Provider is efa, key=value, monkey: 3",
        "Basic authentication failed; bearer authentication required; Authorization: denied",
        "-----BEGIN CERTIFICATE-----\nMIIDdzCCAl+gAwIBAgIEAgAAuTANBgkqhkiG9w0BAQUFADBaMQsw\n-----END CERTIFICATE-----",
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGl0c2FwdWJsaWNrZXk bob@host",
    ],
)
def test_evidence_that_looks_alike_stays(text: str) -> None:
    assert redact(text) == text


def test_plain_data_is_cleaned_by_the_names_in_it() -> None:
    data = {
        "password": WORD,
        "argv": ["run", "--token", WORD, "--lr", "1"],
        "deep": [{"api_key": WORD}],
        "rank": 3,
    }
    cleaned = redact_tree(data)
    assert WORD not in str(cleaned)
    assert cleaned["rank"] == 3
    assert cleaned["argv"][3:] == ["--lr", "1"]


PIECES = st.sampled_from(
    [*[AKIA, AWS_SECRET, JWT, GITHUB, HF, OPENAI, PEM, PEM[:90], PEM[-90:], WORD, BASE64, "password", "token", "secret"],
     *["--", "=", ": ", '"', "'", "\\", "\\n", "\n", " ", "://", "@", "/", "&", ",", "]", "}", "-", "_", "value", "name"],
     *["Bearer ", "Authorization", "[redacted:token]", "[redacted:", "Signature=", "?sig=", "eyJ", "sk-", "login "]]
)  # fmt: skip


@given(st.lists(PIECES | st.text(string.printable, max_size=12), max_size=12).map("".join))
def test_redacting_twice_changes_nothing_more(text: str) -> None:
    once = redact(text)
    assert redact(once) == once


@given(st.text(max_size=60), st.text(max_size=60))
def test_a_key_in_any_surroundings_goes(before: str, after: str) -> None:
    assert AKIA not in redact(f"{before} {AKIA} {after}")


@pytest.mark.parametrize(
    "unit",
    ["a", "-", "--", "token", "token=", "password:", "--password ", "eyJ", "eyJaaaaaaa.", "-eyJ", "://", "://a:", "://a:b@",
     "sk-", "sk-a", "AKIA", "AKIAIOSFODNN7EXAMPLE", "bearer ", "login a ", "curl -u ", "ipmitool ", "-----BEGIN PRIVATE KEY-----",
     "-----END PRIVATE KEY-----", 'password="', "token='", "secret\\\\\\", "value: ", "x-amz-signature=", "gh", "wandb login ",
     "name: TOKEN ", "=", "& ", ",a", "A" * 64 + "\n", "authorization: ", "cookie: a", "a&a,", "token=a&b,"],
)  # fmt: skip
def test_a_megabyte_made_to_be_slow_takes_no_longer_than_its_length_allows(unit: str) -> None:
    """A text twice as long may take about twice as long, not four times; seconds are for a busy machine."""
    text = unit * (2**20 // len(unit))
    begun = time.process_time()
    redact(text)
    assert time.process_time() - begun < 8
