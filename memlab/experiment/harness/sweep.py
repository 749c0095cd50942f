"""The arms of a command line or of a script: composed, named and constructed before anything runs."""

from __future__ import annotations

import json
import re
import shlex
from collections import Counter
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

from hydra.core.override_parser.types import Override
from omegaconf import DictConfig, ListConfig, OmegaConf
from pydantic import ValidationError

from memlab.data.dataset import Dataset
from memlab.evaluate.contrast import Contrast
from memlab.evaluate.curves import NAMES, is_curve
from memlab.experiment.config import ablation
from memlab.experiment.config.choices import ARM
from memlab.experiment.config.comments import slots_with
from memlab.experiment.config.compose import ArmConfig, compose
from memlab.experiment.config.instantiate import options, part, resolve_plain
from memlab.experiment.config.overrides import FOLDER, RUN_SETTINGS, Overrides, groups, jobs, parse_all
from memlab.experiment.config.plugins import one_line
from memlab.experiment.config.unread import PLACES_OF_WORK, unread, within
from memlab.experiment.harness.arm import Arm, has_finished, refusal
from memlab.experiment.harness.own_data import leave_untracked
from memlab.pipeline.pipeline import Pipeline
from memlab.pipeline.slots import SLOTS
from memlab.pipeline.stage import spec, spec_digest
from memlab.store import Store
from memlab.support.arguments import Place, check_arguments
from memlab.support.errors import Faults, MemlabError, MissingFiles, did_you_mean
from memlab.support.machine import no_collection
from memlab.support.paths import path_refusal
from memlab.support.redaction import redact, redact_tree

PLACES = {**{slot.name: slot.config for slot in SLOTS}, "tokens": "read.tokens"}
"""Pipeline field -> place of its configuration."""

PARTS = (*PLACES.values(), "data", "track", *(setting.name for setting in RUN_SETTINGS))
"""Places of the configuration that an arm is made of."""

NOT_IN_NAMES = (
    *(setting.name for setting in RUN_SETTINGS if not setting.in_name), "data", "track", "exp", "hydra", "attribute",
    *PLACES_OF_WORK)
"""Overrides that say where and on what an arm runs, not how: the name of a single arm leaves them out."""

IN_FOLDER = ("data.grow", "data.pool")
"""Overrides that the data set's name tells: arms of several sizes have one name, and a folder for each size."""

OF_RUNS = ("name", "contrasts", "plan", "out", "shards", "track", "judge", "judge_chat", "attribute", "hydra")
"""Places that say how arms are run, judged and reported: a command that runs none does not read them."""

MOST_SHARDS = 10_000
"""Parts of each arm; each is a job."""

MOST_CONTRASTS = 3
"""Every further declared contrast costs the others power."""

MOST_CURVES = 20
"""Where all contrasts compare whole curves, a rule each: one family, with one correction for all of them."""


@dataclass(frozen=True)
class Sweep:
    """The arms and settings of one command line."""

    arms: list[Arm]
    contrasts: list[Contrast]
    track: Any
    settings: DictConfig
    left_out: dict[str, str]
    """Name of an ablation that is not run, or claim of a contrast that is not tested -> why."""
    launcher: Any = None
    """One of memlab.experiment.cluster; None for this process."""
    unready: dict[str, str] = field(default_factory=dict)
    """Name of an arm of a plan -> why it cannot run here: the files of a model are missing."""


def command_line(arguments: Sequence[str], multirun: bool = False) -> str:
    """Return the command line of these arguments, quoted for a shell, with keys redacted.

    >>> command_line(["data=locomo", "data.path=my file.json", "chat.url=https://me:secret@host/v1"])
    "memlab run data=locomo 'data.path=my file.json' chat.url=https://***@host/v1"
    """
    return redact(f"memlab run {'-m ' * multirun}{shlex.join(arguments)}".strip())


@no_collection()
def read(arguments: Sequence[str], multirun: bool = False, without: Sequence[str] = ()) -> Sweep:
    """Compose every arm of a command line and construct its objects; raise Faults with all that is wrong.

    ``without`` are the places of the configuration that the command does not read; arguments that set them are faults.
    """
    arguments = list(arguments)
    configs, faults = compose(arguments, multirun)
    if configs is None:
        raise Faults(faults)
    leave_untracked(configs)
    arms, left_out, command = list[Arm](), dict[str, str](), command_line(arguments, multirun)
    for one in configs.arms:
        try:
            arms.append(replace(arm_of(one, configs.swept), command=command))
        except Faults as error:
            if one.swapped:  # a part that cannot stand where the others are
                left_out[str(one.config.ablate)] = error.faults[0]
            else:
                faults += [fault for fault in error.faults if fault not in faults]
    faults += unread(arguments, configs, PARTS, without)
    base = configs.base
    track = part(base, "track", faults)
    ours = str(base.hydra.launcher._target_).startswith("memlab.")
    launcher = part(base, "hydra.launcher", faults) if ours else None
    contrasts = _contrasts(base, faults)
    shards = base.shards if type(base.shards) is int else 1  # another type is named above
    if not 1 <= shards <= MOST_SHARDS:
        faults.append(f"shards: {shards:,} parts, the limit is {MOST_SHARDS:,}; 1 is the whole, 8 are eight jobs")
    elif shards > 1:
        faults += dict.fromkeys(f"shards: {why}" for arm in arms if (why := refusal(arm.pipeline)))
    unready = {} if faults else _without_files(arms, faults)
    if not base.plan:
        faults += dict.fromkeys(unready.values())
    if not faults:
        unchanged = _find_unchanged([arm for arm in arms if arm.name not in unready])
        left_out |= unchanged
        arms = [arm for arm in arms if arm.name not in unchanged]
        faults += _duplicates(arms, unready)
    if not faults and "plan" not in without:
        omitted = _omissions(contrasts, arms, {*left_out}, base, faults)
        left_out |= {contrasts[i].claim: "contrasts of arms that these arguments leave out" for i in omitted}
        kept = [i for i in range(len(contrasts)) if i not in omitted]
        contrasts = [contrasts[i] for i in kept]
        if omitted:
            arms = [replace(arm, settings={**arm.settings, "contrasts": [arm.settings["contrasts"][i] for i in kept]})
                    for arm in arms]
    if faults:
        raise Faults(faults)
    return Sweep(arms, contrasts, track, base, left_out, launcher, unready)


def _without_files(arms: list[Arm], faults: list[str]) -> dict[str, str]:
    """Return name -> why for the arms whose models are not on this machine; add files that cannot be read to faults."""
    missing: dict[str, str] = {}
    for arm in arms:
        try:
            arm.digest()
        except MissingFiles as error:
            missing[arm.name] = str(error)
        except MemlabError as error:
            faults += [str(error)] if str(error) not in faults else []
        except Exception as error:
            if not (foreign := arm.plugins()):
                raise
            faults.append(f"{arm.name}: the plug-in {' or '.join(foreign)} fails: {one_line(error)}")
    return missing


def _contrasts(base: DictConfig, faults: list[str]) -> list[Contrast]:
    contrasts: list[Contrast] = []
    given = base.contrasts
    listed: Any = OmegaConf.to_container(given, resolve=True) if isinstance(given, ListConfig) else given or []
    if not isinstance(listed, list):
        faults.append(f"contrasts: expected a list, given {str(listed)!r:.60}")
        return []
    for i, fields in enumerate(listed):
        try:
            contrasts.append(Contrast(**fields))
        except MemlabError as error:
            faults.append(f"contrasts[{i}]: {error}")
        except TypeError:
            faults.append(f"contrasts[{i}]: expected arm, comparator, metric and direction, given {fields}")
    most = MOST_CURVES if all(is_curve(contrast.metric) for contrast in contrasts) else MOST_CONTRASTS
    if len(contrasts) > most:
        faults.append(f"contrasts: {len(contrasts)} are declared, at most {most} may be; what else is "
                      "compared is shown as exploratory")
    return contrasts


def _omissions(contrasts: Sequence[Contrast], arms: Sequence[Arm], left_out: set[str], base: DictConfig,
             faults: list[str]) -> set[int]:
    """Return the numbers of the contrasts of arms that neither these arguments run nor an earlier line has finished.

    Where the experiment defines no such arm either, that is a fault.
    """
    run = {arm.name for arm in arms}
    known = run | {f"{arm.name}.twin" for arm in arms if arm.adaptive()}
    lacking = {(i, name) for i, one in enumerate(contrasts) for name in (one.arm, one.against)
               if name not in known and not (name in NAMES and is_curve(one.metric))
               and not any(has_finished(name, folder) for folder in {arm.arms_folder() for arm in arms})}
    faults += [f"contrasts[{i}]: there is no arm '{name}' here; {did_you_mean(name, known)}"
               for i, name in sorted(lacking) if (arm := name.removesuffix(".twin")) in run
               or not (arm in left_out or experiment_arms(base).fullmatch(arm))]
    return {i for i, _ in lacking}


def experiment_arms(base: DictConfig) -> re.Pattern[str]:
    """Return a pattern of the names that arms of the chosen experiment may have.

    They are of the values that it sweeps, and of all techniques of a slot that it sweeps: some need a model, and are
    chosen by a line.
    """
    group = f"{ARM}/{OmegaConf.select(base, 'hydra.runtime.choices.exp')}"
    swept = base.hydra.sweeper.params or ({group: ",".join(options(group))} if group in groups() else {})
    parts: list[str] = []
    for key, values in ((key.lstrip("+"), values) for key, values in swept.items()):
        names = {arm_name(base, job, [key]) for job in jobs(parse_all([f"{key}={values}"]))}
        names |= {*options(group if key == ARM else key)}
        parts += [f"({'|'.join(map(re.escape, names))})"] * (key not in IN_FOLDER)
    return re.compile(r"\+".join(parts))


def _find_unchanged(arms: list[Arm]) -> dict[str, str]:
    """Return ablation -> why, for those that change no setting: the system lacks that part, or has the plain one."""
    bases = {arm.digest(): arm.name for arm in reversed(arms) if arm.name in ("whole", ablation.PLAIN)}
    return {arm.name: f"the same settings as {bases[arm.digest()]}" for arm in arms
            if arm.name.startswith(ablation.SWAPPED) and arm.digest() in bases}


def _duplicates(arms: list[Arm], unready: Container[str] = ()) -> list[str]:
    """Return faults for arms of one name, or of one configuration: a report could not distinguish them."""
    ready = [arm for arm in arms if arm.name not in unready]
    digests = Counter(arm.digest() for arm in ready)
    names = Counter((arm.arms_folder(), arm.name) for arm in arms)
    faults = [f"{n} arms of this sweep are named '{name}'; leave name out" for (_, name), n in names.items() if n > 1]
    # two ablations of a system of two parts are one configuration with two comparators
    same = [arm.name for arm in ready if digests[arm.digest()] > 1 and not arm.name.startswith(ablation.SWAPPED)]
    return [*faults, f"arms of this sweep are the same configuration: {', '.join(same)}"] if same else faults


def build(cfg: DictConfig) -> tuple[Pipeline, Dataset]:
    """Construct an arm's pipeline and data set; raise Faults with everything that is wrong."""
    faults: list[str] = []
    stages = {slot: part(cfg, place, faults) for slot, place in PLACES.items()}
    dataset = part(cfg, "data", faults)
    if dataset is not None and not isinstance(dataset, Dataset):
        faults.append(f"data: {type(dataset).__name__} is not a data set")
    if not faults:
        try:
            return Pipeline(**stages), dataset
        except ValidationError as error:
            faults.extend(f"{PLACES.get(str((e['loc'] or ('',))[0]), 'pipeline')}: "
                          f"{e['msg'].removeprefix('Value error, ')}" for e in error.errors())
    raise Faults(dict.fromkeys(faults))  # a part that several slots borrow is faulty once


def arm_of(composed: ArmConfig, swept: Sequence[str] = ()) -> Arm:
    """Construct the arm that a composed configuration describes; raise Faults with all that is wrong."""
    config = composed.config
    faults = [f"{setting.name}: {config[setting.name]!r} is not {setting.expected}" for setting in RUN_SETTINGS
              if setting.expected and type(config[setting.name]) not in setting.types]
    faults += [f"{setting.name}: {refusal}" for setting in RUN_SETTINGS if setting.expected == FOLDER
               and isinstance(config[setting.name], str) and (refusal := path_refusal(config[setting.name]))]
    try:
        pipeline, dataset = build(config)
    except Faults as error:
        raise Faults([*faults, *error.faults]) from None
    if faults:
        raise Faults(faults)
    experiment = OmegaConf.select(config, "hydra.runtime.choices.exp") or "single"
    left_out = {"hydra", *(setting.name for setting in RUN_SETTINGS if not setting.recorded)}
    settings = resolve_plain(config, left_out)
    safe = redact_tree(settings)
    return Arm(name=redact(str(config.name or arm_name(config, composed.overrides, swept))),
               experiment=redact(str(experiment)), pipeline=pipeline, dataset=dataset, out=Path(config.out),
               seed=config.seed, overrides=tuple(map(redact, composed.overrides)), settings=safe,
               has_secret=safe != settings)


def arm_name(config: DictConfig, overrides: Overrides, swept: Sequence[str]) -> str:
    """Name an arm by the values that were swept, or, run alone, by what its overrides change of the defaults.

    A setting is named by the end of its place, as much of it as no other setting of the arm ends with. A technique
    that is run alone is named with its slot if another slot has one of that name.
    """
    ends = Counter(place[start:] for place in _settings(OmegaConf.to_container(config, resolve=False))
                   for start in range(len(place)))
    parts: list[str] = []
    for override in overrides.values():
        key, value = override.key_or_group, _value(config, override)
        if key in IN_FOLDER or (key not in swept if swept else within(key, NOT_IN_NAMES)):
            continue
        if key in groups() or key in (ARM, "ablate"):
            several = not swept and (value == "none" or (key != "system" and len(slots_with(value)) > 1))
            parts.append(f"{re.split('[./]', key)[-1]}={value}" if several else value.rsplit("/", 1)[-1])
        else:
            place = key.split(".")
            end = next((n for n in range(1, len(place)) if ends[tuple(place[-n:])] == 1), len(place))
            parts.append(f"{'.'.join(place[-end:])}={value}")
    return "+".join(parts) or "default"


def _settings(node: Any, place: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the places of all settings of a configuration of plain values, but for Hydra's."""
    for name, value in node.items() if isinstance(node, dict) else ():
        if name != "hydra" or place:
            yield (*place, str(name))
            yield from _settings(value, (*place, str(name)))


def _value(config: DictConfig, override: Override) -> str:
    """Return the value of an override for a name: that of the configuration, lists and mappings as they are written."""
    value: Any = override.value()
    if override.is_delete() or "${" in str(value):
        value = OmegaConf.select(config, override.key_or_group)
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    if isinstance(value, dict | list):
        return (override.input_line or "").partition("=")[2]
    # an ablation's name is its value, plain+PART: the comparator of an arm is found by it
    quoted = isinstance(value, str) and {"+", "="} & {*value} and override.key_or_group != "ablate"
    return json.dumps(value, ensure_ascii=False) if quoted else str(value)


def read_one(arguments: Sequence[str], without: Sequence[str] = ()) -> tuple[Arm, DictConfig]:
    """Return the one arm that arguments describe, and the settings of its run.

    Raises Faults with all that is wrong, and for several arms.
    """
    sweep = read(arguments, without=without)
    # an experiment may sweep settings of the data, which a pipeline alone does not read
    arms = [*{spec_digest(spec(a.pipeline)): a for a in sweep.arms}.values()] if "data" in without else sweep.arms
    if len(arms) != 1:
        raise Faults([f"one configuration is needed, these arguments describe {len(arms)}; give one value per slot"])
    return arms[0], sweep.settings


@check_arguments
def preset(*arguments: Annotated[str, "give words such as 'rank.select.k=5'"]) -> Pipeline:
    """Return the pipeline that arguments of ``memlab run`` describe; raise Faults with all that is wrong with them.

    >>> preset("system=plain", "rank.select.k=5").select.k
    5
    """
    return read_one(arguments, (*OF_RUNS, "data", "store"))[0].pipeline


@check_arguments
def run_pipeline(pipeline: Pipeline, dataset: Dataset, name: str, *, out: Place = "runs", experiment: str = "python",
                 store: Store | None = None, seed: int = 0) -> Path:
    """Run a pipeline on a data set as an arm; return its run folder, ``OUT/EXPERIMENT/DATA/NAME-HASH``.

    A finished arm is not run again. An adaptive selection is followed by its token-matched baseline, ``NAME.twin``.

    Args:
        pipeline: Stages, such as ``Pipeline(select=Fixed(k=5))`` or ``preset("system=best")``.
        dataset: A data set, such as ``Synthetic(lives=4)``.
        name: Name of the arm in reports and comparisons.
        out: Folder of all runs.
        experiment: Folder below it; arms of one experiment are compared in one report.
        store: Cache of vectors, scores and replies; None is ``$MEMLAB_HOME/store``.
        seed: Seed of the token-matched baseline.

    Raises:
        MemlabError: The data cannot be read, or a stage fails.
    """
    return Arm(name, experiment, pipeline, dataset, Path(out), seed).run(store or Store())
