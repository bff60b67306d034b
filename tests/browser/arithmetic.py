"""Reads the arithmetic on the page as a person does: the printed numbers, worked out again from nothing else."""

import math
import re

NUMBER = r"(?:\d+(?:\.\d+)?(?:×10[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+)?|∞)"
PLAIN = str.maketrans("−⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "--0123456789")
TOKEN = re.compile(rf"\s*({NUMBER}|e\^\(|[-+−×/()√])")


def read_number(text: str) -> float:
    """The value that a reader takes a printed number for."""
    text = text.strip().removeprefix("+")
    if text.endswith("∞"):
        return -math.inf if text[0] == "−" else math.inf
    return float(text.replace("×10", "e").translate(PLAIN))


def unit(text: str) -> float:
    """What one in the last printed digit is worth; 0 for a bare whole number, which is exact."""
    mantissa, _, exponent = text.strip().partition("×10")
    digits = len(mantissa.partition(".")[2])
    if not digits and not exponent:
        return 0.0
    return 10.0 ** (int(exponent.translate(PLAIN)) if exponent else 0) * 10.0**-digits


def same_digits(printed: str, value: float | None) -> bool:
    """Whether the printed number is this value, rounded to the digits shown."""
    shown = read_number(printed)
    if value is None or math.isinf(value):
        return shown == (-math.inf if value is None else value)
    return abs(shown - value) <= unit(printed) * 0.5 + 1e-7 * max(1.0, abs(value)) * (unit(printed) > 0)


class NotArithmetic(Exception):  # noqa: N818
    """Words, or a formula with names in it."""


def _tokens(text: str) -> list[str]:
    found, at = [], 0
    text = text.strip()
    while at < len(text):
        match = TOKEN.match(text, at)
        if not match:
            raise NotArithmetic(text)
        found.append(match[1])
        at = match.end()
    if not found:
        raise NotArithmetic(text)
    return found


def terms(text: str) -> list[float]:
    """The summands of an expression, each worked out."""
    tokens = _tokens(text)
    at = 0

    def peek() -> str:
        return tokens[at] if at < len(tokens) else ""

    def take() -> str:
        nonlocal at
        at += 1
        return tokens[at - 1]

    def factor() -> float:
        token = take() if at < len(tokens) else ""
        if token in ("−", "-"):
            return -factor()
        if token == "+":
            return factor()
        if token == "√":
            return math.sqrt(factor())
        if token in ("(", "e^("):
            inner = sum(expression())
            if at >= len(tokens) or take() != ")":
                raise NotArithmetic(text)
            return inner if token == "(" else math.exp(inner)
        if not re.fullmatch(NUMBER, token):
            raise NotArithmetic(text)
        return read_number(token)

    def product() -> float:
        value = factor()
        while peek() in ("×", "/"):
            value = value * factor() if take() == "×" else value / factor()
        return value

    def expression() -> list[float]:
        found = [product()]
        while peek() in ("+", "−", "-"):
            found.append(product() if take() == "+" else -product())
        return found

    found = expression()
    if at < len(tokens):
        raise NotArithmetic(text)
    return found


SUMMARY = re.compile(
    rf"\d+ positive (?:products?|terms?) \+({NUMBER}), \d+ negative (?:products? )?−({NUMBER})"
    rf"(?:, bias (−?{NUMBER}))?: together "
)


def _readable(line: str) -> str:
    """The words before the arithmetic left out; "3 positive products +A, 2 negative −B: together" as A − B."""
    if summary := SUMMARY.match(line):
        up, down, bias = summary.groups()
        return f"{up} − {down}{f' + ({bias})' if bias else ''} {line[summary.end() :]}"
    before, colon, after = line.rpartition(": ")
    return after if colon and not re.search("[=≈]", before) else line


def _check(left: str, right: str) -> bool:
    """Whether `left` = `right` can be checked; AssertionError where it is false."""
    try:
        a, b = terms(left), terms(right)
    except (NotArithmetic, ZeroDivisionError):
        return False
    printed = re.findall(rf"−?\(?−?{NUMBER}", right)
    if len(b) > 1 and len(a) == len(b) and len(printed) == len(b):  # products, each worked out
        pairs = zip(a, b, printed, strict=True)
    else:
        pairs = [(sum(a), sum(b), printed[-1])] if len(b) == 1 and len(printed) == 1 else []
    for computed, shown, digits in pairs:
        slack = unit(digits.replace("(", "")) / 2 + 1e-9 * max(1.0, abs(computed))
        assert math.isinf(shown) or abs(computed - shown) <= slack, f"{left.strip()} = {right.strip()} is {computed}"
    return bool(pairs)


def check_lines(arithmetic: str) -> int:
    """Every "=" in the text, worked out again; how many there were. A line may go on from the one before."""
    checked, last = 0, ""
    for line in filter(None, map(str.strip, arithmetic.splitlines())):
        if "\t" in line:  # a row of the table
            continue
        parts = re.split(r"\s*([=≈])\s*", _readable(line))
        left = parts[0] or last
        for sign, right in zip(parts[1::2], parts[2::2], strict=True):
            if sign == "=":
                checked += _check(left, right)
            left = right
        last = left
    return checked


def check_table(rows: list[list[str]]) -> int:
    """The same for the table of all products: each row, and the sum at its end."""
    checked, total = 0, 0.0
    for row in rows:
        checked += check_lines(" ".join(row[1:]))
        last = row[-1].lstrip("=≈ ")
        if row[0] == "sum" and re.search("^=", row[-1]):
            assert _check(f"{total:.12f}", last), (total, row)
            checked += 1
        elif re.fullmatch(f"−?{NUMBER}", last):
            total += read_number(last)
    return checked
