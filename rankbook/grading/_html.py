"""Pages that need nothing else: one file, no script, readable in light and dark and by ear."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

UNSAFE = "UNSAFE: graded without a sandbox. The code of the submissions ran with all rights."
_STYLE = """
:root { color-scheme: light dark; --line: #767676; --bar: #0072b2; --soft: #e8eef4; }
@media (prefers-color-scheme: dark) { :root { --bar: #56b4e9; --soft: #24303a; } }
body { font: 1rem/1.5 system-ui, sans-serif; max-width: 56rem; margin: 1rem auto; padding: 0 1rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; margin: 1rem 0; }
caption { text-align: left; font-weight: bold; padding: .3rem 0; }
th, td { border-bottom: 1px solid var(--line); padding: .35rem .6rem; text-align: left;
  vertical-align: top; }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
pre { background: var(--soft); padding: .6rem; overflow-x: auto; white-space: pre-wrap; }
.unsafe { border: 3px solid #b00020; padding: .6rem; font-weight: bold; }
svg { max-width: 100%; height: auto; } svg text { fill: currentColor; font: 13px sans-serif; }
svg rect { fill: var(--bar); } svg line { stroke: var(--line); }
"""


def page(title: str, body: Sequence[str], *, sandboxed: bool = True) -> str:
    """Return a whole page; one that is unsafe says so before anything else."""
    warning = [] if sandboxed else [f'<p class="unsafe" role="alert">{escape(UNSAFE)}</p>']
    return "\n".join(
        [
            "<!DOCTYPE html>" if sandboxed else f"<!DOCTYPE html><!-- {UNSAFE} -->",
            '<html lang="en"><head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            # Nothing in a page may load or run anything, whatever a student typed.
            '<meta http-equiv="Content-Security-Policy" '
            "content=\"default-src 'none'; style-src 'unsafe-inline'\">",
            f"<title>{escape(title)}</title><style>{_STYLE}</style></head><body>",
            *warning,
            f"<main><h1>{escape(title)}</h1>",
            *body,
            "</main></body></html>\n",
        ]
    )


def table(
    caption: str, headings: Sequence[str], rows: Sequence[Sequence[str]], numbers: Sequence[int]
) -> str:
    """Return a table whose first column heads its rows; `numbers` are aligned to the right."""

    def kind(column: int) -> str:
        return ' class="n"' if column in numbers else ""

    head = "".join(f'<th scope="col"{kind(i)}>{escape(h)}</th>' for i, h in enumerate(headings))
    lines = []
    for first, *rest in rows:
        cells = "".join(f"<td{kind(i)}>{escape(c)}</td>" for i, c in enumerate(rest, start=1))
        lines.append(f'<tr><th scope="row">{escape(first)}</th>{cells}</tr>')
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(caption)}"><table>'
        f"<caption>{escape(caption)}</caption><thead><tr>{head}</tr></thead>"
        f"<tbody>{''.join(lines)}</tbody></table></div>"
    )


def bars(title: str, description: str, labels: Sequence[str], values: Sequence[float]) -> str:
    """Return columns, drawn as SVG, with their values written above."""
    width, bottom = 640, 220
    step = (width - 40) / max(len(values), 1)
    # Labels that would touch stand in two lines, by turns.
    lines = 2 if 8 * max(map(len, labels), default=0) > step else 1
    height = 240 + 20 * lines
    top = max([*values, 1e-9])
    parts = [
        f'<svg role="img" viewBox="0 0 {width} {height}" aria-label="{escape(description)}">'
        f"<title>{escape(title)}</title>",
        f'<line x1="20" y1="{bottom}" x2="{width - 20}" y2="{bottom}"/>',
    ]
    for i, (label, value) in enumerate(zip(labels, values, strict=True)):
        x, tall = 20 + i * step, 180 * max(value, 0.0) / top
        middle = f'x="{x + step / 2:.1f}" text-anchor="middle"'
        parts.append(
            f'<rect x="{x + 0.1 * step:.1f}" y="{bottom - tall:.1f}" '
            f'width="{0.8 * step:.1f}" height="{tall:.1f}"/>'
            f'<text {middle} y="{bottom - tall - 5:.1f}">{value:.3g}</text>'
            f'<text {middle} y="{bottom + 18 + 20 * (i % lines)}">{escape(label)}</text>'
        )
    return f"<figure>{''.join(parts)}</svg><figcaption>{escape(title)}</figcaption></figure>"
