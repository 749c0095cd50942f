"""Questions in other words: usual phrasings, and words of small tables: synonyms, abbreviations and what they mean."""

from __future__ import annotations

import re
from functools import cache

from memlab.query.expand.phrasings import phrasings

_TABLE = """
buy purchase; buys purchases; bought purchased; buying purchasing; doctor physician; doctors physicians; movie film
movies films; car vehicle automobile; cars vehicles automobiles; bike bicycle; bikes bicycles; phone smartphone
phones smartphones; laptop notebook; tv television; house home; apartment flat; job position; jobs positions
boss manager; coworker colleague; coworkers colleagues; company employer; teacher instructor; teachers instructors
class course; classes courses; trip journey vacation; trips journeys vacations; vacation holiday trip
vacations holidays trips; hotel accommodation; hotels accommodations; restaurant diner eatery; restaurants eateries
meal dish; meals dishes; recipe dish; recipes dishes; groceries food; kid child; kids children; child kid
children kids; mom mother; mother mom; dad father; father dad; grandma grandmother; grandmother grandma
grandpa grandfather; grandfather grandpa; wife spouse; husband spouse; boyfriend partner; girlfriend partner
friend buddy; friends buddies; workout exercise training; workouts exercises; exercise workout; jog run
jogging running; hike trek; hikes treks; hiking trekking; marathon race; medicine medication; medication medicine
sick ill; ill sick; illness disease; surgery operation; pain ache; picture photo; pictures photos
photo picture; photos pictures; photograph photo; painting artwork; song track; songs tracks; concert gig show
concerts gigs shows; books novels; author writer; gift present; gifts presents; present gift; wedding marriage
party celebration; event occasion; events occasions; festival fair; meeting appointment; meetings appointments
appointment meeting; conversation talk chat; discussion talk; suggest recommend; suggested recommended advised
recommend suggest; recommended suggested advised; advice tips suggestions; tips advice; suggestion recommendation
suggestions recommendations; favorite favourite preferred; favourite favorite preferred; hobby pastime interest
hobbies pastimes interests; money cash; price cost; expensive costly; cheap inexpensive; salary pay income
rent lease; spend pay; spent paid; spending paying; earn make; earned made; save put aside; amount sum; begin start
began started; beginning starting; start begin; started began; starting beginning; finish complete
finished completed; finishing completing; complete finish; completed finished; repair fix; repaired fixed; fix repair
fixed repaired; broken damaged; move relocate; moved relocated; moving relocating; visit go to; visited went to
attend go to; attended went to; join sign up; joined signed up; quit leave; travel go; traveled went travelled
receive get; received got; obtain get; obtained got; adopt get; adopted got; acquire get; acquired got; live reside
lives resides; lived resided; living residing; current present; currently now; recent latest; recently lately
often frequently; frequently often; big large; large big; small little; quick fast; happy glad; sad upset
scared afraid; difficult hard; garden yard; clothes clothing outfit; shoes footwear sneakers; sneakers shoes
jacket coat; sofa couch; couch sofa; fridge refrigerator; luggage suitcase; suitcase luggage; stores shops
shop store; shops stores; city town; country nation; neighbor neighbour; neighbors neighbours; volunteer charity
connection link; connections links; credential token; credentials tokens; settings configuration; setup configuration
invalid expired; error failure; errors failures; bug defect; bugs defects
"""
"""A word and its synonyms in the same form, the last of which may be two words ("visited went to")."""


def _read(table: str) -> dict[str, tuple[str, ...]]:
    entries = filter(None, map(str.split, re.split(r"[;\n]", table)))
    return {word: (" ".join(synonyms),) if synonyms[-1] in ("to", "up", "aside") else tuple(synonyms)
            for word, *synonyms in entries}


_SHORT = dict(re.findall(r"(\w+)/([\w ]+)", """
db/database, dbs/databases, config/configuration, configs/configurations, auth/authentication, env/environment,
envs/environments, repo/repository, repos/repositories, creds/credentials, pwd/password, docs/documentation,
k8s/Kubernetes, postgres/PostgreSQL, js/JavaScript, app/application, apps/applications, info/information,
admin/administrator, msg/message, msgs/messages, pic/picture, pics/pictures, pc/computer, param/parameter,
params/parameters, dev/development, prod/production, lib/library, libs/libraries, dir/directory, vm/virtual machine,
vms/virtual machines, cert/certificate, certs/certificates, url/web address, urls/web addresses, ui/user interface,
os/operating system, cpu/processor, api/programming interface, apis/programming interfaces, ci/continuous integration,
vpn/private network, dob/date of birth, bday/birthday, appt/appointment, appts/appointments, apt/apartment,
dept/department, mgr/manager, uni/university, exam/examination, exams/examinations, lab/laboratory"""))
"""Abbreviation -> what it stands for; read in small letters and in capitals."""

SYNONYMS: dict[str, tuple[str, ...]] = _read(_TABLE) | {
    "database": ("DB",), "databases": ("DBs",), "configuration": ("config", "settings"), "authentication": ("auth",),
    "repository": ("repo",), "credentials": ("creds", "tokens"), "documentation": ("docs",)} | {
    written: (long,) for short, long in _SHORT.items() for written in (short, short.upper())}
"""Word -> its synonyms, the closest first."""

_QUOTED = r"(?<!\w)(?:'[^']+'|\"[^\"]+\"|“[^”]+”|‘[^’]+’)(?!\w)"


@cache
def _pattern() -> re.Pattern[str]:
    """Return the pattern of a quoted title, which stays, or a word of the table in lower case (others are names)."""
    words = "|".join(sorted(SYNONYMS, key=len, reverse=True))
    return re.compile(rf"{_QUOTED}|(?<![\w'-])(?P<word>{words})(?![\w'-])")


def rewrites(question: str, most: int) -> list[str]:
    """Return at most ``most`` rewrites, all different: the ``phrasings`` of the question, then it with synonyms.

    The rewrites with synonyms have each word's first, then each word's second one, or its last.

    >>> rewrites("Which car did I buy after the concert?", 3)
    ['Which vehicle did I purchase after the gig?', 'Which automobile did I purchase after the show?']
    """
    synonyms = [SYNONYMS[m["word"]] for m in _pattern().finditer(question) if m["word"]]
    phrases = phrasings(question)[:most]
    rounds = min(most - len(phrases), max(map(len, synonyms), default=0))

    def replace(match: re.Match[str], nth: int) -> str:
        others = SYNONYMS.get(match["word"] or "")
        return others[min(nth, len(others) - 1)] if others else match[0]

    others = [_pattern().sub(lambda m, nth=nth: replace(m, nth), question) for nth in range(rounds)]  # type: ignore[misc]
    return [*phrases, *others]


def inject_synonyms(question: str) -> str:
    """Return the question, followed by the synonyms of its words if there are any.

    >>> inject_synonyms("Which car did I buy?")
    'Which car did I buy? vehicle automobile purchase'
    """
    more = [s for m in _pattern().finditer(question) if m["word"] for s in SYNONYMS[m["word"]]]
    return " ".join([question, *dict.fromkeys(more)])
