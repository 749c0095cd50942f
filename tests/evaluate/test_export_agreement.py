from __future__ import annotations

import json
import runpy
from pathlib import Path

import pytest

from memlab import run as memlab_run
from memlab.score.__main__ import main

SCRIPT = runpy.run_path(str(Path(__file__).parents[2] / "experiments" / "score_agreement" / "agreement.py"))


@pytest.mark.parametrize("chunk", ["turn", "session"])
def test_other_tools_print_the_figures_of_a_run_folder(chunk: str, tmp_path: Path) -> None:
    assert memlab_run.main(["data.limit=40", "track=none", "search/dense=none", f"write/chunk={chunk}", "name=bm25",
                            f"out={tmp_path}"]) == 0
    (folder,) = tmp_path.glob("*/*/bm25-*")
    compared = SCRIPT["compare"](folder)
    assert set(compared) == ({"turn", "session"} if chunk == "turn" else {"session"})
    for level, figures in compared.items():
        assert {"ir_measures", "pytrec_eval"} <= set(figures)
        for tool, values in figures.items():
            assert values == pytest.approx(figures["memlab"], abs=1e-9), (level, tool)


def test_the_export_of_a_run_with_unknown_documents_and_gaps_agrees(tmp_path: Path) -> None:
    (tmp_path / "theirs.trec").write_text("".join(
        f"life-0:{n} Q0 {document} {rank} {1 / rank} x\n" for n in range(0, 12, 2)
        for rank, document in enumerate(["fact-1", "fact-2", *(f"s{(n * 7 + i) % 20}" for i in range(15))], 1)))
    assert main([str(tmp_path / "theirs.trec"), "data.limit=12", f"out={tmp_path}"]) == 0
    (folder,) = tmp_path.glob("score/*/theirs-*")
    for figures in SCRIPT["compare"](folder).values():
        assert figures["memlab"]["mrr"] > 0
        for values in figures.values():
            assert values == pytest.approx(figures["memlab"], abs=1e-9)
    assert main([str(folder / "run.trec"), "data.limit=12", f"out={tmp_path}"]) == 0  # and read back
    (again,) = tmp_path.glob("score/*/run-*")
    assert json.loads((again / "metrics.json").read_text()) == json.loads((folder / "metrics.json").read_text())
