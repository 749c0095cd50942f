"""Readers of a command line's words and of a run's configuration: arms, faults in words, or a MemlabError."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from memlab.experiment.config.overrides import faults
from memlab.experiment.harness.run_files import plain_yaml
from memlab.experiment.harness.sweep import read
from tests.fuzz.mutation import EXAMPLES, TEXTS, as_json, damaged, fuzz, mutated, outcome

pytestmark = pytest.mark.slow

WORDS = ("rank/select=fixed", "rank.select.k=5", "data=custom", "data.path=x", "name=one", "seed=3",
         "+profile=cpu", "system=best", "~rank/rerank", "hydra.launcher._target_=x", "contrasts=[{arm: a, against: b}]",
         "plugins=[x]", "conf_dir=x", "search/dense=none", "rank/select=gap,fixed", "rank.select.k=range(1,4)", "-m",
         "store=null", "out=x", "ablate=whole", "read/answer=reader", "data.types=[a,b]", "embedder=minilm",
         "data.limit=2", "track=none", "plan=true", "rank.select.k=choice(1,2)", "chat.url=http://x/v1")
VALUES = ("null", "{}", "[]", "[[1]]", "{a: {b: 1}}", "${oc.env:HOME}", "${now:%Y}", "${rank.select.k}", "${a", "???",
          "${nope}", "${seed}", "${name}", "${oc.env:MISSING}", "${rank}", "'${.k} ${out}'", "${hydra.job.num}",
          "1e999", "-1", "true", "'x", "a,b", "[a", "interval(0,1)", "glob(*)", "sort(3,1)", "shuffle(1,2)", "tag(a,b)",
          "extend_list(1)", "int(x)", "str([1])", "9" * 400, "a=b", "@x", "\\", "0x10", "1_0", "nan", "..", "a/b", "*")
PIECES = st.one_of(st.sampled_from(VALUES), st.sampled_from(TEXTS), st.text(max_size=6))
KEYS = st.sampled_from([word.partition("=")[0] for word in WORDS])
PLACES = st.sampled_from(("k", "", "a.b", "_target_", "0", "é"))
WORD = st.one_of(
    st.sampled_from(WORDS), st.builds("{}={}".format, KEYS, PIECES),
    st.builds("{}{}".format, st.sampled_from("+~-@"), KEYS),
    st.builds("{}.{}={}".format, KEYS, PLACES, PIECES), st.builds("~{}.{}".format, KEYS, PLACES),
    st.builds("{}{}={}".format, st.sampled_from(("+", "++", "~", "--")), KEYS, PIECES), PIECES)
composed = settings(fuzz, max_examples=EXAMPLES if EXAMPLES >= 1000 else max(5, EXAMPLES // 5),
                    phases=[phase for phase in Phase if phase is not Phase.explain])
"""Composing an arm takes half a second, so that 10,000 take an hour and a half; to trace each line takes ten times
as long, which no limit of seconds would allow."""


@fuzz
@given(st.lists(WORD, max_size=4))
def test_words(words: list[str]) -> None:
    assert all(isinstance(word, str) and isinstance(fault, str) for word, fault in outcome(lambda: faults(words)))


@composed
@given(st.lists(WORD, max_size=3))
def test_command_lines(words: list[str]) -> None:
    outcome(lambda: read(words))


YAML = b"name: one\nrank:\n  select:\n    k: 10\nlist: [1, 2.5, null, true]\nmore: {a: 1}\ntext: |\n  one\n  two\n"


@fuzz
@given(damaged(st.just(YAML)) | as_json(mutated({"name": "one", "rank": {"select": {"k": 10}}})),
       st.sampled_from(("", "&a [*a]", "!!python/object/apply:os.system [x]", "? {a: b}\n: c", "- {", "\t", "<<: 3")))
def test_yaml_of_a_run_folder(content: bytes, end: str) -> None:
    outcome(lambda: plain_yaml(content.decode("utf-8", "replace") + end, Path("config.yaml")))


@composed
@given(content=damaged(st.just(YAML)) | as_json(mutated({"defaults": ["_self_"], "k": 10})))
def test_files_of_a_folder_of_settings(tmp_path: Path, content: bytes) -> None:
    place = tmp_path / "rank" / "select"
    place.mkdir(parents=True, exist_ok=True)
    (place / "mine.yaml").write_bytes(content)
    outcome(lambda: read([f"conf_dir={tmp_path}", "rank/select=mine"]))
    outcome(lambda: read([]))  # the next command line knows nothing of the folder
