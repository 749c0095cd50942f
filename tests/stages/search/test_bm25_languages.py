"""Search by words in many languages: questions as speakers type them, among memories of the same language."""

from __future__ import annotations

import polars as pl
import pytest
from pydantic import ValidationError

from memlab.stages.search.bm25 import BM25
from memlab.store import Store
from tests.stages.search.world import world

SAID: dict[str, list[tuple[str, tuple[str, ...]]]] = {
    "Chinese": [
        ("我的猫叫小白，今年三岁", ("猫", "我的猫叫什么名字？", "小白几岁了")),
        ("上个月我在北京大学看了一场演唱会", ("演唱会", "北京大学", "我上个月去哪里看演唱会？")),
        ("5月3日搬到杭州的新家", ("杭州", "5月3日", "什么时候搬家的")),
        ("３月３日去台北出差", ("台北", "3月3日")),
    ],
    "Japanese": [
        ("猫が好きで、二匹飼っています", ("猫", "何匹の猫を飼っていますか")),
        ("ﾗｰﾒﾝを毎日食べている", ("ラーメン", "毎日何を食べていますか")),
        ("Ｔシャツを三枚持っている", ("Tシャツ", "シャツは何枚？")),
        ("がんの検査を受けた", ("がん", "何の検査を受けたの")),
    ],
    "Korean": [
        ("고양이를 두 마리 키우고 있어요", ("고양이", "고양이는 몇 마리야?")),
        ("동생이 피아노를 배우기 시작했다", ("피아노", "동생은 무엇을 배워?")),
        ("부산에서 회사에 다닌다", ("부산", "회사는 부산에 있어?")),
    ],
    "Thai": [
        ("วันนี้ฉันย้ายไปเชียงใหม่", ("เชียงใหม่", "ฉันย้ายไปไหน")),
        ("ฉันชอบกินข้าวผัดกับไข่ดาว", ("ข้าวผัด", "ฉันชอบกินอะไร")),
        ("น้ำท่วมบ้านเมื่อปี ๒๕๖๗", ("น้ำท่วม", "2567", "นํ้าท่วม")),
    ],
    "Arabic": [
        ("ذهبتُ إلى المدرسةِ صباحًا", ("المدرسة", "مدرسه", "للمدرسة")),
        ("أحب القهوة العربية", ("قهوة", "القهوه", "أُحِبُّ القَهْوَة")),
        ("اشتريت سيارة جديدة", ("سيارتي", "السيارات", "السيّارة")),
        ("عمري ٣٥ سنة", ("35", "۳۵")),
    ],
    "Persian": [
        ("می‌خواهم به شیراز بروم", ("شيراز", "میخواهم")),
        ("کتاب‌های من در تهران است", ("کتابهای", "كتابهاى", "تهران")),
        ("سال ۱۴۰۲ به دانشگاه رفتم", ("1402", "دانشگاه")),
    ],
    "Hebrew": [("אני גר בירושלים", ("בִּירוּשָׁלַיִם", "ירושלים גר")), ("יש לי שני חתולים", ("חתולים",))],
    "Hindi": [
        ("मैं दिल्ली में रहता हूँ", ("दिल्ली", "मैं कहाँ रहता हूं")),
        ("मुझे किताबें पढ़ना पसंद है", ("किताब", "किताबों", "पढना")),
        ("मेरे पास २५ सिक्के हैं", ("25", "सिक्का", "सिक्कों")),
        ("ज़मीन ख़रीदी", ("जमीन", "ज़मीन", "खरीदी")),
    ],
    "German": [
        ("Ich wohne in der Straße am Fluß", ("Strasse", "STRASSE", "straße", "FLUSS")),
        ("Müller hat einen Führerschein", ("muller", "MÜLLER", "Fuhrerschein")),
    ],
    "French": [
        ("Mon élève va à l'école", ("ecole", "ÉCOLE", "L’École", "eleve", "ELEVE")),
        ("Ma sœur habite à Besançon", ("soeur", "SŒUR", "besancon")),
    ],
    "Turkish": [
        ("İstanbul'da yaşıyorum", ("istanbul", "ISTANBUL", "İSTANBUL", "yasiyorum", "YAŞIYORUM")),
        ("Issız bir ada istiyorum", ("ıssız", "ISSIZ", "issiz")),
    ],
    "Spanish": [("El niño come piña mañana", ("nino", "NIÑO", "pina")), ("Vivo en Bogotá", ("bogota", "BOGOTÁ"))],
    "Polish": [("Mieszkam w Łodzi", ("lodzi", "ŁODZI")), ("Żona lubi pączki", ("zona", "paczki"))],
    "Danish": [("Jeg bor i København", ("kobenhavn", "KØBENHAVN")), ("Æblet er rødt", ("aeblet", "rodt"))],
    "Vietnamese": [("Tôi sống ở Đà Nẵng", ("da nang", "ĐÀ NẴNG")), ("Con mèo của tôi tên là Mướp", ("meo", "muop"))],
    "Russian": [
        ("Моя кошка родила трёх котят", ("кошки", "КОШКУ", "трех")),
        ("Я живу в Москве", ("москва", "Москву")),
        ("Мой муж красивый", ("красивая", "мои муж")),
    ],
    "Greek": [("Μένω στην Αθήνα", ("ΑΘΗΝΑ", "αθηνα", "Αθήνας")), ("Ο σκύλος μου λέγεται Ρεξ", ("ΣΚΥΛΟΣ", "σκυλος"))],
    "names": [
        ("my C++ and C# exam is on Monday", ("C++ exam", "c#", "C＃")),
        ("she works in R&D at AT&T", ("R&D", "AT&T", "r&d")),
        ("the service runs on .NET", (".NET", ".net")),
        ("@ann_lee posted it with #sunrise", ("@ann_lee", "ann_lee", "#sunrise")),
        ("ﬁnal ﬁle of the ofﬁce", ("final file", "office", "FINAL")),
        ("Ｆｕｌｌ ｗｉｄｔｈ １２３", ("full width", "123")),
        ("a soft\u00adhyphen", ("softhyphen",)),
    ],
    "emoji": [
        ("I love 🏀 and 🎸", ("🏀", "🎸")),
        ("done 👍🏽", ("👍", "👍🏿")),
        ("off to 🇩🇪🇫🇷", ("🇫🇷", "🇩🇪")),
        ("a 👩🏿‍💻 at work", ("👩‍💻", "👩")),
        ("🏴󠁧󠁢󠁳󠁣󠁴󠁿 won", ("🏴󠁧󠁢󠁳󠁣󠁴󠁿",)),
        ("🏴󠁧󠁢󠁥󠁮󠁧󠁿 lost", ("🏴󠁧󠁢󠁥󠁮󠁧󠁿",)),
    ],
}


def first_hits(lane: BM25, texts: list[str], asked: list[str]) -> list[int | None]:
    """Return the position of the first hit of each query, None without one."""
    tables = world([(0, text, None) for text in texts], [(0, query, None) for query in asked])
    hits = lane.run(tables, Store())["hits"].filter(pl.col("rank") == 1)
    place = {memory: at for at, memory in enumerate(sorted(tables["memories"]["memory"], reverse=True))}
    found = dict(hits.select("query", "memory").iter_rows())
    return [place.get(found.get(query, -1)) for query in sorted(tables["queries"]["query"])]


@pytest.mark.parametrize("language", SAID)
def test_the_right_memory_comes_first(language: str) -> None:
    texts = [text for text, _ in SAID[language]]
    asked = [(query, at) for at, (_, queries) in enumerate(SAID[language]) for query in queries]
    got = first_hits(BM25(), texts, [query for query, _ in asked])
    assert [(query, first) for (query, at), first in zip(asked, got) if first != at] == []


def test_a_memory_that_shares_no_word_is_no_hit() -> None:
    texts = ["猫が好き", "plan B", "", "the sea", "C++", "😊"]
    assert first_hits(BM25(), texts, ["犬", "dogs", "C#", "the", "", "🐈", "B"]) == [None] * 7
    assert first_hits(BM25(), texts, ["sea 犬"]) == [3]


def test_a_named_language_gets_the_accents_that_its_rules_need() -> None:
    texts = ["die Häuser", "des maisons rénovées", "evlerimizde kitaplar"]
    assert first_hits(BM25(stemmer="german"), texts, ["Haus", "HAUS"]) == [0, 0]
    assert first_hits(BM25(stemmer="french"), texts, ["rénover", "RENOVE"]) == [1, 1]
    assert first_hits(BM25(stemmer="turkish"), texts, ["kitap", "ev"]) == [2, 2]
    assert first_hits(BM25(), texts, ["Haus", "kitap"]) == [None, None]


def test_an_unknown_stemmer_is_refused() -> None:
    with pytest.raises(ValidationError, match="did you mean 'german'"):
        BM25(stemmer="germna")
