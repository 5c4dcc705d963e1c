"""How a launcher, a scheduler or the tool itself says that a run did not end by itself: hung, killed, refused."""

from __future__ import annotations

import re

_SIGNS: tuple[tuple[str, str], ...] = (
    ("hung and was ended at its time limit", r"DUE TO TIME LIMIT|DeadlineExceeded|Test timeout \(\d+s\)"),
    (
        "hung and was ended by timeout",
        r"timeout: (?:sending signal|the monitored command)|[Cc]ommand timed out|timed out after \d+"
        r"|exit(?:ed with(?: exit)?)?(?: code| status|:)? ?124\b",
    ),
    ("was cancelled", r"\bCANCELLED\b|Job step aborted"),
    ("failed in CUDA", r"Test CUDA failure|CUDA error"),
    ("failed in NCCL", r"(?:Test )?NCCL failure"),
    ("was killed for memory", r"oom[-_ ]kill|OOMKilled|Out [Oo]f [Mm]emory: Killed"),
    ("was killed", r"\bKilled\b|\bTerminated\b|signal 9\b|signal 15\b"),
    ("crashed", r"Segmentation fault|Bus error|core dumped|signal 11\b|signal 6\b"),
    (
        "could not reach a host",
        r"ssh: connect to host|Host key verification failed|Permission denied \(|Could not resolve hostname"
        r"|No route to host|Connection refused|Connection timed out|Connection closed by",
    ),
    (
        "could not be started",
        r"command not found|error while loading shared libraries|No such file or directory|not enough slots"
        r"|Unable to create step|unable to (?:find|launch|access)|Invalid number of GPUs|no CUDA-capable device",
    ),
    (
        "was aborted by its launcher",
        r"MPI_ABORT was invoked|(?:mpirun|prterun|mpiexec|srun)\b.{0,80}\b(?:noticed|detected|was unable|error)"
        r"|ORTE (?:was|has|daemon)|ORTE_ERROR|PMIX ERROR|Test failure \S+:\d+"
        r"|command terminated with (?:non-zero )?exit code|exited with (?:exit code|status) [1-9]",
    ),
)
END = 128 * 1024
"""Characters at either end of a text in which a sign is looked for."""

_ANY = re.compile("|".join(f"(?P<g{at}>{pattern})" for at, (_, pattern) in enumerate(_SIGNS)))


def sign(text: str) -> tuple[str, str]:
    """What ended a run, in words, and the line that says so; two empty strings where nothing does.

    The sign nearest the top of the list wins over others: a launcher's abort is what a time limit looks like from outside.
    Of a long text only both ends are looked at.
    """
    if len(text) > 2 * END:
        text = text[:END] + "\n" + text[-END:]
    best: tuple[int, int] | None = None
    for found in _ANY.finditer(text):
        rank = int((found.lastgroup or "g0")[1:])
        if best is None or rank < best[0]:
            best = rank, found.start()
            if rank == 0:
                break
    if best is None:
        return "", ""
    start = text.rfind("\n", 0, best[1]) + 1
    end = text.find("\n", best[1])
    return _SIGNS[best[0]][0], text[start : end if end >= 0 else len(text)].strip()[:300]
