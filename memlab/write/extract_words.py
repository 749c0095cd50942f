"""English words that the rules of extraction know."""

from __future__ import annotations


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


LOWER = _words("""
of the de la van von
""")
"""Small words within a name."""

NOT_NAMES = _words("""
I I'm I've I'd I'll Im Ive OK Ok Okay TV PS Oh Hi Hey Hello Wow Yeah Yes Yep No Nope Thanks Thank Well So And But Or
The A An This That These Those It It's He She They We We're We've You You're Your My Our His Her Their What When Where
Who Why How Also Then Just Btw BTW LOL Haha Congrats Good Great Nice Sure Please Let Let's Do Did Can Is Are Was Were
If In On At For With From Dr Mr Mrs Ms AM PM Mon Tue Tues Wed Thu Thurs Fri Sat Sun January February March April May
June July August September October November December Monday Tuesday Wednesday Thursday Friday Saturday Sunday Mondays
Tuesdays Wednesdays Thursdays Fridays Saturdays Sundays
""")
"""Words with capitals that name nobody."""

ORGANIZATION = _words("""
University College School Academy Inc Corp Corporation Company Co Ltd LLC Bank Hospital Clinic Institute Foundation
Association Agency Department Club Church Studio Studios Airlines Group Team League Society
""")
"""Words that an organisation's name ends with."""

LOCATION = _words("""
Park Lake River Mountain Mountains Mount Beach Street Avenue Road City Island Islands Bay Canyon Valley Forest Falls
County State States Country Village Town Square Bridge Coast Ocean Sea Desert Hotel Airport Museum Garden Gardens Cafe
""")
"""Words that a place's name ends or begins with."""

STOP = _words("""
and but or because when while which that who where for with since so if as at on in to from by about after before how
every lots last this yesterday today tomorrow next then too now here there it them him me you us is are was were will
would can could
""")
"""Words with which the object of a verb ends."""

EMPTY = _words("""
idea ideas plan plans suggestion suggestions tip tips way lot thought fact best hear see sound look
""")
"""Objects that tell nothing: to love an idea is no taste."""

OPENING = _words("""
a an the my our his her their some any this that these those to it you
""")
"""Words before the object of a verb."""

KIN = _words("""
friend sister brother mom mother dad father wife husband son daughter cousin aunt uncle boss colleague coworker
roommate neighbor partner girlfriend boyfriend teacher coach niece nephew grandma grandmother grandpa grandfather dog
cat puppy pup kitten
""")
"""Who belongs to someone."""

THINGS = _words("""
dog dogs cat cats puppy puppies kitten kittens turtle turtles horse horses rabbit rabbits fish bird birds bike
bikes car cars house houses apartment apartments piano pianos guitar guitars violin violins
""")
"""What someone has, as against having fun."""
