"""The page about compaction: are its picture and its table those that the simulator makes today?"""

from __future__ import annotations

import xml.etree.ElementTree as xml

from benchmarks import compaction
from benchmarks.svg import Panel, picture


def test_a_tiny_simulation_has_a_line_for_every_case(capsys):
    lines = compaction.main(["--writes", "12"]).splitlines()
    assert len(lines) == 2 + len(compaction.CASES)
    assert len({line.count("|") for line in lines}) == 1
    assert capsys.readouterr().out.splitlines() == lines


def test_the_page_is_up_to_date():
    text = compaction.PAGE.read_text()
    assert compaction.page(text, compaction.table(compaction.WRITES)) == text
    assert compaction.PICTURE.read_text() == compaction.drawing()


def test_charts_are_well_formed_and_inside_their_frame():
    panels = [
        Panel("a & b", [("x", [0, 5, 3]), ("y", [1, 1, 7])], stacked=True),
        Panel("c", [("z", [0.5, 0.25, 11.0])], unit="x"),
    ]
    root = xml.fromstring(picture("<t>", panels, "c"))
    width, height = (float(number) for number in root.attrib["viewBox"].split()[2:])
    shapes = [element for element in root.iter() if "points" in element.attrib]
    assert len(shapes) == 3
    for shape in shapes:
        for x, y in (point.split(",") for point in shape.attrib["points"].split()):
            assert 0 <= float(x) <= width
            assert 0 <= float(y) <= height
