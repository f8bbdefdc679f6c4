"""A table: the same cells in every form."""

import csv
import io

from chainroute.runtime.table import Table


def test_texts_markdown_and_csv_hold_the_same_cells():
    table = Table("t", ["task", "gap %", "s"], [["a", 1.23456, 2.0], ["b", None, 12345.67]], ["note"])
    assert table.texts() == [["a", "1.235", "2.0"], ["b", "", "12345.7"]]
    assert "| a | 1.235 | 2.0 |" in table.markdown()
    first, _ = csv.DictReader(io.StringIO(table.csv()))
    assert first == {"task": "a", "gap %": "1.23456", "s": "2.0"}
    assert table.as_dict()["rows"][1] == {"task": "b", "gap %": None, "s": 12345.67}
