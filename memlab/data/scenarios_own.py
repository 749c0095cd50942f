"""memlab's own scenarios, three cases each: what changed, what adds up, when it was, and what was never said."""

from __future__ import annotations

from memlab.data.scenarios_parts import Expect, Piece, Scenario


def _update(case: str, question: str, answer: str, said: tuple[str, str, str], decoy: str) -> Scenario:
    """A fact that changed twice, the changes told as people tell them; the tellings before it are no evidence."""
    names, days = ("first", "second", "now"), (300, 150, 8)
    pieces = tuple(Piece(n, t, d, evidence=n == "now") for n, t, d in zip(names, said, days))
    expect = (Expect("rank", ("now",), 3), Expect("before", ("now", "second")), Expect("before", ("now", "first")))
    return Scenario("updates", case, question, answer, pieces, (decoy,), expect)


def _count(case: str, question: str, answer: str, said: tuple[str, ...], *decoys: str) -> Scenario:
    """Things that add up over sessions: an answer needs them all."""
    pieces = tuple(Piece(f"{i + 1}", text, 20 + 31 * i) for i, text in enumerate(said))
    expect = (Expect("rank", ("1",), 10), Expect("returned", tuple(piece.name for piece in pieces)))
    return Scenario("counting", case, question, answer, pieces, decoys, expect)


def _time(case: str, question: str, answer: str, then: tuple[str, int], later: tuple[str, int],
          earlier: tuple[str, int]) -> Scenario:
    """The same kind of event on three days, of which the question names one; it is asked on 14 June 2024."""
    pieces = (Piece("then", *then), Piece("later", *later, evidence=False), Piece("earlier", *earlier, evidence=False))
    expect = (Expect("rank", ("then",), 3), Expect("before", ("then", "later")), Expect("before", ("then", "earlier")))
    return Scenario("time", case, question, answer, pieces, (), expect)


def _abstain(case: str, question: str, *decoys: str) -> Scenario:
    """The like of it was said, but not it."""
    return Scenario("abstention", case, question, "It was never mentioned.", (), decoys, (Expect("nothing"),))


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
