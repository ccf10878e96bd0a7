"""Plain Markdown, for JupyterLab, Colab and VS Code, from a resolved page of the book.

The doctree of the HTML build has all references, numbers, citations and glued values resolved. Here
its nodes become Markdown that needs no extension: theorems and boxes are quotations, solutions fold
with ``<details>``, and mathematics stands between dollars with its macros expanded.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from docutils import nodes
from sphinx.util import logging
from tex_macros import expand

logger = logging.getLogger(__name__)

NOTHING = {"target", "comment", "raw", "index", "substitution_definition", "meta", "toctree"}
THEOREMS = {
    "axiom", "theorem", "lemma", "algorithm", "definition", "remark", "conjecture", "corollary",
    "criterion", "example", "property", "observation", "proposition", "assumption", "notation",
}  # fmt: skip
QUOTED = {"admonition", "note", "tip", "warning", "important", "hint", "caution", "seealso"}


def escape(text: str) -> str:
    """Text in which Markdown sees no markup."""
    return re.sub(r"([\\*_`<$])", r"\\\1", text.replace("\n", " "))


def quote(text: str) -> str:
    """A quotation. Mathematics must not span lines in it: its ``>`` would be read as TeX."""
    text = re.sub(r"\$\$\n(.*?)\n\$\$", lambda m: f"$${one_line(m[1])}$$", text, flags=re.S)
    return "\n".join(f"> {line}".rstrip() for line in text.split("\n"))


def one_line(tex: str) -> str:
    """TeX on one line."""
    return re.sub(r"\s*\n\s*", " ", tex).strip()


def fold(summary: str, text: str) -> str:
    """A block that opens with a click; the empty lines let Markdown be read inside."""
    return f"<details>\n<summary>{summary} (click to open)</summary>\n\n{text}\n\n</details>"


class MarkdownWriter:
    """Write the nodes of one page as Markdown.

    Parameters
    ----------
    macros : dict
        The book's TeX macros.
    numbers : callable
        ``numbers(kind, node)``: the printed number of a section ("section"), equation, figure,
        theorem or exercise, or "".
    link : callable
        ``link(uri)``: the address, seen from the notebook, of a page of the book, or None where a
        notebook has none.
    """

    def __init__(self, macros, numbers, link):
        self.macros, self.numbers, self.link = macros, numbers, link

    # Words.

    def inline(self, node: nodes.Node) -> str:
        """The children of `node`, as one line of Markdown."""
        return "".join(self.word(child) for child in node.children)

    def word(self, node: nodes.Node) -> str:
        """One inline node."""
        if isinstance(node, nodes.Text):
            return escape(node.astext())
        kind = node.tagname
        if kind in NOTHING:
            return ""
        if kind == "math":
            return f"${one_line(expand(node.astext(), self.macros))}$"
        if kind == "literal":
            return self.literal(node.astext())
        if kind in ("strong", "emphasis", "title_reference"):
            mark = "**" if kind == "strong" else "*"
            return f"{mark}{self.inline(node)}{mark}"
        if kind == "reference":
            return self.reference(node)
        if kind in ("superscript", "subscript"):
            return f"<{kind[:3]}>{self.inline(node)}</{kind[:3]}>"
        if kind not in ("inline", "generated", "number_reference", "abbreviation"):
            logger.warning("a reader's notebook does not know the inline node %s", kind)
        return self.inline(node)

    @staticmethod
    def literal(text: str) -> str:
        """Code within a line."""
        fence = "``" if "`" in text else "`"
        return f"{fence}{text}{fence}"

    def reference(self, node: nodes.reference) -> str:
        """A link where a notebook can follow it, else its words."""
        text, uri = self.inline(node), node.get("refuri", "")
        if uri and node.get("internal"):
            uri = self.link(uri) or ""
        # A bracket would end the words of the link too soon; citations have them, and stay words.
        if not uri or "[" in text:
            return text
        return f"[{text}]({uri})"

    # Blocks.

    def blocks(self, children: Iterable[nodes.Node], depth: int = 1) -> list[str]:
        """The blocks of Markdown of some nodes; `depth` is the level of the section around."""
        found = [block for child in children for block in self.block(child, depth)]
        return [block for block in found if block.strip()]

    def text(self, children: Iterable[nodes.Node], depth: int = 1) -> str:
        """The blocks, with empty lines between."""
        return "\n\n".join(self.blocks(children, depth))

    def block(self, node: nodes.Node, depth: int) -> list[str]:
        """One node, as a list of blocks."""
        kind = getattr(node, "tagname", "#text")
        if kind in NOTHING:
            return []
        if kind.removesuffix("_node") in THEOREMS:
            return [self.theorem(node, kind.removesuffix("_node"))]
        if kind in QUOTED:
            return [self.admonition(node, kind)]
        if kind.startswith("exercise"):
            return [self.exercise(node)]
        writer = getattr(self, f"block_{kind}", None)
        if writer is not None:
            written = writer(node, depth)
            return [written] if isinstance(written, str) else written
        logger.warning("a reader's notebook does not know the node %s", kind)
        return self.blocks(node.children, depth)

    def block_paragraph(self, node, depth) -> str:
        # A line that begins like a list or a heading is still a paragraph.
        return re.sub(r"^([+\-#]|\d+(?=\.))(?=[.\s])", r"\\\1", self.inline(node))

    def block_title(self, node, depth) -> str:
        number = self.numbers("section", node.parent)
        return f"{'#' * depth} {number}{' ' if number else ''}{self.inline(node)}"

    def block_section(self, node, depth) -> list[str]:
        return self.blocks(node.children, depth + 1)

    def block_math_block(self, node, depth) -> str:
        number = self.numbers("equation", node)
        tag = rf" \tag{{{number}}}" if number else ""
        return f"$$\n{expand(node.astext(), self.macros).strip()}{tag}\n$$"

    def block_literal_block(self, node, depth) -> str:
        return f"```{node.get('language', '')}\n{node.astext()}\n```"

    def block_bullet_list(self, node, depth) -> str:
        return self.items(node, ["-"] * len(node.children), depth)

    def block_enumerated_list(self, node, depth) -> str:
        first = node.get("start", 1)
        return self.items(node, [f"{first + i}." for i in range(len(node.children))], depth)

    def items(self, node, marks, depth) -> str:
        """The items of a list, their later lines indented."""
        lines = []
        for mark, item in zip(marks, node.children, strict=True):
            body = self.text(item.children, depth)
            lines.append(f"{mark} " + body.replace("\n", "\n" + " " * (len(mark) + 1)))
        loose = any("\n\n" in line for line in lines)
        return ("\n\n" if loose else "\n").join(lines)

    def block_definition_list(self, node, depth) -> list[str]:
        found = []
        for item in node.children:
            term, definition = item.children[0], item.children[-1]
            found += [f"**{self.inline(term)}**", *self.blocks(definition.children, depth)]
        return found

    def block_table(self, node, depth) -> list[str]:
        rows = [[self.cell(entry) for entry in row.children] for row in node.findall(nodes.row)]
        lines = [f"| {' | '.join(row)} |" for row in rows]
        lines.insert(1, "|" + "---|" * len(rows[0]))
        caption = [f"*{self.inline(title)}*" for title in node.children if is_title(title)]
        return [*caption, "\n".join(lines)]

    def cell(self, entry) -> str:
        """A cell of a table, where a bar would begin the next cell."""
        text = " ".join(self.blocks(entry.children)).replace("\n", " ")
        text = re.sub(r"\$[^$]*\$", lambda m: re.sub(r"(?<!\\)\|", r"\\vert ", m[0]), text)
        return re.sub(r"(?<!\\)\|", r"\\|", text)

    def block_figure(self, node, depth) -> list[str]:
        """The caption alone: the picture is the output of the cell above."""
        captions = [child for child in node.children if isinstance(child, nodes.caption)]
        number = self.numbers("figure", node)
        label = f"**Fig. {number}** " if number else ""
        return [f"{label}{self.inline(caption)}" for caption in captions]

    def block_container(self, node, depth) -> list[str]:
        return self.blocks(node.children, depth)

    block_compound = block_container
    block_topic = block_container

    def block_block_quote(self, node, depth) -> str:
        return quote(self.text(node.children, depth))

    def block_transition(self, node, depth) -> str:
        return "---"

    # Boxes.

    def theorem(self, node, kind) -> str:
        """A numbered statement, as a quotation."""
        title, body = split_title(node)
        head = f"{kind.capitalize()} {self.numbers(kind, node)}".strip()
        name = self.inline(title).strip() if title is not None else ""
        return quote(f"**{head}{f' {name}' if name else ''}.**\n\n" + self.text(unwrap(body)))

    def block_proof_node(self, node, depth) -> str:
        """A proof begins with its name and ends with its mark, on the line of its last words."""
        blocks = self.blocks(child for box in node.children for child in box.children)
        blocks[0] = blocks[0].removeprefix("Proof. ")  # the directive writes it into the text
        if not blocks[0].startswith(("$$", "- ", "1. ", "|")):
            blocks[0] = f"*Proof.* {blocks[0]}"
        else:
            blocks.insert(0, "*Proof.*")
        if blocks[-1].startswith(("$$", "|", "```")):
            blocks.append("∎")
        else:
            blocks[-1] += " ∎"
        return "\n\n".join(blocks)

    def admonition(self, node, kind) -> str:
        """A box, as a quotation; one that is folded on the page folds here."""
        title, body = split_title(node)
        head = self.inline(title) if title is not None else kind.capitalize()
        if "dropdown" in node.get("classes", []):
            return fold(plain(title, kind.capitalize()), self.text(body))
        return quote(f"**{head}**\n\n" + self.text(body))

    def exercise(self, node) -> str:
        """The task, under its number."""
        title, body = split_title(node)
        number = self.numbers("exercise", node)
        name = self.inline(title).replace("Exercise", "", 1).strip() if title is not None else ""
        head = " ".join(filter(None, ("Exercise", number, name)))
        return f"**{head}** " + self.text(unwrap(body))

    def solution_head(self, node) -> str:
        """The words on which a folded solution opens."""
        return plain(split_title(node)[0], "Solution")

    def block_solution_node(self, node, depth) -> str:
        _, body = split_title(node)
        return fold(self.solution_head(node), self.text(unwrap(body)))


def is_title(node: nodes.Node) -> bool:
    return isinstance(node, nodes.title)


def split_title(node: nodes.Element) -> tuple[nodes.title | None, list[nodes.Node]]:
    """The title of a box, and all that comes after it."""
    title = next((child for child in node.children if is_title(child)), None)
    return title, [child for child in node.children if child is not title]


def unwrap(children: list[nodes.Node]) -> list[nodes.Node]:
    """The content of the section that wraps what stands in a theorem or an exercise."""
    return [
        inner
        for child in children
        for inner in (child.children if isinstance(child, nodes.section) else [child])
    ]


def plain(title: nodes.title | None, default: str) -> str:
    """The words of a title without markup, for HTML."""
    text = " ".join(title.astext().split()) if title is not None else ""
    return (text or default).replace("&", "&amp;").replace("<", "&lt;")
