"""The digest of memlab's source: rules and lists of words count, comments and commands do not."""

from __future__ import annotations

from pathlib import PurePosixPath

import pytest

from memlab.experiment.harness.staleness import WITHOUT_RESULTS, digest_of_files
from memlab.support.disk_cache import own_files

STAGE = '''"""A stage."""
class Stage:
    k: int = 3
    """How many."""

    def run(self):  # a rule
        """Weigh."""
        return self.k
'''
FILES = {"rank/stage.py": STAGE, "text/words.txt": "the\n", "report/page.py": "WIDTH = 80\n", "run.py": "STATUS = 0\n",
         "conf/config.yaml": "a: 1\n"}


@pytest.mark.parametrize(("file", "old", "new", "changes"), [
    ("rank/stage.py", "# a rule", "", False), ("rank/stage.py", "A stage.", "One.", False),
    ("rank/stage.py", "How many.", "Some.", False), ("rank/stage.py", '"""Weigh."""', '"""Return."""', False),
    ("rank/stage.py", "def run(self)", "def run(\n        self)", False), ("report/page.py", "80", "90", False),
    ("run.py", "0", "1", False), ("conf/config.yaml", "1", "2", False),
    ("rank/stage.py", "= 3", "= 4", True), ("rank/stage.py", "return self.k", "return 1", True),
    ("text/words.txt", "the", "a", True)])
def test_only_what_can_change_a_result_counts(file: str, old: str, new: str, changes: bool) -> None:
    edited = FILES | {file: FILES[file].replace(old, new)}
    assert edited != FILES
    assert (digest_of_files(edited) != digest_of_files(FILES)) == changes


def test_what_is_left_out_is_there() -> None:
    places = {place for path in own_files() for place in (path, *map(str, PurePosixPath(path).parents))}
    assert WITHOUT_RESULTS - places <= {"conf", "slurm"}  # these two are in a wheel alone
