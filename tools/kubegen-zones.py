#!/usr/bin/python3
"""Writes src/codec/time_zone_rows.inc: the time zones that Go knows, with their offsets from UTC.

    tools/kubegen-zones.py [GOROOT]

A zone is the offset before its first change, the changes as seconds since the one before and the number of the offset from then
on, and the rule that holds behind the last one. Zones with the same changes and rule share them.
"""
import pathlib
import re
import struct
import subprocess
import sys
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
RULE = re.compile(r"(?:<[^>]+>|[A-Za-z]+)(-?[0-9:]+)(?:(?:<[^>]+>|[A-Za-z]+)(-?[0-9:]+)?"
                  r",M([0-9.]+)(?:/(-?[0-9:]+))?,M([0-9.]+)(?:/(-?[0-9:]+))?)?$")


def seconds(text):
    """Of "5:30" or "-1"."""
    sign = -1 if text.startswith("-") else 1
    parts = [int(part) for part in text.lstrip("-+").split(":")] + [0, 0]
    return sign * (parts[0] * 3600 + parts[1] * 60 + parts[2])


def read_rule(text):
    """The offsets in standard and summer time, and when each begins: month, week, day of the week, second of the day."""
    standard, summer, begin, begin_at, end, end_at = RULE.match(text).groups()
    offset = -seconds(standard)
    if not begin:
        return (offset, offset, (0, 0, 0, 0), (0, 0, 0, 0))
    other = -seconds(summer) if summer else offset + 3600
    return (offset, other, (*map(int, begin.split(".")), seconds(begin_at or "2")), (*map(int, end.split(".")), seconds(end_at or "2")))


def first_type(types, indexes):
    """As Go decides which offset holds before the first change."""
    if 0 not in indexes:
        return 0
    if indexes and types[indexes[0]][1]:
        for number in range(indexes[0] - 1, -1, -1):
            if not types[number][1]:
                return number
    return next((number for number, kind in enumerate(types) if not kind[1]), 0)


def read_zone(data):
    """The first offset, changes (second, offset), and the rule."""
    def counts(at):
        return struct.unpack(">6L", data[at + 20:at + 44])
    utc, standard, leap, changes, types, letters = counts(0)
    at = 44 + changes * 5 + types * 6 + letters + leap * 8 + standard + utc
    utc, standard, leap, changes, types, letters = counts(at)
    at += 44
    times = struct.unpack(f">{changes}q", data[at:at + 8 * changes])
    at += 8 * changes
    indexes = list(data[at:at + changes])
    at += changes
    kinds = [struct.unpack(">lBB", data[at + 6 * i:at + 6 * i + 6]) for i in range(types)]
    at += 6 * types + letters + leap * 12 + standard + utc
    offset = first = kinds[first_type(kinds, indexes)][0]
    found = []
    for number, (time, index) in enumerate(zip(times, indexes)):
        # The last one stays even if the offset does, because the rule holds from it on.
        if kinds[index][0] != offset or number == changes - 1:
            offset = kinds[index][0]
            found.append((time, offset))
    return first, tuple(found), read_rule(data[at:].decode().strip())


def main():
    goroot = sys.argv[1] if len(sys.argv) > 1 else subprocess.run(
        ["go", "env", "GOROOT"], check=True, capture_output=True, text=True).stdout.strip()
    names, zones, rules, offsets, changes = [], {}, {}, {}, []
    with zipfile.ZipFile(pathlib.Path(goroot) / "lib/time/zoneinfo.zip") as archive:
        for name in sorted(name for name in archive.namelist() if not name.endswith("/")):
            zone = read_zone(archive.read(name))
            if zone not in zones:
                start, texts = zone[1][0][0] if zone[1] else 0, []
                before = start
                for time, offset in zone[1]:
                    assert 0 <= time - before < 2**32
                    texts.append(f"{{{time - before},{offsets.setdefault(offset, len(offsets))}}},")
                    before = time
                rule = rules.setdefault(zone[2], len(rules))
                zones[zone] = (len(zones), f"ZONE({zone[0]}, {start}, {len(changes)}, {len(texts)}, {rule})")
                changes += texts
            names.append(f'NAME("{name}", {zones[zone][0]})')
    lines, line = [], ""
    for text in changes:
        if len(line) + len(text) > 130:
            lines.append(line)
            line = ""
        line += text
    rows = [f"RULE({r[0]}, {r[1]}, {', '.join(map(str, r[2]))}, {', '.join(map(str, r[3]))})" for r in rules]
    parts = [("NAME", names), ("ZONE", [row for _, row in zones.values()]), ("RULE", rows),
             ("OFFSETS", [", ".join(map(str, offsets)) + ","]), ("CHANGES", lines + [line])]
    text = "".join(f"#ifdef {name}\n" + "\n".join(rows) + "\n#endif\n" for name, rows in parts)
    (ROOT / "src/codec/time_zone_rows.inc").write_text(
        "/* Made by tools/kubegen-zones.py from the time zones of Go: do not edit. */\n/* clang-format off */\n" + text)


if __name__ == "__main__":
    main()
