"""Digests of source by content: what a module reaches counts, where it lies and what explains it do not."""

from __future__ import annotations

from pathlib import Path

import pytest

from memlab.harness.staleness import SourceTree, imports_of

FILES = {
    "stage.py": '''"""A stage."""
from __future__ import annotations
from typing import TYPE_CHECKING
import math
from memlab.rules import weight  # the rule
if TYPE_CHECKING:
    from memlab.types_alone import Name

class Stage:
    """Weighs texts."""

    k: int = 3
    """How many."""

    def run(self, text: Name) -> float:
        """Return the weight."""
        from memlab.text.words import STOP
        return math.log(weight(text)) + len(STOP)
''',
    "rules.py": "def weight(text):\n    return len(text)\n\n\ndef unused(text):\n    return 0\n",
    "other.py": "def weight(text):\n    return 2 * len(text)\n",
    "types_alone.py": "Name = str\n",
    "text/__init__.py": "",
    "text/words.py": "from memlab.machine.files import read\nSTOP = ('a', 'the')\n",
    "text/more.txt": "of\n",
    "machine/__init__.py": "CHANGES_RESULTS = False\n",
    "machine/files.py": "from memlab.machine.clock import zone\n\ndef read(path):\n    return path\n",
    "machine/clock.py": "CHANGES_RESULTS = True\n\ndef zone():\n    return 'UTC'\n",
    "command/__init__.py": "",
    "command/page.html": "<p>",
    "text/__pycache__/words.pyc": "1",
    "conf/data.yaml": "a: 1",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in {"__init__.py": "", **FILES}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def digest(folder: Path, module: str = "memlab.stage") -> str:
    return SourceTree(folder).digest(module)


def edit(folder: Path, name: str, old: str, new: str) -> None:
    text = (folder / name).read_text()
    assert old in text
    (folder / name).write_text(text.replace(old, new))


def test_a_module_reaches_what_it_imports_anywhere_but_for_types(folder: Path) -> None:
    assert SourceTree(folder).closure("memlab.stage") == {"memlab.stage", "memlab.rules", "memlab.text.words"}
    assert imports_of(folder / "stage.py") > {"memlab.rules", "memlab.text.words", "math"}
    (folder / "no_python.py").write_text("print 1")
    assert "memlab.text.words" in imports_of(folder)


@pytest.mark.parametrize(("name", "old", "new"), [
    ("stage.py", "# the rule", "# a rule"), ("stage.py", "A stage.", "One stage."), ("stage.py", "How many.", "Some."),
    ("stage.py", "Return the weight.", "Weigh."), ("rules.py", "def weight(text):", "\n\ndef weight(\n    text):"),
    ("types_alone.py", "str", "bytes"), ("other.py", "2", "3"), ("machine/files.py", "return path", "return 1"),
    ("command/page.html", "<p>", "<b>"), ("text/__pycache__/words.pyc", "1", "2"), ("conf/data.yaml", "1", "2")])
def test_what_changes_no_result_changes_no_digest(folder: Path, name: str, old: str, new: str) -> None:
    before = digest(folder)
    edit(folder, name, old, new)
    assert digest(folder) == before


@pytest.mark.parametrize(("name", "old", "new"), [
    ("stage.py", "k: int = 3", "k: int = 4"), ("stage.py", "math.log", "math.sqrt"), ("stage.py", "import math", ""),
    ("rules.py", "len(text)", "len(text) + 1"), ("text/words.py", "'the'", "'an'"), ("text/more.txt", "of", "to"),
    ("stage.py", "memlab.rules", "memlab.other"), ("stage.py", "import math", "import cmath as math"),
    ("stage.py", "math.log(weight(text))", "weight(math.log(text))")])
def test_a_rule_an_import_or_a_list_of_words_changes_it(folder: Path, name: str, old: str, new: str) -> None:
    before = digest(folder)
    edit(folder, name, old, new)
    assert digest(folder) != before


def test_a_file_may_move_and_so_may_a_part_of_it(folder: Path) -> None:
    before = digest(folder)
    (folder / "rules.py").rename(folder / "text" / "weights.py")
    edit(folder, "stage.py", "memlab.rules", "memlab.text.weights")
    assert digest(folder) == before
    edit(folder, "text/weights.py", "\n\n\ndef unused(text):\n    return 0\n", "")
    edit(folder, "text/words.py", "STOP =", "def unused(text):\n    return 0\n\n\nSTOP =")
    assert digest(folder) == before
    (folder / "stage.py").rename(folder / "command" / "stage.py")
    (folder / "command" / "page.html").unlink()
    assert digest(folder, "memlab.command.stage") == before


def test_a_name_that_a_package_hands_on_is_what_it_stands_for(folder: Path) -> None:
    edit(folder, "stage.py", "memlab.rules", "memlab.hands_on")
    (folder / "hands_on.py").write_text("from memlab.rules import weight\nfrom memlab.other import weight as twice\n")
    before = digest(folder)
    edit(folder, "hands_on.py", "weight as twice", "weight as weight2")
    assert digest(folder) != before
    edit(folder, "hands_on.py", "weight as weight2", "weight as twice")
    edit(folder, "stage.py", "import weight", "import twice as weight")
    assert digest(folder) != before


def test_the_nearest_declaration_counts(folder: Path) -> None:
    edit(folder, "rules.py", "def weight", "from memlab.machine.clock import zone\n\n\ndef weight")
    assert "memlab.machine.clock" in SourceTree(folder).closure("memlab.stage")
    assert "memlab.machine.files" not in SourceTree(folder).closure("memlab.stage")
