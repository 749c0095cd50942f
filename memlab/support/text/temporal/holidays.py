"""Holidays of the United States: how people write them, and their day in a year.

Today's rules hold for every year: "Juneteenth 2019" is a day, although it became a public holiday in 2021.
"""

from __future__ import annotations

import re
from datetime import date, timedelta

from dateutil.easter import easter
from dateutil.relativedelta import FR, MO, SU, TH, relativedelta

_RULES: tuple[tuple[str, relativedelta | int], ...] = (
    (r"christmas eve", relativedelta(month=12, day=24)),
    (r"(?:christmas|xmas)(?: day)?", relativedelta(month=12, day=25)),
    (r"boxing day", relativedelta(month=12, day=26)),
    (r"new year'?s eve", relativedelta(month=12, day=31)),
    (r"new year'?s(?: day)?", relativedelta(month=1, day=1)),
    (r"valentine'?s(?: day)?", relativedelta(month=2, day=14)),
    (r"st\.? patrick'?s day", relativedelta(month=3, day=17)),
    (r"april fools?'?s? day", relativedelta(month=4, day=1)),
    (r"earth day", relativedelta(month=4, day=22)),
    (r"cinco de mayo", relativedelta(month=5, day=5)),
    (r"juneteenth", relativedelta(month=6, day=19)),
    (r"(?:the )?(?:4th|fourth) of july|independence day", relativedelta(month=7, day=4)),
    (r"halloween", relativedelta(month=10, day=31)),
    (r"veterans'? day", relativedelta(month=11, day=11)),
    (r"(?:mlk|martin luther king)(?: jr\.?)? day", relativedelta(month=1, day=1, weekday=MO(3))),
    (r"president'?s'? day", relativedelta(month=2, day=1, weekday=MO(3))),
    (r"mother'?s'? day", relativedelta(month=5, day=1, weekday=SU(2))),
    (r"memorial day", relativedelta(month=5, day=31, weekday=MO(-1))),
    (r"father'?s'? day", relativedelta(month=6, day=1, weekday=SU(3))),
    (r"labor day", relativedelta(month=9, day=1, weekday=MO(1))),
    (r"columbus day", relativedelta(month=10, day=1, weekday=MO(2))),
    (r"thanksgiving(?: day)?", relativedelta(month=11, day=1, weekday=TH(4))),
    (r"black friday", relativedelta(month=11, day=2, weekday=FR(4))),  # the day after Thanksgiving
    (r"cyber monday", relativedelta(month=11, day=5, weekday=MO(4))),  # four days after it
    (r"ash wednesday", -46),
    (r"palm sunday", -7),
    (r"maundy thursday", -3),
    (r"good friday", -2),
    (r"easter monday", 1),
    (r"easter(?: sunday)?", 0),
)
"""Pattern of the name (any case), and its day from 1 January, or in days after Easter Sunday."""

HOLIDAY = "|".join(f"(?:{name})" for name, _ in _RULES)
"""Pattern of any holiday."""


def date_of_holiday(name: str, year: int) -> date:
    """Return the day of a holiday in a year.

    >>> date_of_holiday("Easter", 2024), date_of_holiday("thanksgiving day", 2023)
    (datetime.date(2024, 3, 31), datetime.date(2023, 11, 23))
    """
    rule = next(rule for pattern, rule in _RULES if re.fullmatch(pattern, name, re.IGNORECASE))
    day: date = easter(year) + timedelta(days=rule) if isinstance(rule, int) else date(year, 1, 1) + rule
    return day
