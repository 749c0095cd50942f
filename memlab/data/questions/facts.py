"""Facts that a turn states, as questions with their answers, by the rules of ``memlab.data.questions.rules``. English
only.

A text is cut into sentences and clauses, and the first form that fits a clause gives its question; else its parts do
(``memlab.data.questions.clauses``). People with names are also asked about the things that they speak of: "The launch
moved to 12 May" gives "When is the launch?", the same question as for the date before it.

What would not make sense weeks later without its context is refused: pronouns without a noun, "this" and "there", vague
things, relative dates in a question. Questions, conditions, lists, orders to write a text, and clauses that are not
understood to their end give nothing; of things also doubts and negations.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from memlab.data.questions import rules
from memlab.data.questions.clauses import StatedFact, events

LONGEST = 4000
"""Characters of a turn that is read; a longer one was pasted or generated, and gives nothing."""

LONGEST_SENTENCE = 400
"""Characters of a sentence that is read, which bounds the time for a text by its length."""

WEIGHT = 3.5
"""Certainty of what a form finds."""


def facts_of(text: str, speaker: str | None = None, *, assistant: bool = False) -> list[StatedFact]:
    """Return what a turn states, in the order of the text: each question once, and one for an answer of a sentence.

    Args:
        text: the turn's text.
        speaker: the name to ask by; None asks about "I" and "my".
        assistant: whether only that is read which the turn says the user mentioned; it is asked about as by that user.

    >>> [(fact.question, fact.answer) for fact in facts_of("I adopted a beagle called Rex in May.")]
    [('What is my beagle called?', 'Rex'), ('When did I adopt a beagle?', 'in May')]
    >>> [(fact.question, fact.answer) for fact in facts_of("Heads up: the launch moved to 12 May.", "Ana")]
    [('When is the launch?', '12 May')]
    """
    text, speaker = _CODE.sub(" ", text.translate(_QUOTES)), None if assistant else speaker
    if len(text) > LONGEST or _ORDERS.match(text[:60]):
        return []
    spans, found = " ".join(text.split()), dict[str, StatedFact]()
    for sentence in _mentions(text) if assistant else _sentences(text):
        told = set[str]()
        for fact in _of_sentence(sentence, speaker):
            if _sound(fact) and fact.answer not in told and (fact.answer in spans or fact.answer == speaker):
                told.add(fact.answer)
                question = fact.question if fact.kind in _OF_THINGS else _about(fact.question, speaker)
                found.setdefault(question, replace(fact, question=question, weight=fact.weight + _specific(fact),
                                                   sentence=sentence))
    return list(found.values())


_OF_THINGS = frozenset(form.kind for form in rules.TEAM)
_QUOTES = {0x2018: "'", 0x2019: "'", 0x201c: '"', 0x201d: '"'}
_CODE = re.compile(r"```.*?(?:```|\Z)|https?://\S+", re.DOTALL)
_ORDERS = rules.pattern(r"\W*(please |can you |could you |now )?{orders}\b", re.IGNORECASE)
_LISTED = rules.pattern(r"\s*(?![*_]*(?i:{labels})[*_]*: )([-*•#>|`]|\x28|\d{1,2}[.)] |\w{1,20}: |[A-Z ]{8,})")
_SENTENCE = re.compile(r"(?<=[.!?;])(?<!\bSt\.)(?<!\b[DM]r\.)(?<!\bM[rs]s\.)(?<!\bvs\.)[\"')]* +| [-–—]+ |\.\.\.+|"
                       r"\((?=I|my)|\)|: ")
_ASKS = re.compile(
    r"(?:(?:and|so|but|also|by the way|do you|oh),? )?(?:can|could|do|does|did|what|what's|how|how's|is|are|which|any|"
    r"would|should|have|has|who|when|where|why|will|was|were|got|know|if|given|based)\b", re.IGNORECASE)
_MENTIONED = re.compile(r"\b[Yy]ou(?: also|'ve| have|'d| had)?(?: also)? (?:mentioned|said|told me|shared|noted)"
                        r"(?: earlier| before| previously)?(?: that|,)? (?=you|your)")


def _sentences(text: str) -> Iterator[str]:
    for line in text.split("\n"):
        if not _LISTED.match(line):
            for sentence in _SENTENCE.split(" ".join(line.split())):
                if len(sentence) < LONGEST_SENTENCE and not (sentence.endswith("?") and _ASKS.match(sentence)):
                    yield sentence


def _mentions(text: str) -> Iterator[str]:
    """Yield what an assistant says that the user mentioned, as the user would say it."""
    for sentence in _sentences(text):
        if said := _MENTIONED.search(sentence):
            clause = re.sub(r"\b[Yy]our\b", "my", sentence[said.end():])
            yield re.sub(r"\b[Yy]ou\b", "I", re.sub(r"\b[Yy]ou(?:'re| are)\b", "I'm", clause))


_SUBJECT = r"(?:I|I'm|I've|I'd|I'll|we|we've|we're|my|it|he|she|they|it's|there|is|was|are)\b"
_CLAUSE = re.compile(
    r", +(?!(?:19|20)\d\d\b|(?:at )?(?:\d{1,2}(?::\d\d)? ?[ap]m|\d{1,2}:\d\d|noon)\b)|"
    rf"(?<! ) +(?=(?:and|but|so|because|since|as|while|when|after|before|which|who|whom|where|although|though|if|until|"
    rf"unless|whether|whenever|that) {_SUBJECT})|"
    r"(?<! ) +and (?=(?:even |just |also |then |recently )?[a-z]{2,14}(?:ed|ght|ew|old) )")
_LEAD = rules.pattern(r"({leads}( that)?|@[\w.-]+(?=,? (the|our|we|I)\b)|"
                      r"my [a-z-]{2,16}( [A-Z][a-z]{1,15})? and(?= I )),? +", re.IGNORECASE)
_REFUSED = re.compile(r"(?:if|unless|whether|whenever|until|where|which|who|whom|that|like|than|would|could|should|"
                      r"might|not|never)\b", re.IGNORECASE)
_UNSURE = rules.pattern(r"\b{doubts}\b|n't\b|\bwould\b|\?", re.IGNORECASE)
_TIMED = rules.pattern("<time {fixed}|{relative}>,?( |$)", re.IGNORECASE)
_OTHER_SUBJECT = re.compile(r"(?:he|she|they|it|you|the|there)\b")
_NO_SUBJECT = re.compile(r"(?:even |just |also |then |recently )?(?P<past>[a-z]+) ")
_WHO = rules.pattern("{who}")
_BEGUN_BY_VERB = re.compile(r"(?:Just )?(?P<past>[A-Z]?[a-z]+) ")
_RELATIVE_CLAUSE = rules.pattern(r"\b<object (an?|my|the|some) {nouns}>( that| which)? (I|we)"
                                 "('ve|'d| had)? (just |recently |actually |finally )?<past {pasts}>(?= )")


def _of_sentence(sentence: str, speaker: str | None) -> Iterator[StatedFact]:
    """Yield the facts of a sentence, those of the speaker in the first person; a name also allows those of things."""
    for match in _RELATIVE_CLAUSE.finditer(sentence):   # "the vase that I bought at ...": "I bought the vase at ..."
        rest = _CLAUSE.split(sentence[match.end():].rstrip("?!. "), maxsplit=1)[0].split(" to ")[0]
        yield from events(f"I {match['past']} {match['object']}{rest}", "", speaker is not None)
    if (verb := _BEGUN_BY_VERB.match(sentence)) and rules.BASE.get(past := verb["past"].lower(), past) != past:
        sentence = f"I {past}{sentence[verb.end('past'):]}"
    time, subject = "", "I"
    for clause in map(str.strip, _CLAUSE.split(sentence.rstrip("?!. "))):
        sure = not _UNSURE.search(clause)
        for _ in range(4):
            if lead := _LEAD.match(clause):
                clause = clause[lead.end():]
        if _REFUSED.match(clause):
            break
        if timed := _TIMED.match(clause):
            time, clause = timed["time"], clause[timed.end():]
        if not clause:
            continue
        if clause.startswith(("My ", "We ", "We'", "It ", "Our ", "The ")):
            clause = clause[0].lower() + clause[1:]
        if speaker is not None and "?" not in sentence and (first := rules.first_form(rules.TEAM, clause)):
            yield from [fact] if sure and (fact := _of_thing(*first, speaker)) else ()
            continue
        if clause.startswith("our ") and speaker is None:
            clause = f"my {clause[4:]}"
        if who := _WHO.match(clause):
            subject = who[0]
        elif _OTHER_SUBJECT.match(clause):
            subject = ""
        elif subject and (verb := _NO_SUBJECT.match(clause)) and verb["past"] in rules.BASE:
            clause = f"{subject} {clause}"
        if first := rules.first_form(rules.PERSON, clause):
            yield from _of_person(*first, speaker is not None)
        else:
            yield from events(clause, time, speaker is not None)
        time = ""
    for match in rules.NAMES.finditer(sentence):
        if match["answer"] not in rules.words("no_name"):
            yield StatedFact(f"What is my {match['x']} called?", match["answer"], "name", WEIGHT)


_LIVING = rules.pattern("{kin}|{pets}|siblings|chicken|hen|plant|bike|car|guitar|camera|bicycle")


def _of_person(form: rules.Form, match: re.Match[str], named: bool) -> Iterator[StatedFact]:
    """Yield what a form says of the speaker, unless it says too little."""
    parts = {"x": "", "past": ""} | {name: part or "" for name, part in match.groupdict().items()}
    thing, question = parts["x"], form.question
    empty = form.kind in rules.EMPTY and rules.EMPTY[form.kind].fullmatch(thing or parts["answer"])
    counted = question.startswith("How many") and " " not in thing and not _LIVING.match(thing)
    if not (empty or counted or thing.endswith("'s")):
        parts |= {"am": "is", "do": "does", "have": "has"} if named else {"am": "am", "do": "do", "have": "have"}
        parts |= {"past": rules.BASE.get(parts["past"], "")}
        yield StatedFact(question.format(**parts), parts["answer"], form.kind, WEIGHT)


def _of_thing(form: rules.Form, match: re.Match[str], speaker: str) -> StatedFact | None:
    """Return what a form says of a thing; None if it does not say which thing, or who."""
    parts = {"x": "", "verb": "", "who": ""} | {name: part or "" for name, part in match.groupdict().items()}
    thing, answer, owned, decided = parts["x"], parts["answer"], form.kind == "owner", form.kind == "decision"
    said = thing if decided else _is_specific(thing, form.kind)
    if "{x}" in form.question and not said or owned and answer != "I" and answer.split()[0] in rules.words("nobody"):
        return None
    many = _is_plural(thing) and not owned
    question = form.question.format(**parts | {
        "x": thing if owned or decided else _inside(thing, many), "be": "are" if many else "is",
        "does": "do" if many else "does", "who": speaker if parts["who"] in ("I", "me") else parts["who"],
        "verb": rules.OWNS.get(parts["verb"], parts["verb"]) if owned else parts["verb"]})
    return StatedFact(question, speaker if answer == "I" else answer.removeprefix("@"), form.kind, WEIGHT)


_COMMON = frozenset(rules.words("common"))
_LOOSE = ("owner", "price")   # kinds of which one word says enough: "billing", "butter"


def _is_specific(thing: str, kind: str) -> bool:
    """Return whether a noun phrase says which thing is meant."""
    content = [word for word in re.findall(r"[\w'-]+", thing) if word.lower() not in rules.VAGUE - _COMMON]
    if not content or content[0].partition("'")[0] in rules.words("nobody"):
        return False
    alone = kind in _LOOSE or thing.lower().startswith(("the ", "our ")) or content[0].isupper() or _is_plural(thing)
    return (len(content) > 1 or alone) and not _COMMON.issuperset(map(str.lower, content))


def _is_plural(thing: str) -> bool:
    return bool(re.search(r"[^su'A-Z]s$", re.split(" (?:for|of|with|to|about|in) ", thing)[0]))


def _inside(thing: str, many: bool) -> str:
    """Return a noun phrase, of one thing or ``many``, as a question has it.

    >>> _inside("Demo with Acme", False), _inside("Deploys", True), _inside("Ann's go-live", False)
    ('the demo with Acme', 'deploys', "Ann's go-live")
    """
    first, _, rest = thing.partition(" ")
    if first.lower() in ("the", "our", "a", "an"):
        return f"{first.lower()} {rest}"
    if "'" in first or first.istitle() and not rest[:1].islower() and not many:
        return thing
    first = first if first[1:2].isupper() else first.lower()
    return first if many and not rest else f"the {first} {rest}".rstrip()


_FORM = re.compile(r"^(?:What is the name of|How long (?:did|does) it|How \w+|What|Who takes care of)|that (?=I|my)")


def _sound(fact: StatedFact) -> bool:
    """Return whether a question stands without its context and does not hold its answer."""
    asked, told = (set(re.findall(r"[\w'-]+", one.lower())) for one in (fact.question, fact.answer))
    dangling = rules.DANGLING.search(_FORM.sub("", fact.question)) or rules.DANGLING.fullmatch(fact.answer)
    return not dangling and not told - {*rules.words("small")} <= asked and len(fact.question) <= 160


def _specific(fact: StatedFact) -> float:
    """Return up to 1.5 for the content words of a question; names count more."""
    content = [word for word in fact.question.rstrip("?").split()[3:] if word.lower() not in rules.VAGUE]
    return min(1.5, .2 * len(content) + .3 * any(word[0].isupper() for word in content))


def _about(question: str, speaker: str | None) -> str:
    """Return the question in the first person, or by the speaker's name: "their" if the name stands in it already."""
    question = re.sub(r"\bour\b", "my", re.sub(r"\bus\b", "me", re.sub(r"\bwe\b", "I", question)))
    if speaker is None:
        return question
    whose = "their" if re.search(r"\bI\b", question) else f"{speaker}'s"
    named = {"my": whose, "I": speaker, "me": speaker}
    return re.sub(r"\b(?:my|I|me)\b(?!')", lambda match: named[match[0]], question)
