# ruff: noqa: E501  rows of a table
"""Text that breaks programs: every plane of Unicode, what cannot be seen, and the syntax of everything text passes."""

from __future__ import annotations

import unicodedata


def by_kind() -> dict[str, list[str]]:
    """Sentences by what is bad about them."""
    kinds: dict[str, str] = {}
    for point in [*range(0x20, 0x3000, 7), *range(0x3000, 0x110000, 4099)]:
        kinds.setdefault(unicodedata.category(chr(point)) + str(point >> 16), chr(point))
    planes = [chr(plane * 0x10000 + offset) for plane in range(17) for offset in (0x21, 0x1F4A, 0xFFFD, 0xFFFE, 0xFFFF)]
    return {
        "planes": [f"a{char}b" for char in planes],
        "categories": [f"x{char} y" for char in kinds.values()],
        "controls": [f"a{chr(point)}b" for point in [*range(0x20), *range(0x7F, 0xA0)]],
        "surrogates": ["a\ud800", "\udfffb", "a\udc00\ud800b", "\ud83d x"],
        "direction": [f"a{chr(p)}bc אבג" for p in (*range(0x200E, 0x2010), *range(0x202A, 0x202F), *range(0x2066, 0x206A))],
        "invisible": [f"a{chr(p)}b" for p in (0xAD, 0x34F, 0x61C, 0x115F, 0x180E, 0x200B, 0x2028, 0x2060, 0x3164, 0xFEFF,
                                             0xFE0F, 0xE0001, 0xE0041, 0xE0100)],
        "combining": ["a" + "\u0301" * 100, "\u0301a", "Z" + "".join(map(chr, range(0x300, 0x36F))), "e\u0301 é", "ก็็็็็็"],
        "joined": ["👩‍👩‍👧‍👦 👨🏿‍🚀", "🏴󠁧󠁢󠁥󠁮󠁧󠁿", "🇩🇪🇩", "a\u200d\u200db", "🤗" * 60, "क्‍ष", "می‌خواهم"],
        "long": ["a" * 2000, "🤗" * 200, " a" * 500, "\u0301a" * 300, "<b>" * 300],
        "markup": ["<script>alert(1)</script>", "<svg/onload=alert(1)>", "</style><b>", "<!--", "-->", "]]>", "&lt;&#60;",
                   "<![CDATA[x]]>", "<!DOCTYPE x [<!ENTITY a '&a;'>]>&a;", "<iframe srcdoc='x'>", "\"><img src=x onerror=a>",
                   "javascript:alert(1)", "</text><script>", "<?xml version='1.0'?>", "</script ><script>", "<base href=x>"],
        "templates": ["{{7*7}} {{{x}}}", "${7*7} `${x}`", "<%= 7*7 %>", "{% raw %}", "#{7*7}", "{0.__class__} {x!r}",
                      "%s %n %d %(x)s", "$HOME `id` $(id)", "\\u0041 \\x41 \\n \\", "{{constructor.constructor('x')()}}",
                      "__proto__ constructor toString", "[object Object]", "null undefined NaN true"],
        "formulas": ["=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "\t=1", "＝1", "$x^2$ $$", "\\frac{1}{0}", "$\\alpha_$",
                     "a^b_c ~ # % &", "\\end{document}", "\\input{/etc/passwd}"],
        "protocols": ["a\r\nSet-Cookie: x=1", "data: x\n\nevent: error", "../../etc/passwd", "C:\\users\\new", "%00 %2e%2e%2f",
                      "'; DROP TABLE x; --", "\x1b[31mred\x1b[0m", "\"},{\"a\":\"", "?sentence=b&model=gpt2#x", "\x00"],
    }  # fmt: skip


SENTENCES = [sentence for sentences in by_kind().values() for sentence in sentences]
SYNTAX = [s for kind in ("markup", "templates", "formulas", "protocols") for s in by_kind()[kind]]
