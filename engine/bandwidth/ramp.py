"""The colours of the digits 0 to 9, from next to none to at the median: vermilion, over sand, to blue.

Told apart by every kind of colour-blindness, and by their lightness, too; the digit says it anyway.
"""

from __future__ import annotations

ON_DARK = (
    *("#ff5a3c", "#ff6a3a", "#fb7d38", "#f6913a", "#efa746"),
    *("#e6bb67", "#d3c79c", "#b0bfc9", "#83a8c8", "#5c8db8"),
)
"""As letters on a dark ground, and as areas below dark letters."""

ON_LIGHT = (
    *("#b3261e", "#af3510", "#a84300", "#a05000", "#96600f"),
    *("#8a6d33", "#7d7458", "#6b7b88", "#48799f", "#27699f"),
)
"""As letters on a light ground."""
