"""Settings that nothing reads are refused, whatever sets them; helpers that others refer to are not."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from memlab.config.compose import compose
from memlab.config.instantiate import CONF, options
from memlab.errors import Faults
from memlab.harness.sweep import preset, read
from tests.examples import rest_at_night

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("prefix", ["+", "++"])
@pytest.mark.parametrize(("word", "hint"), [
    ("rank.selct.k=5", "did you mean 'select'"), ("search.lexica.k1=3", "did you mean 'lexical'"),
    ("learn.folz=all", "did you mean 'folds'"), ("rank.select.kk=5", "did you mean 'k'"),
    ("chat.modl=x", "did you mean 'model'"), ("learn.coverage.dpth=3", "did you mean 'depth'"),
    ("search.dense.index.blok=3", "did you mean 'block'"), ("rank.select={kk: 5}", "did you mean 'k'"),
    ("hydra.sweeper.parms.x=1", "memlab reads nothing else of"), ("hydra.job.nme=x", "memlab reads nothing else of"),
    ('hydra.sweeper.params={rank.select.k:"3,5"}', "is for files"),
    ("hydra.launcher.partition=x", "add hydra/launcher=slurm"), ("system.k=4", "there is no setting 'system'")])
def test_a_word_that_nothing_reads_is_refused_whatever_stands_before_it(prefix: str, word: str, hint: str) -> None:
    _, faults = compose([f"{prefix}{word}", "rank.score.lvl=turn"], False)
    assert len(faults) == 2  # all at once
    assert faults[0].startswith("rank.score.lvl=turn: ") or faults[1].startswith("rank.score.lvl=turn: ")
    (fault,) = [fault for fault in faults if not fault.startswith("rank.score")]
    assert fault.startswith(f"{prefix}{word}: ")
    assert hint in fault


@pytest.mark.parametrize("word", ["+rank.selct.k=3,5", "+rank.selct.k=range(3,5)", "+rank.select.kk=choice(3,5)"])
def test_a_swept_word_that_nothing_reads_is_refused_once(word: str) -> None:
    _, faults = compose([word], True)
    assert len(faults) == 1
    assert faults[0].startswith(f"{word}: ")


def test_a_preset_refuses_it_as_well() -> None:
    with pytest.raises(Faults, match="did you mean 'select'"):
        preset("search/dense=none", "+rank.selct.k=5")


@pytest.mark.parametrize(("words", "fault"), [
    (["rank.select.k=5", "rank.select.k=7"], "rank.select.k=5: rank.select.k is given again, by rank.select.k=7"),
    (["rank.select.k=5", "++rank.select.k=5"], "rank.select.k is given again"),
    (["rank/select=gap", "rank/select=fixed"], "rank/select=gap: rank/select is given again"),
    (["rank.select={k: 5}", "rank.select.k=7"], "rank.select={k: 5}: rank.select.k=7 replaces it"),
    (["rank.select.k=7", "rank.select={k: 5}"], "rank.select.k=7: rank.select={k: 5} replaces it"),
    (["~rank.select.k"], "its default is 10 as well"), (["~rank.select.k=5"], "its value is 10"),
    (["~rank.selct"], "did you mean 'select'"),
])
def test_a_word_that_another_replaces_or_that_deletes_nothing_is_refused(words: list[str], fault: str) -> None:
    _, faults = compose(words, False)
    assert len(faults) == 1
    assert fault in faults[0]


@pytest.mark.parametrize("word", [
    "embedder=bge_small", "learn.folds=all", "chat.model=x", "embedder.max_length=9",
    "judge_chat=server"])
def test_a_setting_of_a_part_that_no_arm_has_is_refused(word: str) -> None:
    with pytest.raises(Faults, match="no part that these arguments choose reads"):
        read([word, "search/dense=none", "track=none"])


def test_what_one_arm_of_a_sweep_reads_or_says_where_it_runs_is_accepted() -> None:
    assert len(read(["rank/select=fixed,calibrated", "learn.folds=all", "search/dense=none"], True).arms) == 2
    assert read(["search/dense=none", "embedder.device=cpu", "rank.select.k=10"]).arms[0].pipeline.select.k == 10


@pytest.mark.parametrize("word", ["name=x", "plan=true", "out=x", "judge=f1", "track=none", "data.limit=3",
                                  "hydra/launcher=local", "contrasts=[]", "shards=2"])
def test_a_setting_of_runs_is_refused_where_nothing_runs(word: str) -> None:
    with pytest.raises(Faults, match=f"{re.escape(word)}: this command does not read"):
        preset("search/dense=none", word)


def test_a_preset_is_made_of_words() -> None:
    with pytest.raises(Faults, match="expected arguments such as 'rank.select.k=5', given 3"):
        preset("search/dense=none", 3)  # type: ignore[arg-type]


def put(folder: Path, **files: str) -> str:
    """Write files, ``__`` in a name stands for a slash; return the word that names the folder."""
    for name, text in files.items():
        path = folder / f"{name.replace('__', '/')}.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return f"conf_dir={folder}"


@pytest.mark.parametrize(("text", "place"), [
    ("rank: {selct: {k: 5}}", "rank has no setting 'selct'; did you mean 'select'"),
    ("rank: {select: {kk: 5}}", "rank.select has no setting 'kk'; did you mean 'k'"),
    ("sead: 3", "there is no setting 'sead'; did you mean 'seed'"),
    ("my: {k: 5}", "there is no setting 'my'"),
    ("embedder: {dvice: cpu}", "embedder has no setting 'dvice'"),
    ("defaults: [{'/rank/select@rank.selct': gap}]", "rank has no setting 'selct'"),
    ("defaults: [{'optional /rank/selct': gap}]", "leave 'optional' out"),
    ("hydra: {verbose: true}", "memlab reads nothing of hydra.verbose"),
    ("hydra: {run: {dir: x}}", "memlab reads nothing of hydra.run"),
    ("hydra: {sweeper: {max_batch_size: 3}}", "memlab reads nothing of hydra.sweeper.max_batch_size"),
    ("hydra: {mode: MULTIRUN, sweeper: {params: {+rank.selct.k: '3,5'}}}", "rank has no setting 'selct'"),
    ("hydra: {sweeper: {params: {rank.select.k: '3,5'}}}", "hydra.sweeper.params holds values to sweep; add -m"),
])
def test_a_file_that_sets_what_nothing_reads_is_refused(tmp_path: Path, text: str, place: str) -> None:
    word = put(tmp_path, exp__mine=f"# @package _global_\n{text}\n")
    _, faults = compose([word, "+exp=mine"], False)
    assert any(place in fault for fault in faults)
    if "defaults" not in text and "hydra" not in text:
        assert faults[0].startswith(f"{tmp_path}/exp/mine.yaml: ")


def test_a_helper_that_a_value_refers_to_is_accepted_and_may_be_set(tmp_path: Path) -> None:
    word = put(tmp_path, exp__mine="# @package _global_\nmy: {k: 5}\nrank: {select: {k: '${my.k}'}}\n")
    assert read([word, "+exp=mine", "search/dense=none"]).arms[0].pipeline.select.k == 5
    assert read([word, "+exp=mine", "search/dense=none", "my.k=7"]).arms[0].pipeline.select.k == 7
    with pytest.raises(Faults, match="did you mean 'k'"):
        read([word, "+exp=mine", "+my.kk=7"])


@pytest.mark.parametrize("text", [
    "learn: {folds: all}", "chat: {model: x}",
    "hydra: {mode: MULTIRUN, sweeper: {params: {embedder: 'minilm,bge_small'}}}"])
def test_a_file_that_sets_what_no_arm_reads_is_refused(tmp_path: Path, text: str) -> None:
    word = put(tmp_path, exp__mine=f"# @package _global_\n{text}\n")
    with pytest.raises(Faults, match="no part that these arguments choose reads"):
        read([word, "+exp=mine", "search/dense=none", "track=none"])


def test_a_helper_of_an_arm_may_stand_in_its_experiment_whichever_arm_is_chosen(tmp_path: Path) -> None:
    assert len(compose(["+exp=learned"], False)[1]) == 0
    word = put(tmp_path, exp__mine="# @package _global_\nlearn: {ranker: {model: m}, folds: all}\narms: {five: {"
                                   "rank: {select: {k: 5}}, learn: {coverage: {depth: '${learn.ranker.model}'}}}}\n")
    with pytest.raises(Faults) as raised:
        read([word, "+exp=mine", "search/dense=none", "track=none"])
    assert ["learn.folds" in fault for fault in raised.value.faults] == [True]


@pytest.mark.parametrize("choice", rest_at_night(
    [f"{slot}={name}" for slot in ("system", "+exp") for name in options(slot.lstrip("+"))], {"system=best"}))
def test_a_shipped_preset_or_experiment_that_is_copied_under_another_name_is_the_same(
        tmp_path: Path, choice: str) -> None:
    slot, name = choice.lstrip("+").split("=")
    word = put(tmp_path, **{f"{slot}__mine": (CONF / slot / f"{name}.yaml").read_text(encoding="utf-8")})

    def arms(*arguments: str) -> list[object]:
        try:
            return [(arm.name.replace(name, "mine"), arm.pipeline, arm.dataset)
                    for arm in read([*arguments, "plan=true", "track=none"]).arms]
        except Faults as told:  # such as a chat model that is to be named
            return [*told.faults]

    assert arms(word, choice.replace(f"={name}", "=mine")) == arms(choice)


def test_a_weight_is_changed_in_a_copy_of_best_and_on_its_command_line(tmp_path: Path) -> None:
    text = (CONF / "system" / "best.yaml").read_text(encoding="utf-8")
    changed = text.replace('"lexical:turn.user": 0.0', '"lexical:turn.user": 0.7')
    assert changed != text
    chosen = [put(tmp_path, system__mine=changed), "system=mine", "track=none"]
    for more, weight in ((), .7), (("rank.score.weights={lexical\\:turn.user: 0.9}",), .9):
        assert read([*chosen, *more]).arms[0].pipeline.score.weights["lexical:turn.user"] == weight
