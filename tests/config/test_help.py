from __future__ import annotations

import subprocess
import sys

from memlab.config.comments import slot_lines
from memlab.config.help import help_page
from memlab.config.instantiate import options
from memlab.config.overrides import groups
from memlab.slots import SLOTS
from tests.test_structure import ROOT


def test_the_page_fits_on_a_screen_and_has_each_slot_with_its_default() -> None:
    lines = help_page().splitlines()
    assert len(lines) <= 50
    assert max(map(len, lines)) <= 80
    for slot in SLOTS:
        name = slot.config.replace(".", "/")
        (line,) = [line for line in lines if line.split()[0] == name]
        assert line.split()[1] in options(name)
        assert len(line.split()) > 3


def test_every_slot_of_the_list_is_one_and_has_its_default_as_a_technique() -> None:
    for line in slot_lines():
        assert line.name in groups()
        assert line.default in [*options(line.name), "null"]


def test_help_imports_no_model_library() -> None:
    code = ("import sys; from memlab.__main__ import main; main(['run', '--help']); main(['explain', 'rank/select']); "
            "main(['explain', 'search/dense/ivf']); print('torch' in sys.modules)")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.splitlines()[-1] == "False"
