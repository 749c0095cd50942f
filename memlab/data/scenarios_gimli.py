"""Gimli's eight relevance scenarios, three cases each: the expectations are its own, the wording is ours."""

from __future__ import annotations

from memlab.data.scenarios_parts import Expect, Piece, Scenario


def _one(category: str, expect: tuple[Expect, ...], case: str, question: str, answer: str, text: str, days: int,
         *decoys: str, file: str | None = None) -> Scenario:
    return Scenario(category, case, question, answer, (Piece("it", text, days, file),), decoys, expect)


_EXACT = (Expect("rank", ("it",), 3), Expect("score", ("it",), 0.8))
_SAME = (Expect("rank", ("it",), 5), Expect("score", ("it",), 0.6), Expect("vector", ("it",)))
_TERM = (Expect("rank", ("it",), 3), Expect("text", ("it",), 0.5))
_CHUNKS = (Expect("returned", ("first", "second")), Expect("near", ("first", "second"), 0.2))
_NEWER = (Expect("before", ("newer", "older")),)
_SOURCE = (Expect("before", ("file", "chat")),)
_BOTH = (Expect("returned", ("first", "second")),)
_NONE = (Expect("nothing"),)


def _chunks(case: str, question: str, answer: str, file: str, first: str, second: str) -> Scenario:
    pieces = (Piece("first", first, 50, file), Piece("second", second, 50, file))
    return Scenario("cross-chunk", case, question, answer, pieces, (), _CHUNKS)


def _newer(case: str, question: str, answer: str, older: str, newer: str, decoy: str) -> Scenario:
    pieces = (Piece("older", older, 130, evidence=False), Piece("newer", newer, 12))
    return Scenario("temporal-disambiguation", case, question, answer, pieces, (decoy,), _NEWER)


def _source(case: str, question: str, answer: str, path: str, file: str, chat: str) -> Scenario:
    # the file is the older of the two, so that preferring the newer one does not pass for a preference for files
    pieces = (Piece("file", file, 60, path), Piece("chat", chat, 9, evidence=False))
    return Scenario("source-priority", case, question, answer, pieces, (), _SOURCE)


def _both(case: str, question: str, answer: str, first: str, second: str, *decoys: str) -> Scenario:
    pieces = (Piece("first", first, 25), Piece("second", second, 80))
    return Scenario("multi-concept", case, question, answer, pieces, decoys, _BOTH)


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
