"""The server of the questions page on any request, and skipped questions in any file: an answer, or a MemlabError."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.data.questions.test_site import HOST, make_site

pytestmark = pytest.mark.slow

VALUES = st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.just("q1"),
                      lambda inner: st.lists(inner, max_size=3), max_leaves=5)
BODIES = st.binary(max_size=60) | st.dictionaries(st.sampled_from([
    "name", "revision", "status", "text", "answer", "evidence", "corpus"]), VALUES).map(json.dumps).map(str.encode)


@given(method=st.sampled_from(["GET", "POST", "PUT"]), token=st.booleans(), body=BODIES,
       path=st.sampled_from(["change", "add", "state", "", "question?name=q1", "search?name=q1&text="]) | st.text(),
       more=st.text().map(quote))
def test_any_request_has_an_answer(method: str, token: bool, body: bytes, path: str, more: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        site = make_site(Path(folder))
        reply = site.answer(method, f"/{site.token if token else ''}/{path}{more}", HOST, None, body)
        assert reply.status in (200, 400, 403, 404, 409)
        assert site.answer(method, path, more, more, body).status in (400, 403, 404)
