"""Relevance scenarios, three cases each: Gimli's eight with its own expectations, and memlab's four."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Piece:
    """One relevant memory: said by the user in a chat or, with ``file``, a paragraph of a memory file.

    ``days`` counts back from the day of the question. Pieces of one file keep their order and are far apart in it.
    """

    name: str
    text: str
    days: int
    file: str | None = None
    evidence: bool = True


@dataclass(frozen=True)
class Expect:
    """An expectation about the units that contain some ``pieces``; reported, never required.

    * ``rank``: the unit of the piece is among the first ``bound``;
    * ``score``: its score is above ``bound``;
    * ``vector``: the vector part of its score is larger than the keyword part;
    * ``text``: its keyword score is above ``bound``;
    * ``near``: the scores of two pieces are less than ``bound`` apart;
    * ``before``: the first piece ranks before the second;
    * ``returned``: every piece is returned (selected);
    * ``nothing``: nothing is returned.
    """

    kind: Literal["rank", "score", "vector", "text", "near", "before", "returned", "nothing"]
    pieces: tuple[str, ...] = ()
    bound: float = 0.0

    @property
    def label(self) -> str:
        """The expectation in words.

        >>> Expect("rank", ("it",), 3).label, Expect("before", ("new", "old")).label
        ('in the top 3', 'new before old')
        """
        pieces = " and ".join(self.pieces) if len(self.pieces) <= 2 else "all"
        return {"rank": f"in the top {self.bound:g}", "score": f"score > {self.bound:g}",
                "vector": "vector share largest", "text": f"text score > {self.bound:g}",
                "near": f"scores within {self.bound:g}", "before": " before ".join(self.pieces),
                "returned": f"{pieces} returned", "nothing": "nothing returned"}[self.kind]


@dataclass(frozen=True)
class Scenario:
    """One case of a scenario: ``category`` names the scenario, ``case`` the case within it.

    Decoys resemble the pieces without answering the question; the user says them on random days. Without a piece of
    evidence the right answer is to decline.
    """

    category: str
    case: str
    question: str
    answer: str
    pieces: tuple[Piece, ...] = ()
    decoys: tuple[str, ...] = ()
    expect: tuple[Expect, ...] = ()

    @property
    def name(self) -> str:
        """The question's own id, ``category:case``."""
        return f"{self.category}:{self.case}"


_EXACT = (Expect("rank", ("it",), 3), Expect("score", ("it",), 0.8))
_SAME = (Expect("rank", ("it",), 5), Expect("score", ("it",), 0.6), Expect("vector", ("it",)))
_TERM = (Expect("rank", ("it",), 3), Expect("text", ("it",), 0.5))
_CHUNKS = (Expect("returned", ("first", "second")), Expect("near", ("first", "second"), 0.2))
_NEWER = (Expect("before", ("newer", "older")),)
_SOURCE = (Expect("before", ("file", "chat")),)
_BOTH = (Expect("returned", ("first", "second")),)
_NONE = (Expect("nothing"),)


def _one(category: str, expect: tuple[Expect, ...], case: str, question: str, answer: str, text: str, days: int,
         *decoys: str, file: str | None = None) -> Scenario:
    return Scenario(category, case, question, answer, (Piece("it", text, days, file),), decoys, expect)


def _chunks(case: str, question: str, answer: str, file: str, first: str, second: str) -> Scenario:
    pieces = (Piece("first", first, 50, file), Piece("second", second, 50, file))
    return Scenario("cross-chunk", case, question, answer, pieces, (), _CHUNKS)


def _newer(case: str, question: str, answer: str, older: str, newer: str, decoy: str) -> Scenario:
    pieces = (Piece("older", older, 130, evidence=False), Piece("newer", newer, 12))
    return Scenario("temporal-disambiguation", case, question, answer, pieces, (decoy,), _NEWER)


def _source(case: str, question: str, answer: str, path: str, file: str, chat: str) -> Scenario:
    # the file is the older one, so that a preference for newer memories does not look like one for files
    pieces = (Piece("file", file, 60, path), Piece("chat", chat, 9, evidence=False))
    return Scenario("source-priority", case, question, answer, pieces, (), _SOURCE)


def _both(case: str, question: str, answer: str, first: str, second: str, *decoys: str) -> Scenario:
    pieces = (Piece("first", first, 25), Piece("second", second, 80))
    return Scenario("multi-concept", case, question, answer, pieces, decoys, _BOTH)


def _update(case: str, question: str, answer: str, texts: tuple[str, str, str], decoy: str) -> Scenario:
    """Build a case about a fact that changed twice; only the last version is evidence."""
    names, days = ("first", "second", "now"), (300, 150, 8)
    pieces = tuple(Piece(n, t, d, evidence=n == "now") for n, t, d in zip(names, texts, days))
    expect = (Expect("rank", ("now",), 3), Expect("before", ("now", "second")), Expect("before", ("now", "first")))
    return Scenario("updates", case, question, answer, pieces, (decoy,), expect)


def _count(case: str, question: str, answer: str, texts: tuple[str, ...], *decoys: str) -> Scenario:
    """Build a case about a count over sessions: an answer needs all of them."""
    pieces = tuple(Piece(f"{i + 1}", text, 20 + 31 * i) for i, text in enumerate(texts))
    expect = (Expect("rank", ("1",), 10), Expect("returned", tuple(piece.name for piece in pieces)))
    return Scenario("counting", case, question, answer, pieces, decoys, expect)


def _time(case: str, question: str, answer: str, then: tuple[str, int], later: tuple[str, int],
          earlier: tuple[str, int]) -> Scenario:
    """Build a case about one kind of event on three days; the question, asked on 14 June 2024, names one day."""
    pieces = (Piece("then", *then), Piece("later", *later, evidence=False), Piece("earlier", *earlier, evidence=False))
    expect = (Expect("rank", ("then",), 3), Expect("before", ("then", "later")), Expect("before", ("then", "earlier")))
    return Scenario("time", case, question, answer, pieces, (), expect)


def _abstain(case: str, question: str, *decoys: str) -> Scenario:
    """Build a case that the memories do not answer; only similar facts were said."""
    return Scenario("abstention", case, question, "It was never mentioned.", (), decoys, (Expect("nothing"),))


GIMLI: tuple[Scenario, ...] = (
    _one("exact-match", _EXACT, "pool", "connection pool of the billing database limited to 40 connections", "40",
         "The connection pool of the billing database is limited to 40 connections.", 33,
         "The connection pool of the archive database is limited to 15 connections.",
         "The billing database is copied to the second site every night.", file="memory/database.md"),
    _one("exact-match", _EXACT, "password", "staging password is rotated every second Tuesday",
         "every second Tuesday at nine", "The staging password is rotated every second Tuesday at nine.", 71,
         "The password of the meeting room screen is on the sticker below it."),
    _one("exact-match", _EXACT, "card", "gym card in the side pocket of the blue backpack",
         "in the side pocket of the blue backpack", "My gym card is in the side pocket of the blue backpack.", 18,
         "My library card is in the drawer below the phone.", "The blue suitcase has a broken wheel."),
    _one("semantic-equivalence", _SAME, "approval", "What sign-off is required before code goes live?",
         "approval by two colleagues", "We deploy to production only after two colleagues have approved the change.",
         90, "The deployment takes eleven minutes on a good day.", file="memory/process.md"),
    _one("semantic-equivalence", _SAME, "holidays", "Where do I usually go on my summer vacation?",
         "to my grandmother's house by the sea", "Each August I stay at my grandmother's place on the coast.", 44,
         "My grandmother is learning to play the cello."),
    _one("semantic-equivalence", _SAME, "crash", "Which component crashes on big attachments?", "the invoice service",
         "The invoice service falls over whenever somebody uploads a huge file.", 27,
         "The fax gateway is switched off at the end of the year."),
    _one("technical-term", _TERM, "error", "ERR_POOL_EXHAUSTED", "a worker did not give its connection back",
         "ERR_POOL_EXHAUSTED means that a worker did not give its connection back.", 63,
         "ERR_DISK_QUOTA means that a build has filled its volume.", file="memory/errors.md"),
    _one("technical-term", _TERM, "command", "kubectl drain", "run it on a node before patching",
         "Run kubectl drain with --ignore-daemonsets on a node before you patch it.", 15,
         "Somebody has to drain the radiators before the winter."),
    _one("technical-term", _TERM, "index", "What was idx_orders_tenant_created for?", "a faster order list",
         "The index idx_orders_tenant_created made the order list twenty times faster.", 105,
         "The index idx_users_email is unique since the last migration."),
    _chunks("incident", "What caused the checkout outage with the gateway certificate, and what prevents it now?",
            "An expired certificate; it is now renewed thirty days ahead.", "memory/incident-0412.md",
            "Incident of 12 April: the checkout was down for 43 minutes because the certificate of the payment gateway "
            "had expired.",
            "So that the certificate of the payment gateway never expires again, the checkout renews it thirty days "
            "ahead and alerts the engineer on call."),
    _chunks("access", "When do new engineers get access to the staging and the production cluster?",
            "Staging on the first day, production after four weeks.", "memory/onboarding.md",
            "New engineers get access to the staging cluster on their first day, through the platform team.",
            "Access to the production cluster follows after four weeks, when the platform team has seen the training "
            "done."),
    _chunks("kitchen", "What is planned for the cabinets and the worktop of the kitchen renovation?",
            "Cabinets in week 32, an oak worktop two weeks later.", "memory/kitchen.md",
            "Kitchen renovation: the cabinets come from Lindqvist and are delivered in week 32.",
            "Kitchen renovation: the worktop is oak and is fitted two weeks after the cabinets."),
    _newer("limit", "What is the API rate limit?", "250 requests a minute", "The API rate limit is 100 requests a "
           "minute.", "The API rate limit is 250 requests a minute.", "The API keys are stored in the vault."),
    _newer("meeting", "When is our team meeting?", "on Thursdays at half past nine", "Our team meeting is on Mondays "
           "at ten.", "Our team meeting is on Thursdays at half past nine.", "The team outing is planned for autumn."),
    _newer("branch", "What is our release branch called?", "release-5", "Our release branch is called release-4.",
           "Our release branch is called release-5.", "The branch office in Lyon has closed."),
    _source("indentation", "What is the indentation in our Python code?", "four spaces", "memory/conventions.md",
            "The indentation in our Python code is four spaces.",
            "The indentation in our Python code is two spaces, I would say."),
    _source("landlord", "What is the emergency number of the landlord?", "555 0142", "memory/contacts.md",
            "The emergency number of the landlord is 555 0142.",
            "The emergency number of the landlord is 555 0124, if I remember it right."),
    _source("database", "Which database did we decide on?", "PostgreSQL", "memory/decisions.md",
            "We decided on PostgreSQL as our only database.",
            "Somebody told me that we decided on MongoDB as our database."),
    Scenario("low-relevance", "saturn", "Which moons of Saturn have an atmosphere?", "It was never mentioned.",
             expect=_NONE),
    Scenario("low-relevance", "patent", "How does one file a patent in Brazil?", "It was never mentioned.",
             expect=_NONE),
    Scenario("low-relevance", "chess", "Who won the chess world championship in 1972?", "It was never mentioned.",
             expect=_NONE),
    _both("webhook", "How often is the payment webhook retried, and how long is the audit log kept?",
          "five times; seven years", "The payment webhook is retried five times, with a growing pause.",
          "The audit log is kept in cold storage for seven years.", "The access log is written in JSON."),
    _both("party", "Where is the birthday party, and what is Emma allergic to?", "in the trampoline hall; peanuts",
          "My daughter Emma is allergic to peanuts.", "The birthday party is going to be in the trampoline hall.",
          "My nephew Paul is afraid of balloons."),
    _both("flags", "How often are feature flags read, and when is the mobile app released?",
          "every thirty seconds; every other Wednesday", "Feature flags are read from the config service every thirty "
          "seconds.", "The mobile app is released every other Wednesday.", "The desktop app is no longer released."),
)

OWN: tuple[Scenario, ...] = (
    _update("home", "Which city do I live in?", "Ghent",
            ("I live in Lisbon, a minute from the river.", "I have moved from Lisbon to Porto for the new job.",
             "Porto was too hot for me: since last weekend I live in Ghent."), "My brother lives in Bergen."),
    _update("manager", "Who is my manager?", "Oksana",
            ("My manager is Carla, who started the team.", "Carla has left us, and Dev is my manager now.",
             "Dev went over to sales; from today on I report to Oksana."), "The manager of the canteen is Ruth."),
    _update("mortgage", "Which mortgage rate does the bank offer me?", "3.6 percent",
            ("The bank offers me a mortgage rate of 4.1 percent.",
             "The bank called: the mortgage rate went down to 3.8 percent.",
             "They have lowered it once more, to 3.6 percent for ten years."),
            "My cousin pays a rate of 2.9 percent on her car."),
    _count("concerts", "How many concerts have I been to?", "5",
           ("I went to a concert of the Frozen Lanterns.", "Saw Amber Falcon live in the old cinema, what a night.",
            "We were in the front row when Quiet Engine played.", "The jazz trio in the church was a concert to "
            "remember.", "My ears still ring from the gig of Paper Kingdom."),
           "My neighbour went to a concert of Iron Willow.", "I could not get tickets for the Velvet Islands."),
    _count("incidents", "How many outages has the search service had?", "4",
           ("The search service was down for ten minutes.", "Search fell over again, the index was corrupt.",
            "Another outage of the search service this morning, a full disk.",
            "Nobody could search anything for an hour, the cluster had lost its quorum."),
           "The phone system was down on Friday.", "The search for a new office goes on."),
    _count("plants", "How many houseplants have I bought?", "5",
           ("I bought a houseplant, a monstera.", "A fern from the market now hangs in my bathroom.",
            "I could not resist the little cactus in the shop window.", "Bought a rubber plant for the hall.",
            "The newest of my houseplants is a peace lily."), "My aunt gave her orchid away."),
    _time("review", "What did we decide in the architecture review two weeks ago?", "to split the monolith by tenant",
          ("In the architecture review we decided to split the monolith by tenant.", 14),
          ("In the architecture review we decided to write the events to a log first.", 2),
          ("In the architecture review we decided to drop the second cache.", 70)),
    _time("dinner", "Where did I have dinner on 3 May?", "at Osteria Nonna",
          ("Had dinner at Osteria Nonna tonight.", 42), ("Had dinner at the Green Lantern tonight.", 21),
          ("Had dinner at Chez Odile tonight.", 100)),
    _time("build", "What broke the build in April?", "a removed dependency",
          ("The build broke today because a dependency had been removed.", 60),
          ("The build broke today because the disk of the runner was full.", 20),
          ("The build broke today because a test relied on the time zone.", 95)),
    _abstain("cat", "What is the name of my sister's cat?", "My sister's dog is called Rufus.",
             "My cat is called Mila."),
    _abstain("room", "How many seats does our meeting room in Lyon have?", "Our meeting room in Oslo has twelve seats.",
             "We want to paint the meeting room in Lyon."),
    _abstain("passport", "When does my passport expire?", "My driving licence expires in March.",
             "My brother's passport expires in July."),
)

CASES: dict[str, Scenario] = {scenario.name: scenario for scenario in (*GIMLI, *OWN)}
"""Every case by its name; its position is the number of its corpus and of its question."""

CATEGORIES = tuple(dict.fromkeys(scenario.category for scenario in CASES.values()))
