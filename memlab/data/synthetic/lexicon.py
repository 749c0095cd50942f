"""The words of the generated lives: statements, questions about them, and small talk.

Of two wordings in a pair, the first resembles the wording of the question or evidence that it belongs to, the second is
a paraphrase; ``paraphrase`` is the share of the second. ``distractor`` says the same of another ({who}): it resembles
the evidence without being it.
"""

from __future__ import annotations

from typing import NamedTuple

Pair = tuple[str, str]


class Fact(NamedTuple):
    """A fact about the user, with a value {v}; ``later`` states its change."""

    tell: Pair
    distractor: str
    ask: Pair
    values: tuple[str, ...]
    later: Pair | None = None


class Collection(NamedTuple):
    """Things {t} that can be counted, and other matters of the same topic."""

    tell: Pair
    distractor: str
    ask: Pair
    matters: tuple[str, ...]


class Event(NamedTuple):
    """An event of a day ({when}); ``name`` completes "the day when ..."."""

    tell: Pair
    name: Pair


class Taste(NamedTuple):
    """A preference, a request that it concerns without naming it, and a rubric of a good answer."""

    tell: Pair
    distractor: str
    ask: Pair
    rubric: str


NAMES = ("Milo", "Nora", "Otis", "Pippa", "Rufus", "Selma", "Tobias", "Una", "Viggo", "Wanda", "Ximena", "Yuri")
WEEKDAYS = ("Mondays", "Tuesdays", "Wednesdays", "Thursdays", "Fridays", "Saturdays", "Sundays")
CITIES = ("Lisbon", "Ghent", "Kraków", "Bergen", "Porto", "Leipzig", "Turin", "Cork", "Malmö", "Bilbao")
PLACES = ("blue tin", "top drawer", "piano stool", "garage cabinet", "hall closet", "tea box", "attic trunk")
SUMS = tuple(str(n) for n in range(410, 2400, 87))
TIMES = tuple(f"{m}:{s:02d}" for m in (22, 24, 26, 28) for s in (7, 18, 33, 49))
OTHERS = ("my brother", "my neighbour", "my colleague Ines", "my cousin", "an old friend", "my aunt")
FIRST = ("Silver", "Hidden", "Crooked", "Velvet", "Northern", "Paper", "Amber", "Quiet", "Broken", "Golden", "Iron",
         "Scarlet", "Frozen", "Wandering", "Glass", "Hollow")
SECOND = ("Harbour", "Orchard", "Lantern", "Falcon", "Meadow", "Staircase", "Compass", "Kingdom", "Willow", "Engine",
          "Island", "Raven", "Bridge", "Garden", "Mirror", "Canyon")

COLLECTIONS = (
    Collection(("I bought the board game {t}.", "{t} is the newest box on our shelf of dice and cards."),
               "{who} bought the board game {t}.",
               ("How many board games have I bought?", "How large has my tabletop collection grown?"),
               ("a rulebook nobody understands", "hosting a games night", "teaching strategy to children",
                "keeping score fairly", "storing dice and cards", "two-player variants")),
    Collection(("I finished reading the book {t}.", "Last night I reached the final page of {t}."),
               "{who} finished reading the book {t}.",
               ("How many books have I finished reading?", "What is the tally of novels that I got through?"),
               ("starting a reading circle", "a slow first chapter", "choosing an e-reader", "remembering plots",
                "borrowing from the library", "sorting my bookshelf")),
    Collection(("I bought a houseplant, a {t}.", "A {t} in a clay pot now stands on my windowsill."),
               "{who} bought a houseplant, a {t}.",
               ("How many houseplants have I bought?", "How much greenery did I add to the flat?"),
               ("yellow leaves", "repotting in spring", "grow lights in winter", "watering during holidays",
                "fungus gnats", "taking cuttings")),
    Collection(("I hiked the {t} trail.", "I climbed all the way up {t} with a heavy rucksack."),
               "{who} hiked the {t} trail.",
               ("How many trails have I hiked?", "On how many walks in the mountains have I been?"),
               ("breaking in new boots", "reading a contour map", "packing light", "weather in the hills",
                "blisters on long descents", "filtering water")),
    Collection(("I ate at the restaurant {t}.", "We had a three-course supper at {t}, candles and all."),
               "{who} ate at the restaurant {t}.",
               ("How many restaurants have I eaten at?", "In how many places did I dine out?"),
               ("booking a table for eight", "tipping abroad", "pairing wine with fish", "a menu in French",
                "splitting the bill", "vegetarian tasting menus")),
    Collection(("I went to a concert of {t}.", "I saw {t} live on stage, and my ears still ring."),
               "{who} went to a concert of {t}.",
               ("How many concerts have I been to?", "How many bands did I get to hear perform?"),
               ("buying tickets early", "earplugs that keep the sound", "getting home after midnight",
                "singing in a choir", "learning the bass guitar", "festival camping")),
    Collection(("I watched the film {t} at the cinema.", "We queued for popcorn and then saw {t} on the big screen."),
               "{who} watched the film {t} at the cinema.",
               ("How many films have I watched at the cinema?", "How many movies did I go out to see?"),
               ("silent comedies", "subtitles or dubbing", "a projector at home", "the history of westerns",
                "writing a short script", "film scores")),
    Collection(("I bought the vinyl record {t}.", "{t} is spinning on my turntable, fresh from the flea market."),
               "{who} bought the vinyl record {t}.",
               ("How many vinyl records have I bought?", "How many LPs did I add to the crate?"),
               ("cleaning a dusty stylus", "choosing loudspeakers", "storing sleeves upright", "crackling noises",
                "pressing quality", "jazz of the fifties")),
    Collection(("I visited the exhibition {t}.", "I spent an afternoon in front of the paintings of {t}."),
               "{who} visited the exhibition {t}.",
               ("How many exhibitions have I visited?", "How many art shows did I get to see?"),
               ("drawing perspective", "audio guides", "cubism for beginners", "framing a print", "museum passes",
                "watercolour paper")),
    Collection(("I tried the bread recipe {t}.", "A loaf of {t} came out of my oven, golden and crisp."),
               "{who} tried the bread recipe {t}.",
               ("How many bread recipes have I tried?", "How many kinds of dough have I baked so far?"),
               ("a sluggish sourdough starter", "flour with more protein", "scoring the crust", "baking on a stone",
                "proofing overnight", "freezing rolls")),
    Collection(("I knitted the pattern {t}.", "{t} is off my needles, washed and blocked."),
               "{who} knitted the pattern {t}.",
               ("How many patterns have I knitted?", "How many woollen pieces have I made by hand?"),
               ("joining yarn invisibly", "a dropped stitch", "wool that does not itch", "reading a lace chart",
                "sleeves that are too long", "dyeing with onions")),
    Collection(("I completed the video game {t}.", "The end credits of {t} rolled on my console at last."),
               "{who} completed the video game {t}.",
               ("How many video games have I completed?", "How many adventures did I play through to the end?"),
               ("a controller that drifts", "difficulty settings", "playing with my niece", "saving screen time",
                "retro consoles", "motion sickness")),
)

FACTS = (
    Fact(("My dog is called {v}.", "{v} is what we named the puppy."), "{who} has a dog called {v}.",
         ("What is my dog called?", "What name does our four-legged friend answer to?"), NAMES),
    Fact(("I was born in {v}.", "{v} is where I came into the world."), "{who} was born in {v}.",
         ("In which city was I born?", "What is my birthplace?"), CITIES),
    Fact(("My dentist is Dr {v}.", "Dr {v} has looked after my teeth for years."), "The dentist of {who} is Dr {v}.",
         ("Who is my dentist?", "Whom do I see about a toothache?"), NAMES),
    Fact(("I paid {v} dollars for my bicycle.", "My new two-wheeler set me back {v} dollars."),
         "{who} paid {v} dollars for a bicycle.",
         ("How much did I pay for my bicycle?", "What was the price of the thing I ride to work?"), SUMS),
    Fact(("My sister lives in {v}.", "{v} is home for my only sibling."), "The sister of {who} lives in {v}.",
         ("Where does my sister live?", "Which town did the girl I grew up with settle in?"), CITIES),
    Fact(("My piano teacher is called {v}.", "{v} gives me keyboard lessons."),
         "The piano teacher of {who} is called {v}.",
         ("What is my piano teacher called?", "Who instructs me in playing an instrument?"), NAMES),
    Fact(("I keep my spare key in the {v}.", "If I am locked out, the {v} holds a second one."),
         "{who} keeps a spare key in the {v}.",
         ("Where do I keep my spare key?", "How could somebody get into my flat without me?"), PLACES),
    Fact(("I got married in {v}.", "Our wedding was in {v}."), "{who} got married in {v}.",
         ("In which city did I get married?", "Where did we exchange our vows?"), CITIES),
    Fact(("The plumber charged me {v} dollars.", "Fixing that leak under the sink came to {v} dollars."),
         "The plumber charged {who} {v} dollars.",
         ("How much did the plumber charge me?", "What was the bill for the burst pipe?"), SUMS),
    Fact(("My boat is named {v}.", "We painted {v} on the bow before the launch."), "{who} has a boat named {v}.",
         ("What is my boat named?", "What is written on the vessel that I sail?"), NAMES),
)

UPDATES = (
    Fact(("My personal best over 5 kilometres is {v}.", "I crossed the line after {v} in the park run."),
         "The personal best of {who} over 5 kilometres is {v}.",
         ("What is my personal best over 5 kilometres?", "What is the quickest that I have run three miles?"), TIMES,
         ("My new personal best over 5 kilometres is {v}.", "I was faster than ever on Saturday: {v} in the park.")),
    Fact(("I pay {v} dollars of rent.", "The flat costs me {v} dollars each month."), "{who} pays {v} dollars of rent.",
         ("How much rent do I pay?", "What goes to my landlord every month?"), SUMS,
         ("My rent is {v} dollars now.", "The owner wants {v} dollars a month from me after the new contract.")),
    Fact(("My passport is in the {v}.", "I put my travel papers into the {v}."), "The passport of {who} is in the {v}.",
         ("Where is my passport?", "Where should I look for the document I need at the border?"), PLACES,
         ("I moved my passport to the {v}.", "After tidying up, my travel papers went into the {v}.")),
    Fact(("My yoga class is on {v}.", "I roll out my mat with the group on {v}."), "The yoga class of {who} is on {v}.",
         ("On which day is my yoga class?", "When do I go stretching with the others?"), WEEKDAYS,
         ("My yoga class has moved to {v}.", "The studio changed the timetable, so I stretch on {v}.")),
    Fact(("My manager is {v}.", "At work I report to {v}."), "The manager of {who} is {v}.",
         ("Who is my manager?", "Who is above me in the office?"), NAMES,
         ("My new manager is {v}.", "{v} took over our team, so my reviews go there.")),
    Fact(("My savings account holds {v} dollars.", "I have put aside {v} dollars so far."),
         "The savings account of {who} holds {v} dollars.",
         ("How much is in my savings account?", "How big is my nest egg?"), SUMS,
         ("My savings account is at {v} dollars by now.", "With the bonus I have put aside {v} dollars in total.")),
    Fact(("I live in {v}.", "My home is a small flat in {v}."), "{who} lives in {v}.",
         ("In which city do I live?", "Where would a letter reach me?"), CITIES,
         ("I moved to {v}.", "The boxes are unpacked at last in {v}, my new home.")),
    Fact(("My hairdresser is {v}.", "{v} cuts my fringe."), "The hairdresser of {who} is {v}.",
         ("Who is my hairdresser?", "Whom do I call for a trim?"), NAMES,
         ("My new hairdresser is {v}.", "I switched salons, and {v} does my fringe.")),
)

EVENTS = (
    Event(("I planted an apple tree {when}.", "A sapling for future cider went into the ground {when}."),
          ("I planted an apple tree", "I put a fruit tree into my garden")),
    Event(("I sold my old car {when}.", "A stranger drove off in my rusty estate {when}, cash in hand."),
          ("I sold my old car", "I got rid of my vehicle")),
    Event(("I started a pottery course {when}.", "My hands were full of clay in the first lesson {when}."),
          ("I started a pottery course", "I began to learn ceramics")),
    Event(("I broke my glasses {when}.", "I sat on my spectacles {when}."),
          ("I broke my glasses", "I damaged what I see with")),
    Event(("I adopted a cat {when}.", "A tabby from the shelter moved in {when}."),
          ("I adopted a cat", "I took in a pet")),
    Event(("I repaired the roof {when}.", "I was up a ladder replacing tiles {when}."),
          ("I repaired the roof", "I fixed the top of the house")),
    Event(("I gave a speech at work {when}.", "All eyes were on me at the company meeting {when}."),
          ("I gave a speech at work", "I talked in front of my colleagues")),
    Event(("I signed up for a marathon {when}.", "I entered for the full 42 kilometres {when}."),
          ("I signed up for a marathon", "I registered for a long race")),
    Event(("I met my new neighbours {when}.", "The couple from next door came over with cake {when}."),
          ("I met my new neighbours", "I got to know the people who moved in beside us")),
    Event(("I cancelled my gym membership {when}.", "I told the fitness studio goodbye {when}."),
          ("I cancelled my gym membership", "I stopped paying for the place with the treadmills")),
    Event(("I got a flu shot {when}.", "A nurse put a needle into my arm {when}."),
          ("I got a flu shot", "I was vaccinated")),
    Event(("I lost my wallet {when}.", "My cards and cash vanished on the tram {when}."),
          ("I lost my wallet", "my money went missing")),
)

TASTES = (
    Taste(("I never eat cilantro.", "Coriander leaves taste like soap to me."), "{who} never eats cilantro.",
          ("Can you suggest a recipe with fresh herbs but no cilantro?", "What salsa could I make tonight?"),
          "Suggests dishes without cilantro."),
    Taste(("I only book aisle seats on trains.", "My long legs need the corridor side when I travel by rail."),
          "{who} only books aisle seats on trains.",
          ("Which seats should I book on the train?", "Help me plan the journey to the conference."),
          "Plans the train with an aisle seat."),
    Taste(("I prefer podcasts about history.", "Tales of ancient empires are what I want in my headphones."),
          "{who} prefers podcasts about history.",
          ("Which podcasts would you suggest to me?", "What could I listen to on my commute?"),
          "Suggests podcasts about history."),
    Taste(("I am allergic to wool.", "Anything from a sheep gives me a rash."), "{who} is allergic to wool.",
          ("Can you suggest a warm scarf without wool?", "What should I wear when it gets cold?"),
          "Suggests warm clothes of cotton, silk or fleece, never wool."),
    Taste(("I like hotels with a swimming pool.", "A few laps before breakfast make any trip for me."),
          "{who} likes hotels with a swimming pool.",
          ("Which hotels would I like?", "Where could I stay for the long weekend?"), "Suggests places with a pool."),
    Taste(("I drink only decaf coffee.", "Caffeine keeps me awake, so my beans have none."),
          "{who} drinks only decaf coffee.",
          ("Which coffee should I order?", "What would be a nice hot drink for after dinner?"),
          "Suggests drinks without caffeine."),
)

ADVICE = (
    ("a quiet café", "a calm spot for a hot drink"), ("a bookshop", "somewhere to buy novels"),
    ("a hotel by the river", "a place to sleep near the water"), ("a language school", "lessons for a foreign tongue"),
    ("a bicycle workshop", "somebody to mend a wheel"), ("a swimming bath", "a place to do laps"),
)

ASIDES = ("By the way, {said}", "{said} Anyway, on to something else.", "Quick aside: {said}", "{said}",
          "Before I forget: {said}", "You will like this: {said}", "{said} But that is not why I write.")
USER = ("What should I know about {matter}?", "I keep having trouble with {matter}. Any advice?",
        "How do experienced people deal with {matter}?", "Is {matter} worth the effort?",
        "Could you explain {matter} in a few sentences?", "What is a common mistake with {matter}?",
        "How much time should I plan for {matter}?", "What do I need to buy for {matter}?",
        "Who could help me with {matter}?", "I read two opposite opinions on {matter}. Which is right?")
OPENING = ("Good question.", "Happy to help.", "That depends on a few things.", "Let us take it step by step.",
           "There is no single answer.", "Many people ask that.", "Here is how I would go about it.")
REPLY = ("With {matter}, begin small and write down what works.", "For {matter}, patience beats equipment.",
         "The usual mistake in {matter} is to hurry, so leave a day between attempts.",
         "As to {matter}, ask somebody nearby who has done it, then adapt.",
         "Two evenings a week are plenty for {matter}.", "Costs for {matter} vary; compare three offers first.",
         "I would try {matter} with borrowed tools before spending money.",
         "A short checklist takes the stress out of {matter}.")
