"""How credentials look. Each pattern starts at a fixed word and repeats without nesting, so its time is linear in the text.

The forms follow the issuers' own documentation of their token prefixes. A new form is one line in `PATTERNS`, one canary and
one look-alike in the tests.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

MARK = re.compile(r"\[redacted:([a-z-]{1,40})\]")

PEM_MARK = re.compile(r"-----(BEGIN|END) [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
PEM_REACH = 32 * 1024
"""Characters between BEGIN and END; the longest keys in use (RSA 16384) have less than half of it."""


@dataclass(frozen=True)
class Pattern:
    """`words`: lower-case, one of them is in every match. The named group that matched is what goes; `v` stands bare."""

    kind: str
    words: tuple[str, ...]
    regex: re.Pattern[str]
    plain: re.Pattern[str] | None = None

    def span(self, found: re.Match[str]) -> tuple[int, int] | None:
        """Where the secret stands; None where what stands there is none (a placeholder, a mark of ours)."""
        name = next(one for one in found.re.groupindex if found[one] is not None)
        start, end = found.span(name)
        value = found[name]
        if name == "v":
            value = _trimmed(value)
            end = start + len(value)
        if not value or MARK.fullmatch(value) or (self.plain is not None and self.plain.fullmatch(value)):
            return None
        return start, end


def _trimmed(value: str) -> str:
    """The value without the brackets and stops that belong to the text around it; a mark of ours keeps its own."""
    marked = max((found.end() for found in MARK.finditer(value)), default=0)
    return value[:marked] + value[marked:].rstrip(")]}>.,;:") or value


# A token starts where no token goes on: after another character, an escaped line end, or a percent escape.
_B = r"(?:(?<![A-Za-z0-9_-])|(?<=\\[nrt])|(?<=%[0-9A-Fa-f]{2}))"

# A value: between quotes (in JSON inside JSON: between escaped ones), or up to a blank or the next `name=`.
_BARE = r"""(?:[^\s"'\\&,;\x00]|\\(?![nrt"'])|[&,;](?![\w.-]{0,64}=|\s|$)|["'](?=\w))+"""
_VALUE = (
    r"""(?:\\{1,3}["'](?P<e>[^"'\\\r\n]+(?:\\(?!\\{0,2}["'])[^"'\\\r\n]*)*)(?=\\{1,3}["'])"""
    r"""|"(?P<d>(?:[^"\\\r\n]|\\[^\r\n])+)(?=")|'(?P<s>(?:[^'\\\r\n]|\\[^\r\n])+)(?=')|(?P<v>"""
    + _BARE
    + r"))"
)

_PLAIN_WORDS = r"(?:null|none|nil|true|false|yes|no|\(none\)|\(null\)|<[^<>]*>|\*+|-|\$[A-Za-z_({%].*|%[{(].*|\{\{.*|\|[+-]?|>[+-]?"
_PLAIN = re.compile(_PLAIN_WORDS + r")", re.I | re.S)
_PLAIN_TOKEN = re.compile(
    _PLAIN_WORDS + r"|0x[0-9a-f]{1,16}|\d{1,6}(?:\.\d{1,6})?(?:ms|us|s|%)?)", re.I | re.S
)
_PLAIN_PASS = re.compile(_PLAIN_WORDS + r"|\d{1,6}|files|compat|sss|systemd|ldap|nis|db|x)", re.I | re.S)

_PW_OWNERS = (
    "storage",
    "db",
    "user",
    "root",
    "admin",
    "smtp",
    "bind",
    "store",
    "trust",
    "key",
    "login",
    "sudo",
)
_PW_WORDS = (
    *("password", "passwd", "passphrase", "passcode", "_pwd", "-pwd", ";pwd", "bindpw", "rootpw", "pass="),
    *(f"{owner}{joint}pass" for owner in _PW_OWNERS for joint in ("", "_")),
)
_PW_NAME = (
    rf"(?:pass(?:word|wd|phrase|code)|(?:{'|'.join(_PW_OWNERS)})_?pass"
    r"|(?<=[_-])pwd|(?<=;)pwd|bindpw|rootpw|(?<![^_&?;,\s-])pass(?==))"
)
_KEY_OWNERS = (
    *("api", "access", "account", "auth", "private", "signing", "encryption", "master", "license", "shared"),
    *("service", "consumer", "client", "session"),
)
_KEY_WORDS = ("secret", *(f"{owner}{joint}key" for owner in _KEY_OWNERS for joint in ("", " ", "_", "-")))
_KEY_NAME = (
    r"(?:secret(?:[ _-]?access[ _-]?key|[ _-]?key|[_-]?(?:value|string|text|data))?"
    rf"|(?:{'|'.join(_KEY_OWNERS)})[ _-]?key(?:[_-]?(?:data|value|secret))?)"
)
_TOK_NAME = (
    r"(?:(?<!pad[_-])(?<!eos[_-])(?<!bos[_-])(?<!unk[_-])(?<!sep[_-])(?<!cls[_-])(?<!mask[_-])(?<!image[_-])(?<!stop[_-])"
    r"(?<!special[_-])(?<!unexpected )(?<!max[_-])(?<!next[_-])(?<!per[_-])(?<!per )"
    r"token(?:[_-]?(?:value|secret|key|data))?)"
)

# Between a name and its value: `=`, `:`, `=>`; in JSON with quotes, in Kubernetes and Docker as name/value of an entry.
_SEP = r"""(?:\\{0,3}["'])?[ \t]{0,16}(?:=>|:=|={1,2}|:(?!:))[ \t]{0,16}(?:[|>][+-]?[ \t]{0,4}\r?\n[ \t]{1,40})?"""
_ENTRY = r"""\\{0,3}["']?[ \t]{0,16},?[ \t\r\n]{0,80}\\{0,3}["']?value\\{0,3}["']?[ \t]{0,8}:[ \t]{0,8}"""
_FLAG = (
    r"""(?:=|[ \t]{1,16}|\x00|["'][ \t]{0,8},[ \t\r\n]{0,80}(?=["'])|["']?\r?\n[ \t]{0,40}-[ \t]{1,8})(?!-)"""
)


def _named(kind: str, words: tuple[str, ...], name: str, plain: re.Pattern[str]) -> tuple[Pattern, ...]:
    """A secret told by its name: in assignments, in name/value entries, after a flag."""
    flags = re.I | re.A
    return (
        Pattern(kind, words, re.compile(rf"{name}(?:{_SEP}|{_ENTRY}){_VALUE}", flags), plain),
        Pattern(kind, words, re.compile(rf"--?[a-z0-9_-]{{0,48}}?{name}{_FLAG}{_VALUE}", flags), plain),
    )


def _token(kind: str, words: tuple[str, ...], regex: str) -> Pattern:
    return Pattern(kind, words, re.compile(rf"{_B}(?P<v>{regex})", re.A))


def _after(kind: str, words: tuple[str, ...], lead: str, value: str = _VALUE) -> Pattern:
    return Pattern(kind, words, re.compile(lead + value, re.I | re.A), _PLAIN)


_AWS_ID = r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}"

PATTERNS: tuple[Pattern, ...] = (
    _token("jwt", ("eyj",), r"eyJ[A-Za-z0-9_-]{6,}(?:\.[A-Za-z0-9_-]{4,})(?:\.[A-Za-z0-9_-]*){1,3}"),
    Pattern(
        "aws-secret-key",
        ("akia", "asia", "abia", "acca"),
        re.compile(_AWS_ID + r"""["']?[\s:,;|]{1,8}["']?(?P<v>[A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=])"""),
    ),
    Pattern(
        "aws-access-key",
        ("akia", "asia", "abia", "acca"),
        re.compile(rf"(?:(?<![A-Za-z0-9])|(?<=\\[nrt])|(?<=%[0-9A-F]{{2}}))(?P<v>{_AWS_ID})(?![A-Za-z0-9])"),
    ),
    _token(
        "aws-session-token",
        ("iqojb3jpz2lu", "fwogzxivyxdz", "fqogzxivyxdz"),
        r"(?:IQoJb3JpZ2lu|FwoGZXIvYXdz|FQoGZXIvYXdz)[A-Za-z0-9/+=%_-]{16,}",
    ),
    _after(
        "url-signature",
        ("signature", "security-token", "sig="),
        r"(?:x-(?:amz|goog)-(?:signature|security-token)|(?<=[?&])(?:signature|sig)|(?<=[,\s])signature)(?:=|%3D)",
        r"(?P<v>[^\s&\"'<>\\,]+)",
    ),
    _after("ssm-stream", ("streamurl",), rf"streamurl{_SEP}"),
    _after("ssm-stream", ("wss://ssmmessages",), "", r"(?P<v>wss://ssmmessages[^\s\"'<>\\]+)"),
    _after("ssm-token", ("tokenvalue",), rf"tokenvalue{_SEP}"),
    _after(
        "authorization",
        ("authorization",),
        rf"authorization{_SEP}[\"']?(?:bearer|basic|token|digest|negotiate|splunk)[ \t]{{1,16}}",
        r"(?P<v>[^\s\"'\\,;]+)",
    ),
    _after(
        "authorization",
        ("authorization",),
        rf"authorization{_SEP}[\"']?(?!AWS4-HMAC)(?=\S{{0,64}}[0-9]|\S{{20}})",
        r"(?P<v>[^\s\"'\\,;]+)",
    ),
    _after(
        "authorization",
        ("bearer",),
        r"bearer[ \t]+",
        r"(?P<v>(?=[^\s\"']{0,64}[0-9])[A-Za-z0-9._~+/=-]{16,})",
    ),
    _after("cookie", ("cookie:",), r"cookie:[ \t]{0,8}", r"(?P<v>[^\s\"'\\][^\r\n\"'\\]*)"),
    _token(
        "github-token",
        ("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"),
        r"gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}",
    ),
    _token(
        "gitlab-token",
        (
            "glpat-",
            "glptt-",
            "gldt-",
            "glrt-",
            "glcbt-",
            "glft-",
            "glsoat-",
            "glagent-",
            "glimt-",
            "gloas-",
            "glffct-",
        ),
        r"gl(?:pat|ptt|dt|rt|cbt|ft|soat|agent|imt|oas|ffct)-[A-Za-z0-9_.-]{16,}",
    ),
    _token("huggingface-token", ("hf_", "api_org_"), r"(?:hf|api_org)_[A-Za-z0-9]{20,}"),
    _token("slack-token", ("xox", "xapp-"), r"(?:xox[a-z]|xapp)-[A-Za-z0-9-]{10,}"),
    _after(
        "slack-token",
        ("hooks.slack.com",),
        r"hooks\.slack\.com/(?:services|workflows)/",
        r"(?P<v>[A-Za-z0-9/_-]+)",
    ),
    _token("wandb-key", ("wandb_v1_",), r"wandb_v1_[A-Za-z0-9_]{20,}"),
    _after(
        "wandb-key",
        ("wandb",),
        r"wandb[.\s]login[^\n]{0,60}?(?<![0-9a-f])",
        r"(?P<v>[0-9a-f]{40})(?![0-9a-f])",
    ),
    _token("anthropic-key", ("sk-ant-",), r"sk-ant-[A-Za-z0-9_-]{16,}"),
    _token(
        "openai-key",
        ("sk-",),
        r"sk-(?=[a-z_-]{0,64}[A-Z0-9])(?=[a-z0-9_-]{0,64}[A-Z])(?=[A-Za-z_-]{0,64}[0-9])[A-Za-z0-9_-]{20,}",
    ),
    _token("google-key", ("aiza", "ya29.", "gocspx-"), r"AIza[\w-]{35}|ya29\.[\w.-]{20,}|GOCSPX-[\w-]{20,}"),
    _token("nvidia-key", ("nvapi-",), r"nvapi-[A-Za-z0-9_-]{20,}"),
    _token(
        "registry-token",
        ("dckr_", "npm_", "pypi-"),
        r"dckr_[po]at_[\w-]{20,}|npm_[A-Za-z0-9]{36}|pypi-[\w-]{50,}",
    ),
    _token("vault-token", ("hvs.", "hvb."), r"hv[sb]\.[A-Za-z0-9_-]{20,}"),
    _token("databricks-token", ("dapi",), r"dapi[0-9a-f]{32}(?![0-9a-f])"),
    _after("docker-auth", ('auth"', "auth'", "auth\\"), r"(?<![a-z_-])auth(?=[\\\"'])" + _SEP),
    _after(
        "url-password",
        ("://",),
        r"://[^\s/:@\"'<>\[]{0,256}:",
        r"(?P<v>[^\s/\"'<>]{1,512})(?=@[^\s@/]|@$)",
    ),
    _after("url-password", ("://",), r"://", r"(?P<v>[^\s/:@\"'<>\[]{24,512})(?=@)"),
    _after("password", ("login",), r"login\s{1,40}\S{1,256}\s{1,40}password\s{1,40}", r"(?P<v>\S+)"),
    _after("password", ("sshpass",), r"sshpass\s{1,16}-p\s{0,16}"),
    _after("password", ("ipmitool",), r"ipmitool\s[^\n]{0,200}?\s-P\s{1,16}"),
    _after(
        "password",
        ("curl", "wget"),
        r"(?:curl|wget)\s[^\n]{0,200}?\s(?:-u|--user)[ =]{0,4}[\"']?[^\s:\"']{1,128}:",
        r"(?P<v>[^\s\"']+)",
    ),
    *_named("password", _PW_WORDS, _PW_NAME, _PLAIN_PASS),
    *_named("secret", _KEY_WORDS, _KEY_NAME, _PLAIN),
    *_named("token", ("token",), _TOK_NAME, _PLAIN_TOKEN),
)

GATES: tuple[str, ...] = tuple(
    dict.fromkeys(["private key", *(word for one in PATTERNS for word in one.words)])
)
"""A text with none of these words is passed through as it is."""

ENDS_IN_SECRET = re.compile(rf"(?:{_PW_NAME}|{_KEY_NAME}|{_TOK_NAME}|authorization)$", re.I | re.A)
SECRET_FLAG = re.compile(rf"--?[a-z0-9_-]{{0,48}}?(?:{_PW_NAME}|{_KEY_NAME}|{_TOK_NAME})", re.I | re.A)
