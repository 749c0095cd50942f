"""What lies on which card, computed by hand, and what is refused."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from memlab.errors import Faults, MemlabError, MissingFiles
from memlab.harness import gpu_searches
from memlab.harness.gpu_plan import (
    ACTIVATIONS,
    CUDA_GB,
    UNKNOWN_GB,
    CardLayout,
    Loaded,
    Served,
    lay_out,
    least_gb,
    run_models,
    server_models,
    setting_fault,
    size,
)
from memlab.harness.gpu_searches import check_cards
from memlab.harness.sweep import read
from memlab.models.local import base
from memlab.models.local.base import token_width, weight_count
from memlab.models.local.embedder import SentenceEmbedder
from memlab.run import main
from memlab.runtime.paths import bundled_encoder
from memlab.serving.settings import LEFT_GB, settings
from tests.small import LIVES

BATCH = 2 * 65_536 * ACTIVATIONS * 1024 * 2 / 1e9
"""Two batches of 65,536 padded tokens, of so many arrays of 1,024 numbers in fp16."""

OWN = 1.1 + 1.1 + BATCH + CUDA_GB
MODELS = [Loaded("encoder bge-m3", 1.1, BATCH, .2, "auto", "embedder.token_budget=16384"),
          Loaded("reranker r", 1.1, BATCH, .1, "auto", "cross_encoder.token_budget=16384")]
READER = Served(settings("qwen2.5-7b"), ("answer",), 32_768)
"""15.2 GB of weights, 1.9 of cache, 1.5 of vLLM's own: 18.6; in 8 bits 15.2 x .57 + 3.4 = 12.1."""


@pytest.fixture(autouse=True)
def _no_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that has no model of the hub, whatever its cache holds."""
    def missing(path: str | Path, revision: str | None, option: str) -> Path:
        raise MissingFiles(f"no {path}", fix=f"{option}=FOLDER")

    monkeypatch.setattr(base, "model_folder", missing)
    size.cache_clear()


def on(layout: CardLayout, card: int) -> dict[str, float | None]:
    return {what.partition(":")[0]: gb for at, what, gb in layout.rows if at == card}


def test_a_card_of_80_gb_holds_a_run_and_its_reader() -> None:
    layout = lay_out(MODELS, [READER], [80])
    assert on(layout, 0) == {"encoder bge-m3": 1.1, "reranker r": 1.1, "largest batches": BATCH,
                             "CUDA of the run": CUDA_GB, "server of qwen2.5-7b": .9 * 80}
    assert layout.left(0) == pytest.approx(80 - 72 - OWN)
    assert (layout.run, layout.servers[0].cards, layout.servers[0].options) == ((0,), (0,), ())


def test_on_a_card_of_24_gb_the_reader_is_served_in_8_bits() -> None:
    assert 24 - OWN < 18.6
    server = lay_out(MODELS, [READER], [24]).servers[0]
    assert server.options == ("--quantization", "fp8_per_tensor")
    assert server.share == int(100 * (24 - OWN) / 24) / 100
    assert server.share * 24 > 15.2 * .57 + 1.9 + 1.5
    alone = lay_out([], [READER], [24]).servers[0]
    assert (alone.options, alone.share) == ((), .9)


def test_without_a_server_the_run_has_the_card_and_with_two_cards_both() -> None:
    assert lay_out(MODELS, [], [24]).left(0) == pytest.approx(24 - OWN)
    both = lay_out(MODELS, [], [80, 80])
    assert both.run == (0, 1)
    assert on(both, 0) == on(both, 1) == on(lay_out(MODELS, [], [80]), 0)


def test_run_and_server_have_different_cards_where_there_are_two() -> None:
    layout = lay_out(MODELS, [READER], [24, 24, 24])
    assert (layout.run, layout.servers[0].cards, layout.servers[0].options) == ((0, 1), (2,), ())
    assert on(layout, 2) == {"server of qwen2.5-7b": .9 * 24}


def test_a_pinned_encoder_is_on_its_card_alone() -> None:
    pinned = [Loaded("e", 2., 1., .1, "cuda:1", "embedder.token_budget=16384"),
              Loaded("r", 3., 1., .1, "cuda", "cross_encoder.token_budget=16384")]
    layout = lay_out(pinned, [], [24, 24])
    assert [("e" in on(layout, card), "r" in on(layout, card)) for card in (0, 1)] == [(False, True), (True, False)]


def test_a_card_that_the_run_does_not_have_is_refused() -> None:
    pinned = [Loaded("encoder e", 2., 1., .1, "cuda:1", "embedder.token_budget=16384")]
    with pytest.raises(MemlabError, match=r"encoder e is to run on cuda:1, and the run has 1 of 1 card"):
        lay_out(pinned, [], [24])
    with pytest.raises(MemlabError, match=r"has 1 of 2 card"):
        lay_out(pinned, [READER], [24, 24])


def test_each_card_of_a_run_must_hold_its_models() -> None:
    with pytest.raises(MemlabError, match=r"need 5\.9 GB .* card of 4 GB"):
        lay_out(MODELS, [], [24, 4])


def test_a_search_on_the_card_needs_no_model_there() -> None:
    layout = lay_out([], [READER], [80], 2., [("vectors searched exactly", 1.)])
    assert on(layout, 0) == {"vectors searched exactly": 1., "largest batches": 2., "CUDA of the run": CUDA_GB,
                             "server of qwen2.5-7b": .9 * 80}


def test_a_server_alone_leaves_what_a_run_of_the_profile_takes() -> None:
    assert OWN <= LEFT_GB


def test_a_large_reader_takes_more_cards_or_its_published_smaller_form() -> None:
    """72B: 145.4 GB in 16 bits; 82.9 in 8 bits; 41.5 as published in 4 bits; a cache of 10.7."""
    large = Served(settings("qwen2.5-72b"), ("answer",), 32_768)
    assert lay_out(MODELS, [large], [141]).servers[0].options == (
        "--quantization", "fp8_per_tensor", "--tensor-parallel", "1")
    small = lay_out(MODELS, [large], [80]).servers[0]
    assert small.settings.model == "Qwen/Qwen2.5-72B-Instruct-AWQ"
    four = lay_out(MODELS, [large], [80] * 5)
    assert (four.run, four.servers[0].cards, four.servers[0].options) == ((0,), (1, 2, 3, 4), ())
    shared = lay_out(MODELS, [large], [141, 141]).servers[0]  # (145.4 + 10.7 + 3) / 2 on each
    assert (shared.cards, shared.options) == ((0, 1), ("--tensor-parallel", "2"))
    assert shared.share * 141 + OWN <= 141


def test_a_shorter_window_makes_a_server_fit_before_fewer_bits_do() -> None:
    """Llama 8B: 16.1 GB, and a cache of 17.2 for 131,072 tokens, 4.3 for the 32,768 that the reader sends."""
    server = lay_out(MODELS, [Served(settings("llama-3.1-8b"), ("answer",), 32_768)], [30]).servers[0]
    assert server.options == ("--max-len", "32768")
    assert server.settings.needed_gb() == pytest.approx(16.1 + 4.3 + 1.5)


def test_two_servers_share_what_is_left_of_a_card() -> None:
    layout = lay_out(MODELS, [READER, Served(settings("llama-3.1-8b"), ("judge",), 8192)], [80])
    one, two = layout.servers
    assert one.share * 80 >= 18.6
    assert two.share * 80 >= 16.1 + 1.5
    assert layout.left(0) >= 0


@pytest.mark.parametrize(("models", "servers", "cards", "told"), [
    (MODELS, [READER], [16], "server of qwen2.5-7b needs 12.1 GB in its smallest form, the models of the run 5.9 GB"),
    (MODELS, [], [5], "the models of the run need 5.9 GB .* have a card of 5 GB.*embedder.token_budget=16384"),
    (MODELS, [Served(settings("qwen2.5-72b"))], [24, 24], "needs 53.7 GB in its smallest.*cards of 24, 24 GB")])
def test_what_cannot_fit_is_refused(models: list[Loaded], servers: list[Served], cards: list[float], told: str) -> None:
    with pytest.raises(MemlabError, match=told):
        lay_out(models, servers, cards)


def test_smaller_batches_are_proposed_only_where_they_help() -> None:
    for cards, helps in (([16], True), ([13], False)):  # 12.1 of the server, 2.8 of weights and CUDA, 3.1 / 4
        with pytest.raises(MemlabError) as error:
            lay_out(MODELS, [READER], cards)
        assert ("token_budget" in error.value.fix) == helps
    flag = run_models(arms("+profile=gpu", "embedder=bge_m3_flag", "cross_encoder=bge_reranker_v2_m3_flag"))
    assert [model.smaller for model in flag] == ["embedder.batch=4", "cross_encoder.batch=8"]


def test_servers_that_are_placed_already_are_named() -> None:
    with pytest.raises(MemlabError, match=r"the server of qwen2\.5-7b 12\.1 GB.*run the arms of each server by"):
        lay_out(MODELS, [READER, Served(settings("llama-3.1-8b"), ("judge",), 8192)], [24])


def test_what_searches_hold_stays_on_the_card_if_no_server_shrinks_for_it() -> None:
    held = [("token vectors matched", 10.)]
    roomy = lay_out(MODELS, [READER], [80], 1., held)
    assert on(roomy, 0)["token vectors matched"] == 10
    free = 80 - OWN - 10 - (10 - BATCH)  # what is held takes at most half of what is free
    assert roomy.servers[0].share == int(100 * free / 80) / 100
    tight = lay_out(MODELS, [READER], [24], 1., held)
    assert on(tight, 0)["token vectors matched, sent in pieces"] == 0
    assert tight.servers == lay_out(MODELS, [READER], [24]).servers


def test_a_model_of_unknown_size_is_named_so() -> None:
    layout = lay_out([Loaded("encoder e", None, 0., 0., "auto", "embedder.token_budget=16384")], [], [24])
    assert on(layout, 0)["encoder e (size unknown, a guess)"] == UNKNOWN_GB
    layout = lay_out(MODELS, [Served(settings("someone/a-model"))], [24])
    assert "server of someone/a-model (size unknown)" in on(layout, 0)


def test_sizes_come_from_files_or_from_the_settings_of_served_models(tmp_path: Path) -> None:
    minilm = size(SentenceEmbedder())
    assert minilm[1] == 384
    assert minilm[0] == pytest.approx(22.7e6 * 2 / 1e9, rel=.01)  # 22.7 million weights, 2 bytes each on a GPU
    assert size(SentenceEmbedder(path="BAAI/bge-m3", name="bge-m3")) == (1.1, 1024)
    assert size(SentenceEmbedder(path="BAAI/bge-m3", name="bge-m3", dtype="fp32")) == (2.2, 1024)
    assert size(SentenceEmbedder(path="someone/else", name="else")) == (None, None)


def test_weights_of_a_folder_are_counted_in_their_own_format(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "model"
    shutil.copytree(bundled_encoder(), folder)
    save_file({"a": np.zeros((10, 30), np.float16), "b": np.zeros(7, np.float32)}, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps({"hidden_size": 1024}))
    monkeypatch.setattr(base, "model_folder", lambda path, revision, option: Path(path))
    assert size(SentenceEmbedder(path=folder, name="mine")) == (307 * 2 / 1e9, 1024)


def arms(*words: str):
    return read([*words, *LIVES, "track=none", "plan=true"]).arms


def test_the_models_of_the_profile() -> None:
    found = arms("+profile=gpu")
    assert [(one.label, one.gb, one.batch_gb) for one in run_models(found)] == [
        ("encoder bge-m3", 1.1, BATCH), ("reranker bge-reranker-v2-m3", 1.1, BATCH)]
    assert [one.settings.model for one in server_models(found)] == ["Qwen/Qwen2.5-7B-Instruct"]
    assert server_models(arms("+profile=gpu", "read/answer=none", "judge=none")) == []
    assert server_models(arms("+profile=gpu", "chat.url=https://elsewhere.net/v1")) == []
    on_cpu = run_models(arms("+profile=gpu", "embedder.device=cpu"))
    assert [one.label for one in on_cpu] == ["reranker bge-reranker-v2-m3"]
    budget = run_models(arms("+profile=gpu", "embedder.token_budget=16384"))[0]
    assert budget.batch_gb == BATCH / 4


def plan(words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    assert main([*words, *LIVES, "track=none", "plan=true"]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize(("gpus", "lines"), [
    ("24", ["memlab serve qwen2.5-7b --detach --gpu-memory 0.75 --quantization fp8_per_tensor",
            "memlab run +profile=gpu"]),
    ("80", ["memlab serve qwen2.5-7b --detach --gpu-memory 0.9", "memlab run +profile=gpu"]),
    ("141", ["memlab serve qwen2.5-7b --detach --gpu-memory 0.9", "memlab run +profile=gpu"]),
    ("[80,80]", ["CUDA_VISIBLE_DEVICES=1 memlab serve qwen2.5-7b --detach --gpu-memory 0.9",
                 "CUDA_VISIBLE_DEVICES=0 memlab run +profile=gpu"])])
def test_the_plan_of_the_profile_says_what_to_type(gpus: str, lines: list[str], capsys: pytest.CaptureFixture[str]
                                                   ) -> None:
    told = plan(["+profile=gpu", f"gpus={gpus}"], capsys)
    after = [line.strip() for line in told.partition("to type, in this order:\n")[2].splitlines()]
    assert [line.startswith(wanted) for line, wanted in zip(after, lines, strict=True)] == [True, True]
    assert "gpus=" not in told.partition("to type")[2]
    assert "exact on the card from 1.0e+09 multiply-adds, the largest search has" in told


def test_the_cards_of_this_machine_are_named_as_they_are_visible(capsys: pytest.CaptureFixture[str],
                                                                 monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_searches, "visible_cards", lambda: [80., 80.])
    monkeypatch.setattr(gpu_searches, "gpu_count", lambda: 2)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3,6")
    told = plan(["+profile=gpu"], capsys)
    assert "CUDA_VISIBLE_DEVICES=6 memlab serve" in told
    assert "CUDA_VISIBLE_DEVICES=3 memlab run" in told


def test_a_build_for_cpus_leaves_the_cards_to_servers(capsys: pytest.CaptureFixture[str],
                                                      monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_searches, "visible_cards", lambda: [80.])
    monkeypatch.setattr(gpu_searches, "gpu_count", lambda: 0)
    told = plan(["+profile=gpu"], capsys)
    assert "this memlab's PyTorch is a build for CPUs" in told
    assert "encoder bge-m3" not in told.partition("cards\n")[2]
    assert "vectors x 1,024; exact on the CPU" in told


def test_a_published_smaller_form_is_asked_for_by_its_name(capsys: pytest.CaptureFixture[str]) -> None:
    told = plan(["+profile=gpu", "gpus=80", "chat.model=Qwen/Qwen2.5-72B-Instruct"], capsys)
    assert "memlab serve qwen2.5-72b-awq --detach" in told
    assert told.partition("to type")[2].count("chat.model=Qwen/Qwen2.5-72B-Instruct-AWQ") == 1
    assert "chat.model=Qwen/Qwen2.5-72B-Instruct " not in told.partition("to type")[2]


def test_without_a_card_the_profile_says_what_it_needs(capsys: pytest.CaptureFixture[str],
                                                       monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_searches, "visible_cards", list)
    told = plan(["+profile=gpu"], capsys)
    assert ("On a card the run takes 5.9 GB, and a server of qwen2.5-7b on the same or another card 18.6 GB "
            "(12.1 GB in its smallest form)") in told
    assert "cards:" not in plan([], capsys)
    assert "vectors x 384; exact on the CPU" in plan(["+profile=gpu", "embedder=minilm"], capsys)


def test_a_plan_that_does_not_fit_ends_as_a_faulty_configuration(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["+profile=gpu", "gpus=10", *LIVES, "track=none", "plan=true"]) == 2
    assert "gpus: the server of qwen2.5-7b needs 12.1 GB" in capsys.readouterr().out


@pytest.mark.slow
def test_a_run_that_does_not_fit_loads_no_model(tmp_path: Path, capsys: pytest.CaptureFixture[str],
                                                monkeypatch: pytest.MonkeyPatch) -> None:
    words = [*LIVES, "track=none", f"out={tmp_path}/runs", f"store={tmp_path}/store"]
    assert main([*words, "gpus=1"]) == 2
    assert "the models of the run need" in capsys.readouterr().out
    assert not (tmp_path / "store" / "vectors").exists()
    assert main([*words, "gpus=24"]) == 0
    assert main([*words, "gpus=1", "rank.select.k=7"]) == 0  # all vectors are in the store: no model is loaded


def test_free_memory_of_this_machines_cards_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    found = arms("+profile=gpu")
    sweep = read(["+profile=gpu", *LIVES, "track=none", "plan=true"]).settings
    monkeypatch.setattr(gpu_searches, "gpu_count", lambda: 2)
    models = run_models(found)  # of a text they read 8,192 tokens
    assert least_gb(models) == pytest.approx(2.2 + CUDA_GB + 8192 * ACTIVATIONS * 1024 * 2 / 1e9)
    enough, little = 4_000, round(least_gb(models) * 1e9 / 2**20) - 100
    monkeypatch.setattr(gpu_searches.environment, "free_memory", lambda: [enough, enough])
    check_cards(sweep, found)
    monkeypatch.setattr(gpu_searches.environment, "free_memory", lambda: [enough, little])
    with pytest.raises(Faults, match=r"card 1: 2\.9 GB are free, and the models of this run need 3\.0 GB or more"):
        check_cards(sweep, found)
    monkeypatch.setattr(gpu_searches.environment, "free_memory", lambda: [enough])  # MIG
    check_cards(sweep, found)
    monkeypatch.setattr(gpu_searches, "gpu_count", lambda: 0)
    check_cards(sweep, found)


def test_the_setting_changes_neither_name_nor_digest_nor_configuration() -> None:
    plain, = read([*LIVES, "track=none"]).arms
    named, = read([*LIVES, "track=none", "gpus=[80,80]"]).arms
    assert (plain.name, plain.digest(), plain.config) == (named.name, named.digest(), named.config)


@pytest.mark.parametrize("value", ["0", "-1", "[]", "[80,x]", "yes", "true", "null", "{a: 1}"])
def test_a_value_that_names_no_cards_is_a_fault(value: str) -> None:
    with pytest.raises(Faults, match="gpus: .* neither auto nor the GB of a card"):
        read([*LIVES, "track=none", f"gpus={value}"])
    assert setting_fault([24, 80.5]) == ""


@pytest.mark.parametrize("content", [
    b"", b"\xff" * 9, (3).to_bytes(8, "little") + b"[1]", (2).to_bytes(8, "little") + b"{}"])
def test_weights_that_cannot_be_counted_are_of_unknown_size(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").write_bytes(content)
    assert weight_count(tmp_path) is None
    assert weight_count(tmp_path / "absent") is None
    for text in ("[1]", "{", '{"hidden_size": {}}', "{}"):
        (tmp_path / "config.json").write_text(text)
        assert token_width(tmp_path) is None
    (tmp_path / "config.json").write_text('{"text_config": {"hidden_size": 768}}')
    assert token_width(tmp_path) == 768
