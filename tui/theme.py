"""The palette: few colours, each with one meaning, told apart by the colour-blind (blue, orange, vermilion; no red on green)."""

from __future__ import annotations

import os
from collections.abc import Mapping

from textual.theme import Theme

from straggler.engine.bandwidth.ramp import ON_DARK, ON_LIGHT

DARK = Theme(
    name="straggler-dark",
    primary="#6cb2eb",
    secondary="#b4a7f5",
    accent="#6cb2eb",
    success="#7fb5a8",
    warning="#f0b429",
    error="#ff7a5c",
    foreground="#cbd3dc",
    background="#10151b",
    surface="#10151b",
    panel="#1a222c",
    dark=True,
    variables={
        "quiet": "#8794a3",
        "faint": "#5a6776",
        "block-cursor-background": "#22384c",
        "border": "#2c3844",
        "footer-key-foreground": "#6cb2eb",
        "scrollbar": "#33404d",
        "scrollbar-background": "#10151b",
        "scrollbar-hover": "#4a5b6c",
        "scrollbar-active": "#6cb2eb",
        **{f"ramp-{digit}": colour for digit, colour in enumerate(ON_DARK)},
        "scrollbar-corner-color": "#10151b",
    },
)

LIGHT = Theme(
    name="straggler-light",
    primary="#0b5cad",
    secondary="#5b4bb5",
    accent="#0b5cad",
    success="#1f6f63",
    warning="#9a5b00",
    error="#b3261e",
    foreground="#22292f",
    background="#fbfaf7",
    surface="#fbfaf7",
    panel="#eceae4",
    dark=False,
    variables={
        "quiet": "#5d666f",
        "faint": "#98a0a8",
        "block-cursor-background": "#d5e4f3",
        "border": "#cfcbc1",
        "footer-key-foreground": "#0b5cad",
        "scrollbar": "#c8c3b8",
        "scrollbar-background": "#fbfaf7",
        **{f"ramp-{digit}": colour for digit, colour in enumerate(ON_LIGHT)},
        "scrollbar-corner-color": "#fbfaf7",
    },
)

THEMES = (DARK, LIGHT)
OWN_VARIABLES: Mapping[str, str] = {
    "quiet": "ansi_bright_black",
    "faint": "ansi_bright_black",
    "border": "ansi_bright_black",
    **{
        f"ramp-{digit}": "ansi_red" if digit < 4 else "ansi_yellow" if digit < 8 else "ansi_blue"
        for digit in range(10)
    },
}
"""What our style sheet uses beyond Textual's own variables, for themes that do not define it: the terminal's grey."""


def fitting(environment: Mapping[str, str] = os.environ) -> str:
    """The theme for the terminal's background where it says so (COLORFGBG, set by many); dark otherwise."""
    background = environment.get("COLORFGBG", "").rpartition(";")[2]
    return LIGHT.name if background in {"7", "15"} else DARK.name
