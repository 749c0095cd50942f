"""Whatever goes wrong: a clear message or a defined result, and finished work is kept.

A fault at each system call of a run, a report, a store and a live memory is tested in ``tests/faults``. That eight
processes may fill one store at once, and that a flipped byte is named and computed anew, in ``tests/store``.
"""

from __future__ import annotations

import json
import lzma
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from rich.console import Console

from memlab.cluster.worker import run_arm
from memlab.data.locomo import LoCoMo
from memlab.models.local.embedder import SentenceEmbedder
from memlab.rank.score import RandomScore
from memlab.report.build import build
from memlab.run import main
from memlab.search.bm25 import BM25Okapi
from memlab.search.dense import Dense
from memlab.stage import EmptyStage, Stage
from memlab.store import Store
from memlab.tables import Tables, text_hash, texts_frame
from memlab.write.chunk import Levels, Recursive, RoundChunker, SessionChunker, Tokens, TurnChunker, Window
from memlab.write.context import Header
from tests.data.official_records import conversation, write
from tests.examples import NIGHTLY
from tests.small import LIVES, Given, arm, lexical, lives, on_lives, words
from tests.store.worker import DigestEmbedder

pytestmark = pytest.mark.nightly

KILLS = 10 if NIGHTLY else 2


class Worker:
    """Starts runs in forked processes that have imported everything."""

    def __init__(self) -> None:
        here = Path(__file__).resolve()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.run_worker"], cwd=here.parents[1], text=True, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, env={**os.environ, "OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"})
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "ready\n"

    def _ask(self, question: dict[str, Any]) -> int:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(json.dumps(question), file=self.process.stdin, flush=True)
        return int(self.process.stdout.readline())

    def start(self, line: list[str], log: Path, largest: int | None = None) -> int:
        """Start a command line; return its process id."""
        return self._ask({"words": line, "log": str(log), "largest": largest})

    def wait(self, pid: int) -> int:
        """Return a run's exit status, negative for a signal."""
        return self._ask({"wait": pid})

    def run(self, line: list[str], log: Path, largest: int | None = None) -> int:
        """Run a command line to its end."""
        return self.wait(self.start(line, log, largest))


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    one = Worker()
    yield one
    assert one.process.stdin is not None
    one.process.stdin.close()
    one.process.wait(30)


@dataclass(frozen=True)
class Results:
    """What must not differ: rankings, selections, contexts and metrics, by arm."""

    frames: dict[str, dict[str, pl.DataFrame]]
    metrics: dict[str, dict[str, float]]

    @classmethod
    def of(cls, place: Path) -> Results:
        folders = {p.parent.name: p.parent for p in sorted(place.glob("*/manifest.json"))}
        columns = ["question", "unit", "rank", "selected", "tokens"]
        return cls(
            {name: {"ranking": pl.read_parquet(f / "ranking.parquet").select(columns),
                    "context": pl.read_parquet(f / "context.parquet")} for name, f in folders.items()},
            {name: json.loads((f / "metrics.json").read_text()) for name, f in folders.items()})

    def same(self, other: Results) -> None:
        assert self.metrics == other.metrics
        for name, tables in self.frames.items():
            for table, rows in tables.items():
                assert rows.equals(other.frames[name][table]), (name, table)


def real(root: Path, *more: str) -> list[str]:
    """A sweep with the real encoder and the real store: two arms, one of them adaptive."""
    return on_lives(root, "-m", "rank/select=fixed,gap", *more)


PLACE = Path("runs") / "single" / "synthetic"


@pytest.fixture(scope="module")
def undisturbed(worker: Worker, tmp_path_factory: pytest.TempPathFactory) -> tuple[Results, float]:
    """The results of a run that nothing disturbed, and the seconds that it took from a cold store."""
    root = tmp_path_factory.mktemp("undisturbed")
    start = time.perf_counter()
    assert worker.run(real(root), root / "log") == 0, (root / "log").read_text()
    results = Results.of(root / PLACE)
    assert len(results.metrics) == 3  # fixed, gap and gap's twin
    return results, time.perf_counter() - start


def test_kill_9_at_random_moments(worker: Worker, undisturbed: tuple[Results, float], tmp_path: Path) -> None:
    expected, seconds = undisturbed
    moments = random.Random(20240229)
    killed = ended = 0
    for _ in range(5 * KILLS):
        root = tmp_path / str(ended)
        root.mkdir(exist_ok=True)
        pid = worker.start(real(root), root / "log")
        time.sleep(moments.uniform(0, seconds))
        os.kill(pid, signal.SIGKILL)
        status = worker.wait(pid)
        if status == -signal.SIGKILL:
            killed += 1
        else:  # it had ended before: a run of several pieces must be worth what a whole one is
            assert status == 0, (root / "log").read_text()
            expected.same(Results.of(root / PLACE))
            ended += 1
        if killed == KILLS:
            break
    assert killed == KILLS
    root = tmp_path / str(ended)
    assert worker.run(real(root), root / "log") == 0, (root / "log").read_text()
    expected.same(Results.of(root / PLACE))
    assert (root / PLACE / "report.html").is_file()


@pytest.mark.nightly
def test_two_sweeps_in_the_same_second(worker: Worker, undisturbed: tuple[Results, float], tmp_path: Path) -> None:
    both = [worker.start(real(tmp_path), tmp_path / f"log{i}") for i in range(2)]
    assert [worker.wait(pid) for pid in both] == [0, 0], [p.read_text() for p in tmp_path.glob("log*")]
    undisturbed[0].same(Results.of(tmp_path / PLACE))
    assert len([p for p in (tmp_path / PLACE).iterdir() if p.is_dir()]) == 3  # nothing twice, nothing left over
    comparison = json.loads((tmp_path / PLACE / "comparison.json").read_text())
    assert list(comparison["arms"]) == ["fixed", "gap", "gap.twin"]
    assert comparison["missing"] == []
    report = (tmp_path / PLACE / "report.html").read_text()
    assert report.rstrip().endswith("</html>")


def test_an_interrupt_says_how_to_go_on(worker: Worker, tmp_path: Path) -> None:
    log = tmp_path / "log"
    pid = worker.start(real(tmp_path, "data.sessions=150"), log)  # some ten seconds of encoding
    until = time.monotonic() + 300
    while "2 arms" not in (log.read_text() if log.exists() else "") and time.monotonic() < until:
        time.sleep(.05)
    time.sleep(1)
    os.kill(pid, signal.SIGINT)
    assert worker.wait(pid) == 130, log.read_text()
    told = log.read_text()
    assert "interrupted; finished work is kept: run the same command again to continue" in told
    assert "Traceback" not in told


def test_a_full_disk_is_named_and_the_same_line_goes_on(worker: Worker, tmp_path: Path) -> None:
    log = tmp_path / "log"
    assert worker.run(words(tmp_path), log, largest=4096) == 1  # no file may be larger: as a full disk refuses
    told = log.read_text()
    assert "cannot be written: the limit on file sizes is reached" in told
    assert "out=DIR" in told
    assert not list((tmp_path / "runs").rglob("manifest.json"))
    assert worker.run(words(tmp_path), log) == 0
    assert len(list((tmp_path / "runs").rglob("manifest.json"))) == 1
    assert not list((tmp_path / PLACE).glob(".*"))


@pytest.mark.parametrize(("content", "told"), [
    (b"", "record 0: the JSON ends too early"),
    (json.dumps([conversation()]).encode()[:-40], "JSON"),
    (b'[{"sample_id": 3}]', "record 0, field sample_id: expected text"),
    (b"\xff\xfe[]", "JSON"),
    (None, "no such file"),
])
def test_a_bad_file_is_named_with_what_is_wrong(content: bytes | None, told: str, tmp_path: Path,
                                                capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "locomo10.json"
    if content is not None:
        path.write_bytes(content)
    status = main(words(tmp_path, "data=locomo", f"data.path={path}")[:2] + words(tmp_path)[len(LIVES):])
    out = capsys.readouterr().out
    assert status == (2 if content is None else 1)
    assert told in out
    assert "locomo10.json" in out
    assert "Traceback" not in out
    assert not list(tmp_path.rglob("manifest.json"))


def test_a_broken_archive_and_a_folder_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rest = words(tmp_path)[len(LIVES):]
    packed = tmp_path / "locomo10.json.xz"
    packed.write_bytes(lzma.compress(json.dumps([conversation()] * 50).encode())[:200])
    assert main(["data=locomo", f"data.path={packed}", *rest]) == 1
    assert "locomo10.json.xz" in capsys.readouterr().out
    assert main(["data=locomo", f"data.path={tmp_path}", *rest]) == 2
    assert "a folder, expected a file" in capsys.readouterr().out


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_permission_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path / "locomo10.json", [conversation()])
    path.chmod(0)
    assert main(["data=locomo", f"data.path={path}", *words(tmp_path)[len(LIVES):]]) == 2
    assert "Permission denied" in capsys.readouterr().out


def test_a_nan_from_a_model_fails_its_arm_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store, data = Store(tmp_path / "store"), lives()
    bad = data.load()["texts"]["text"][40]
    sick = arm(tmp_path, lexical(dense=Dense(embedder=DigestEmbedder("sick", bad=bad))), name="sick")
    well = arm(tmp_path, name="well")
    for one in (sick, well):
        run_arm(one, store, Console(soft_wrap=True))
    told = capsys.readouterr().out
    assert "sick failed: sick gave NaN for " in told
    assert repr(bad)[:20] in told
    assert "well: " in told
    assert not sick.is_finished()
    built = build(well.arms_folder(), contrasts=[], expected=["sick", "well"])
    assert built.comparison["missing"] == ["sick"]
    assert store.made["vectors"] > 0  # what was made before it is kept
    cured = arm(tmp_path, lexical(dense=Dense(embedder=DigestEmbedder("sick"))), name="sick")
    run_arm(cured, store, Console())
    assert cured.is_finished()
    assert not list(cured.arms_folder().glob("*.failed.txt"))


def with_oddities() -> Tables:
    """Lives in which one session is empty, one turn is blank and one turn has 76,560 characters."""
    tables = lives().load()
    long = "".join(f"word{i} " for i in range(12_000))[:76_560]
    turns = tables["turns"].filter(~((pl.col("corpus") == 0) & (pl.col("session") == 3)))
    first = (pl.col("corpus") == 1) & (pl.col("session") == 0)
    text = (pl.when(first & (pl.col("turn") == 0)).then(pl.lit(text_hash(long)))
            .when(first & (pl.col("turn") == 1)).then(pl.lit(text_hash("  "))).otherwise("text_id").alias("text_id"))
    return tables.updated({
        "turns": turns.with_columns(text),
        "texts": pl.concat([tables["texts"], texts_frame([long, "  "])]).unique("text_id", maintain_order=True)})


@pytest.mark.parametrize("chunk", [TurnChunker(), TurnChunker(roles=("assistant",)), RoundChunker(), SessionChunker(),
                                   SessionChunker(roles=("user",)),
                                   Window(), Recursive(), Tokens(), Levels(chunkers=[TurnChunker(), SessionChunker()])],
                         ids=lambda c: type(c).__name__)
def test_an_empty_session_and_a_very_long_turn_are_only_data(chunk: Stage, tmp_path: Path) -> None:
    data, store = Given(with_oddities()), Store(tmp_path / "store")
    ways: list[dict[str, Stage]] = [
        {"dense": Dense(embedder=DigestEmbedder()), "late": BM25Okapi(name="official")},
        {"score": RandomScore()}]
    for i, way in enumerate(ways):
        folder = arm(tmp_path, lexical(chunk=chunk, context=Header(), **way), data, name=f"arm{i}").run(store)
        assert pl.read_parquet(folder / "ranking.parquet")["question"].n_unique() == 16
        assert json.loads((folder / "metrics.json").read_text())["questions"] == 16


def test_the_real_encoder_cuts_a_very_long_turn_and_says_so(tmp_path: Path) -> None:
    tables = with_oddities()
    few = tables["questions"].filter(corpus=1).head(2)
    small = tables.updated({
        "sessions": tables["sessions"].filter((pl.col("corpus") == 1) & (pl.col("session") < 2)),
        "turns": tables["turns"].filter((pl.col("corpus") == 1) & (pl.col("session") < 2)), "questions": few,
        "gold": tables["gold"].join(few, on="question", how="semi"), "evidence": tables["evidence"].clear()})
    pipeline = lexical(dense=Dense(embedder=SentenceEmbedder()), lexical=EmptyStage(writes=("hits",)))
    folder = arm(tmp_path, pipeline, Given(small)).run(Store(tmp_path / "store"))
    ranking = pl.read_parquet(folder / "ranking.parquet")
    assert ranking["dense:turn"].is_finite().all()
    assert ranking.group_by("question").len()["len"].to_list() == [15, 15]  # 16 turns, one of them blank
    assert ranking["tokens"].max() > 7_000  # the reader would be shown all of it
    share = json.loads((folder / "manifest.json").read_text())["truncated"]["turn"]
    assert share == pytest.approx(1 / 15, abs=1e-4)


def test_a_question_without_gold_is_ranked_and_not_scored(tmp_path: Path) -> None:
    tables, store = lives().load(), Store(tmp_path / "store")
    lost = tables["evidence"]["question"][0]
    gold = tables["gold"].with_columns((pl.col("scored") & (pl.col("question") != lost)).alias("scored"))
    without = tables.updated({"evidence": tables["evidence"].filter(pl.col("question") != lost), "gold": gold})
    folder = arm(tmp_path, data=Given(without)).run(store)
    rows = pl.read_parquet(folder / "questions.parquet")
    metrics = [c for c in rows.columns if c.startswith(("session/", "turn/", "selected/session", "selected/turn"))]
    assert rows.filter(question=lost).select(metrics).null_count().sum_horizontal().item() == len(metrics)
    assert pl.read_parquet(folder / "ranking.parquet").filter(question=lost).height > 0
    whole = json.loads((arm(tmp_path, data=Given(tables), name="whole").run(store) / "metrics.json").read_text())
    found = json.loads((folder / "metrics.json").read_text())
    assert found["questions"] == whole["questions"]
    assert found["questions/scored"] == whole["questions/scored"] - 1


def test_no_gold_at_all_still_gives_a_report(tmp_path: Path) -> None:
    tables = lives().load()
    gold = tables["gold"].with_columns(pl.lit(False).alias("scored"))
    one = arm(tmp_path, data=Given(tables.updated({"evidence": tables["evidence"].clear(), "gold": gold})))
    folder = one.run(Store(tmp_path / "store"))
    metrics = json.loads((folder / "metrics.json").read_text())
    assert metrics["context/tokens_mean"] > 0
    assert not [name for name in metrics if name.startswith(("session/", "turn/", "selected/session"))]
    assert build(one.arms_folder(), contrasts=[]).html.is_file()


def test_a_conversation_with_a_silent_session_and_no_evidence_by_the_command(tmp_path: Path) -> None:
    path = write(tmp_path / "locomo10.json", [conversation()])
    assert LoCoMo(path=path).load()["questions"].height == 7
    assert main(["data=locomo", f"data.path={path}", *words(tmp_path)[len(LIVES):]]) == 0
    (metrics,) = (tmp_path / "runs").rglob("metrics.json")
    assert json.loads(metrics.read_text())["questions"] == 7


def test_a_store_that_cannot_be_made_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "store").write_text("a file where the store should be")
    one = arm(tmp_path, lexical(dense=Dense(embedder=DigestEmbedder())))
    run_arm(one, Store(tmp_path / "store"), Console(soft_wrap=True))
    told = capsys.readouterr().out
    assert "a file is there, where a folder is needed" in told
    assert "store=DIR" in told


def test_a_damaged_result_is_named_and_can_be_made_anew(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words(tmp_path, "rank/select=fixed_3")) == 0
    (folder,) = (p.parent for p in (tmp_path / "runs").rglob("manifest.json"))
    (folder / "questions.parquet").write_bytes(b"PAR1 not really")
    capsys.readouterr()
    assert main(words(tmp_path, "rank/select=fixed_3")) == 1
    told = capsys.readouterr().out
    assert "questions.parquet: it has changed since the run" in told
    assert "delete the folder" in told
    shutil.rmtree(folder)
    assert main(words(tmp_path, "rank/select=fixed_3")) == 0
