from __future__ import annotations

import subprocess
import sys

from memlab.experiment.config.comments import slot_lines
from memlab.experiment.config.help import help_page
from memlab.experiment.config.instantiate import options
from memlab.pipeline.slots import SLOTS
from tests.test_structure import ROOT


def test_the_page_fits_on_a_screen_and_has_each_slot_with_its_default() -> None:
    lines = help_page().splitlines()
    assert len(lines) <= 50
    assert max(map(len, lines)) <= 80
    assert {slot.config.replace(".", "/") for slot in SLOTS} <= {line.split()[0] for line in lines}
    for line in slot_lines():
        assert line.default in [*options(line.name), "null"]
        assert f"\n{line.name:<17} {line.default:<9} {line.text}\n" in help_page()


def test_help_imports_no_model_library() -> None:
    code = ("import sys; from memlab.__main__ import main; main(['run', '--help']); main(['explain', 'rank/select']); "
            "main(['explain', 'search/dense/ivf']); print('torch' in sys.modules)")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.splitlines()[-1] == "False"
