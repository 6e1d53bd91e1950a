"""Tables in Excel workbooks, which need openpyxl."""

from __future__ import annotations

import io
import warnings
import zipfile
from typing import Any, BinaryIO

from otprop._optional import import_optional, openpyxl
from otprop._validation import ParameterError, did_you_mean
from otprop.files._arrow import Column
from otprop.files._columnar import ArrowTable
from otprop.files._distinct import SPREADSHEET_ERRORS
from otprop.files._errors import TableError, file_error, listed, one_line
from otprop.files._limits import check_workbook
from otprop.files._table import InputFile
from otprop.files._writers import Writer, check_sheet_size, set_cell, to_cell

_NOT_KEPT = {"xl/charts/": "charts", "xl/media/": "images", "xl/pivotTables/": "pivot tables"}


class ExcelTable(ArrowTable):
    """The first visible sheet of a workbook, or the one that was named: its first row that is not empty has the names.

    Empty rows and empty columns are ignored. New columns are written into the same sheet; other sheets,
    formulas and styles are kept.
    """

    parses_text = True

    def __init__(self, file: InputFile, sheet: str | None = None) -> None:
        super().__init__(file, "xlsx")
        import_optional("openpyxl", "excel")
        self.data = file.data
        check_workbook(self.data, self.origin)
        book = self._load(data_only=True, read_only=True)
        sheets = [sheet for sheet in book.worksheets if sheet.sheet_state == "visible"] or book.worksheets
        if not sheets:
            raise file_error(self.origin, "is empty: it has no sheet of cells")
        titles = [one.title for one in book.worksheets]
        if sheet is not None and sheet not in titles:
            there = did_you_mean(sheet, titles) or f"; there are {listed(titles)}."
            raise ParameterError("sheet", f"={sheet!r} is not in {self.origin}{there}")
        self.title = sheets[0].title if sheet is None else sheet
        if len(sheets) > 1 and sheet is None:
            self._note(f"the first sheet, {self.title!r}, is read; others: {listed(s.title for s in sheets[1:])}")
        self._read(book[self.title])
        book.close()

    def _load(self, **options: Any) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # openpyxl's, on extensions of other programs
            try:
                return openpyxl.load_workbook(io.BytesIO(self.data), **options)
            except Exception as error:  # whatever is damaged, from XML to styles
                raise self._damaged(error) from error

    def _damaged(self, error: Exception) -> TableError:
        return file_error(self.origin, f"is cut short or damaged ({one_line(error)})")

    def _read(self, sheet: Any) -> None:
        try:
            sheet.reset_dimensions()  # those in the file may be wrong
            rows = [
                (number, row)
                for number, row in enumerate(sheet.iter_rows(values_only=True), start=1)
                if any(value is not None for value in row)
            ]
        except Exception as error:  # sheets are parsed only now
            raise self._damaged(error) from error
        if not rows:
            raise file_error(self.origin, "is empty: it has no column names and no rows")
        width = max(len(row) for _, row in rows)
        cells = [[_value(row[j]) if j < len(row) else None for _, row in rows] for j in range(width)]
        self.sheet_columns = [j for j in range(width) if any(value is not None for value in cells[j])]
        self.header_row, self.sheet_rows = rows[0][0], [number for number, _ in rows[1:]]
        self._set_names(["" if cells[j][0] is None else str(cells[j][0]).strip() for j in self.sheet_columns])
        self._set_values((name, cells[j][1:]) for name, j in zip(self.names, self.sheet_columns, strict=True))

    def _writer(self, added: dict[str, Any], fill: tuple[str, Column] | None, excel_safe: bool) -> Writer:
        first = self.sheet_columns[-1] + 2
        check_sheet_size(self.sheet_rows[-1], first + len(added))
        values = {
            first + j: [to_cell(value, name) for value in [name, *array.to_pylist()]]
            for j, (name, array) in enumerate(added.items())
        }
        if fill is not None:
            position = self.sheet_columns[self.names.index(fill[0])] + 1
            values[position] = [None, *(to_cell(value, fill[0]) for value in self._new_values(fill))]
        with zipfile.ZipFile(io.BytesIO(self.data)) as archive:
            members = archive.namelist()
        for folder, what in _NOT_KEPT.items():
            if any(name.startswith(folder) for name in members):
                self._note(f"{what} of the workbook are not written to the output")

        def write(stream: BinaryIO) -> None:
            book = self._load()
            sheet = book[self.title]
            for merged in list(sheet.merged_cells.ranges):
                if any(merged.min_col <= column <= merged.max_col for column in values):
                    sheet.unmerge_cells(str(merged))  # only its first cell could be written
            for column, cells in values.items():
                for row, value in zip([self.header_row, *self.sheet_rows], cells, strict=True):
                    if value is not None:
                        set_cell(sheet.cell(row, column), value)
            book.save(stream)

        return write


def _value(value: Any) -> Any:
    return None if isinstance(value, str) and (value in SPREADSHEET_ERRORS or value in ("", "#N/A")) else value
