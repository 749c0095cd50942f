"""Training of an encoder for late interaction, with the weights of query tokens that the search uses.

    score(q, p) = sum over tokens i of q of  w_i  max over tokens j of p of  <q_i, p_j>,   sum of w_i = 1

w_i is the inverse document frequency of the token among the passages of the training, as
``memlab.stages.search.late_interaction.idf_weights`` has it. The loss is the softmax of one positive among its hard
negatives
and all passages of the other questions of the step (InfoNCE; van den Oord et al., 2018; ColBERT: Khattab & Zaharia,
SIGIR 2020), by sentence-transformers. A smaller dimension is a linear map of the token vectors, trained along, that
begins at the leading principal components of the token vectors before. This module loads the training libraries.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sentence_transformers import (
    MultiVectorEncoder,
    MultiVectorEncoderTrainer,
    MultiVectorEncoderTrainingArguments,
    SentenceTransformer,
)
from sentence_transformers.base.modules import Dense, Normalize, Transformer
from sentence_transformers.base.modules.module import Module
from sentence_transformers.multi_vector_encoder.losses import (
    CachedMultiVectorMultipleNegativesRankingLoss,
    MultiVectorMultipleNegativesRankingLoss,
)
from sentence_transformers.multi_vector_encoder.modules import MultiVectorMask
from sentence_transformers.multi_vector_encoder.scoring import colbert_scores, mean_colbert_scores
from transformers import AutoConfig

from memlab.learn.pairs import TrainingLists
from memlab.learn.recipe import EncoderRecipe
from memlab.learn.training import Columns, OneDevice, Watch, load_libraries, run, training_device
from memlab.models.local.adapter import PROJECTION, apply_update, low_rank, update_file
from memlab.models.local.backend import punctuation_ids, read_head
from memlab.models.local.base import M3_HEAD, is_colbert, token_width
from memlab.models.protocols import Floats
from memlab.stages.search.late_interaction import idf_weights
from memlab.support.errors import MemlabError

SCALE = 20.0
"""Factor of scores in the softmax; they lie between -1 and 1."""

PIECE = 64
"""Texts that are encoded at a time where gradients are cached."""

SAMPLE = 2000
"""Passages whose token vectors give the principal components."""


@dataclass
class EncoderArguments(OneDevice, MultiVectorEncoderTrainingArguments):
    """Arguments of an encoder's training."""

    on: str = "cpu"


class QueryWeights(Module):
    """Multiplies the vectors of query tokens by their weights, which sum to 1 for each query."""

    forward_kwargs = {"task"}  # noqa: RUF012 (the library declares it so)

    def __init__(self, weights: Any) -> None:
        super().__init__()
        self.register_buffer("weights", torch.as_tensor(weights))

    def forward(self, features: dict[str, Any], **options: Any) -> dict[str, Any]:
        """Return the features with weighted ``token_embeddings`` (b, length, dim) of queries."""
        if options.get("task") == "query":
            weights = self.weights[features["input_ids"]] * features["attention_mask"]  # type: ignore[index]
            share = weights / weights.sum(dim=1, keepdim=True).clamp(min=1e-6)
            features["token_embeddings"] = features["token_embeddings"] * share[..., None]
        return features

    def save(self, output_path: str, *args: Any, **options: Any) -> None:  # noqa: ARG002 (the library's signature)
        """Save the weights; a checkpoint is loaded from them."""
        self.save_torch_weights(output_path)

    @classmethod
    def load(cls, model_name_or_path: str, subfolder: str = "", **options: Any  # type: ignore[override] # noqa: ARG003
             ) -> QueryWeights:
        """Load the weights of a checkpoint."""
        return cls(cls.load_torch_weights(model_name_or_path, subfolder)["weights"])


def token_weights(tokenizer: Any, passages: Sequence[str], max_length: int) -> Floats:
    """Return the weight of every token of the vocabulary, (v,), by its document frequency among the passages."""
    frequency = np.zeros(len(tokenizer))
    for row in tokenizer(list(passages), truncation=True, max_length=max_length)["input_ids"]:
        frequency[list(set(row))] += 1
    weights = idf_weights(frequency, len(passages))
    return (weights / weights.max()).astype(np.float32)


@dataclass(frozen=True)
class EncoderParts:
    """A model in training: the whole, the base's transformer, and the map to fewer dimensions, if there is one.

    ``before`` holds the base's weights by their names, without the update that training may go on from.
    """

    model: MultiVectorEncoder
    transformer: Transformer
    projection: Dense | None
    before: dict[str, Floats]


def load(recipe: EncoderRecipe, passages: Sequence[str]) -> EncoderParts:
    """Return the encoder that a recipe starts from, to be checked before, with the weights of its query tokens.

    It has no dropout, and no vectors of tokens outside the text and of punctuation. ``passages`` are all of the
    training; a projection begins with the principal components of some, drawn by the seed.
    """
    torch.manual_seed(recipe.seed)
    base: Any = SentenceTransformer(str(recipe.base_folder()), device="cpu", model_kwargs={"dtype": torch.float32})
    if not isinstance(base[0], Transformer) or any(isinstance(module, Dense) for module in base):
        raise MemlabError("a training starts from a transformer whose token vectors are used as they are",
                          where=str(recipe.base_folder()), fix="another base")
    transformer = base[0]
    transformer.max_seq_length = recipe.max_length
    before = _weights(transformer)
    if recipe.adapter is not None:
        apply_update(transformer.auto_model, update_file(recipe.adapter))
    transformer.auto_model.get_input_embeddings().requires_grad_(recipe.embeddings)
    tokenizer = transformer.tokenizer
    ignored = [*{*tokenizer.all_special_ids} - {tokenizer.unk_token_id}, *punctuation_ids(tokenizer)]
    mask = MultiVectorMask(skiplist_words=tokenizer.convert_ids_to_tokens(sorted(map(int, ignored))),
                           skiplist_tasks=["query", "document"])
    modules: list[Any] = [transformer, *_head(recipe.base_folder() / M3_HEAD)]
    projection = None
    if recipe.dimensions is not None:
        axes = _principal_axes(modules, passages, recipe.dimensions, recipe.seed)
        projection = Dense(axes.shape[1], recipe.dimensions, bias=False, activation_function=torch.nn.Identity(),
                           init_weight=torch.from_numpy(axes), module_input_name="token_embeddings",
                           module_output_name="token_embeddings")
        modules.append(projection)
    modules += [mask, Normalize(module_input_name="token_embeddings")]
    if recipe.weighting == "idf":
        modules.append(QueryWeights(token_weights(tokenizer, passages, recipe.max_length)))
    model = MultiVectorEncoder(modules=modules, device=training_device(recipe))
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    return EncoderParts(model, transformer, projection, before)


def _head(file: Path) -> list[Dense]:
    """Return the base's own layer of token vectors, whose weights stay as they are; none without its file."""
    if not file.is_file():
        return []
    weight, bias = read_head(file)
    layer = Dense(weight.shape[1], weight.shape[0], activation_function=torch.nn.Identity(), init_weight=weight,
                  init_bias=bias, module_input_name="token_embeddings", module_output_name="token_embeddings")
    return [layer.requires_grad_(False)]


def _principal_axes(modules: Sequence[Any], passages: Sequence[str], dimensions: int, seed: int) -> Floats:
    """Return the leading axes (dimensions, width) of the base's unit token vectors, without centring them."""
    some = [passages[i] for i in np.sort(np.random.default_rng([seed, 3]).permutation(len(passages))[:SAMPLE])]
    transformer, width = modules[0], modules[-1].get_embedding_dimension()
    gram = np.zeros((width, width))
    with torch.inference_mode():
        for start in range(0, len(some), PIECE):
            inputs = transformer.preprocess(some[start:start + PIECE])
            output = dict(inputs)
            for module in modules:
                output = module(output)
            vectors = output["token_embeddings"][inputs["attention_mask"].bool()]
            unit = torch.nn.functional.normalize(vectors, dim=1).double().numpy()
            gram += unit.T @ unit
    _, axes = np.linalg.eigh(gram)
    return np.ascontiguousarray(axes[:, ::-1][:, :dimensions].T, dtype=np.float32)


def train_encoder(parts: EncoderParts, lists: TrainingLists, recipe: EncoderRecipe, folder: Path, mark: str,
                  watch: Watch | None = None) -> list[float]:
    """Train on lists of passages whose first is the positive. See ``training.run``."""
    scores = colbert_scores if recipe.weighting == "idf" else mean_colbert_scores
    loss: Any = (
        CachedMultiVectorMultipleNegativesRankingLoss(parts.model, scale=SCALE, similarity_fct=scores,
                                                      mini_batch_size=PIECE) if recipe.cached else
        MultiVectorMultipleNegativesRankingLoss(parts.model, scale=SCALE, similarity_fct=scores))
    embedder, width = recipe.embedder(), max(map(len, lists.passages))
    asked, read = embedder.prefix("query"), embedder.prefix("document")
    columns: Columns = {"query": [asked + query for query in lists.queries],
                        "positive": [read + row[0] for row in lists.passages]}
    for i in range(1, width):  # a question with fewer negatives than others repeats some
        columns[f"negative_{i}"] = [read + row[1 + (i - 1) % (len(row) - 1)] for row in lists.passages]
    return run(MultiVectorEncoderTrainer, EncoderArguments, parts.model, columns, loss, recipe, folder, mark, watch,
               max_length={"query": recipe.query_length, "document": recipe.max_length})


def check(recipe: EncoderRecipe) -> None:
    """Raise MemlabError for what keeps a training from starting, before any example is made."""
    load_libraries()
    training_device(recipe)
    if is_colbert(recipe.base_folder()):
        raise MemlabError("is a ColBERT model: an update holds changes of the transformer alone, and neither its "
                          "projection nor its prefixes", where=f"base={recipe.base}",
                          fix="a base without a projection, such as a sentence encoder or bge-m3")
    recipe.embedder()  # raises MemlabError for an update of other weights
    width, positions = token_width(recipe.base_folder()), _positions(recipe.base_folder())
    if width is not None and recipe.dimensions is not None and recipe.dimensions > width:
        raise MemlabError(f"dimensions={recipe.dimensions}, and the base has {width} numbers a token",
                          fix=f"at most {width}")
    if positions is not None and max(recipe.max_length, recipe.query_length) > positions:
        raise MemlabError(f"the base reads {positions} tokens", where="max_length, query_length",
                          fix=f"at most {positions}")


def _positions(folder: Path) -> int | None:
    """Return the tokens that a base can read; None if its configuration does not say."""
    config = AutoConfig.from_pretrained(str(folder))
    positions = getattr(config, "max_position_embeddings", None)
    if positions is None:
        return None
    return int(positions) - (config.pad_token_id + 1 if "roberta" in config.model_type else 0)


def _weights(transformer: Transformer) -> dict[str, Floats]:
    """Return a copy of the transformer's weights, by their names."""
    named = transformer.auto_model.named_parameters()
    return {name: weight.detach().cpu().numpy().copy() for name, weight in named}


def update_of(parts: EncoderParts, rank: int) -> dict[str, Floats]:
    """Return the update of a trained model against its base, with its map (dimensions, width) if it has one."""
    update = low_rank(parts.before, _weights(parts.transformer), rank)
    if parts.projection is not None:
        update[PROJECTION] = parts.projection.linear.weight.detach().cpu().numpy().astype(np.float16)
    return update


def save(parts: EncoderParts, base: Path, folder: Path) -> None:
    """Write the base with the trained weights, as sentence-transformers reads it."""
    whole: Any = SentenceTransformer(str(base), device="cpu", model_kwargs={"dtype": torch.float32})
    whole[0].auto_model.load_state_dict(parts.transformer.auto_model.state_dict())
    whole.save_pretrained(str(folder), create_model_card=False)
    if (base / M3_HEAD).is_file():
        shutil.copy(base / M3_HEAD, folder)
