from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from scenarios import __main__ as report
from scenarios.__main__ import by_category, counts, document, expectations, systems
from scenarios.dataset import Scenarios
from scenarios.snippets import snippet

from memlab.stages.rank.score import Score
from memlab.stages.search.dense import Dense
from memlab.store import Store
from memlab.support.errors import MemlabError
from tests.small import arm, lexical
from tests.store.worker import DigestEmbedder

pytestmark = pytest.mark.nightly


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    """Two arms on the scenarios: words alone, and one that keeps only scores no unit has; nobody changes these."""
    root, data = tmp_path_factory.mktemp("scenarios"), Scenarios(haystack=4)
    store = Store(root / "store")
    arm(root, lexical(), data).run(store)
    score = Score(method="weighted", normaliser="none", threshold=1e6)
    both = lexical(dense=Dense(embedder=DigestEmbedder()), score=score)
    return arm(root, both, data, name="strict").run(store).parent


@pytest.fixture
def runs(made, tmp_path) -> Path:
    return shutil.copytree(made, tmp_path / "scenarios")


def test_the_table_has_every_expectation_of_every_system(made):
    found, broken = systems(made)
    assert broken == []
    assert [system.name for system in found] == ["one", "strict"]
    one, strict = found
    rows = expectations(found)
    assert len(rows) == len(set(rows)) == 13 + 9  # Gimli's and our own
    assert one.cell(("exact-match", "in the top 3")) == "3/3: 1, 1, 1"
    assert one.cell(("technical-term", "text score > 0.5")) == "0/3: 0.500, 0.500, 0.500"
    assert one.cell(("semantic-equivalence", "vector share largest")) == "–"  # no vectors
    assert one.cell(("low-relevance", "nothing returned")).startswith("0/3: 10 returned")
    assert strict.cell(("low-relevance", "nothing returned")) == "3/3: 0 returned, 0 returned, 0 returned"
    assert strict.cell(("exact-match", "in the top 3")) == "0/3: not found, not found, not found"
    met = dict(by_category(found))
    assert met["abstention"] == ["0/3", "3/3"]
    assert met["technical-term"] == ["3/6", "0/6"]


def test_the_page_and_the_console_say_the_same(made):
    found, broken = systems(made)
    page, screen = document(found, broken, 3), counts(found)
    for said in ("technical-term", "3/3: 1, 1, 1", "temporal-disambiguation", "all returned"):
        assert said in page
    for category, cells in by_category(found):
        assert f"| {' | '.join([category, *cells])} |" in screen
    assert screen.endswith("1 one, 2 strict")
    assert "reported, not required" in page
    assert "reported, not required" in screen
    case = page.split("### source-priority:landlord")[1].split("###")[0]
    assert "`memory file memory/contacts.md` (file)" in case
    assert "(chat)" in case
    assert "**emergency** **number** of the **landlord**" in case
    assert "* strict: file before chat: not met (not found)" in case
    assert "| strict |  |  |  |  | nothing |" in case
    columns = {line.count(" | ") for line in case.splitlines() if line.startswith("| ")}
    assert columns == {5}


def test_the_command_writes_the_page_and_names_what_is_wrong(runs, capsys):
    assert report.main([str(runs)]) == 0
    out = capsys.readouterr()
    assert "exact-match" in out.out
    assert (runs / "scenarios.md").read_text().startswith("# Scenarios")
    assert report.main([str(runs / "none")]) == 1
    assert "there is no finished run" in capsys.readouterr().err
    (next(runs.glob("one-*")) / "ids.parquet").write_bytes(b"no table")
    assert report.main([str(runs)]) == 0  # the other arm has its report
    assert "ids.parquet: it has changed since the run" in capsys.readouterr().err


def test_runs_on_other_data_are_refused(tmp_path):
    folder = arm(tmp_path).run(Store(tmp_path / "store")).parent
    with pytest.raises(MemlabError, match="the data of 'one' is synthetic"):
        systems(folder)


def test_a_snippet_is_cut_around_what_matches():
    text = "x" * 300 + " The cats were sleeping " + "y" * 300
    found = snippet(text, "Was a cat asleep, or sleeping?")
    assert [part for part, marked in found if marked] == ["cats", "sleeping"]
    assert found[0] == ("…", False)
    assert found[-1] == ("…", False)
    assert sum(len(part) for part, _ in found) == 160 + 2
    assert snippet("nothing of it", "What is the cat?") == [("nothing of it", False)]
    assert snippet("", "cat") == []
    assert snippet("a\n\x1b cat", "cat") == [("a \\x1b ", False), ("cat", True)]
