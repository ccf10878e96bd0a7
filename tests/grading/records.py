"""Results of a small class, made by hand."""

from html.parser import HTMLParser

from rankbook.grading._records import Outcome, Result

POINTS = {"P9.1": 4.0, "P9.2": 3.0, "P9.3": 3.0, "P9.4": 5.0}
EVIL = "=1+1<script>alert(1)</script>"


def result(student, *earned, name="Ada", **fields):
    """A student's result, from the points of the four questions."""
    outcomes = tuple(
        Outcome(question, f"About {question}", possible, "killed" if e is None else "passed", e, "")
        for (question, possible), e in zip(POINTS.items(), earned, strict=True)
    )
    return Result(student, name, outcomes, **fields)


CLASS = [
    result("101", 4.0, 3.0, 3.0, 5.0),
    result("102", 4.0, 0.0, None, 2.5, name=EVIL, flags=("P9.3: stopped",)),
    result("103", 0.0, 0.0, 0.0, 0.0),
]


class Tags(HTMLParser):
    """What a page is made of."""

    def __init__(self, text):
        super().__init__()
        self.text, self.found, self.loads = text, [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.found.append(tag)
        names = ("src", "href", "srcset", "action", "data", "style")
        self.loads += [value for key, value in attributes if key in names or key[:2] == "on"]

    def assert_closed(self):
        """The page is whole, can be read by ear, and neither loads nor runs anything."""
        assert not {"script", "link", "img", "iframe", "object"} & set(self.found)
        assert not self.loads and "://" not in self.text and "url(" not in self.text
        assert {"main", "h1", "caption", "title"} <= set(self.found)
        assert 'lang="en"' in self.text and 'scope="row"' in self.text
