package htmltext

import (
	"slices"
	"strings"

	"github.com/lektordir/lektor/internal/text/termsafe"
)

// table is an open table. It is written at its end, when the widths of its columns are known. If
// a cell contains blocks, the table is used for layout: its rows so far are spilled, and the rest
// is written as text.
type table struct {
	rows [][]string // rows that have ended
	row  []string   // cells of the open row that have ended
	cell bool       // a cell is open; its text is the paragraph
}

// tableTag handles a tag within a table, and reports whether the tag belongs to tables.
func (r *renderer) tableTag(tag string, end bool) bool {
	t := r.table
	switch tag {
	case "td", "th":
		r.endCell()
		t.cell = !end
	case "tr", "thead", "tbody", "tfoot":
		r.endRow()
	case "caption":
		if len(t.rows)+len(t.row) > 0 || t.cell {
			return false
		}
		r.flush()
	case "table":
		if !end {
			return false
		}
		r.endTable()
	default:
		return false
	}
	return true
}

func (r *renderer) endCell() {
	if r.link.target != "" {
		r.endNote()
	}
	text := strings.Trim(string(r.para), " \n")
	if r.table.cell || text != "" {
		r.table.row = append(r.table.row, text)
	}
	r.table.cell = false
	r.para, r.link.from = r.para[:0], 0
}

func (r *renderer) endRow() {
	r.endCell()
	if t := r.table; slices.ContainsFunc(t.row, func(cell string) bool { return cell != "" }) {
		t.rows = append(t.rows, t.row)
	}
	r.table.row = nil
}

// endTable writes the table. Columns are aligned if it has several rows and fits the width.
func (r *renderer) endTable() {
	r.endRow()
	rows := r.table.rows
	r.table = nil
	var widths []int
	simple := len(rows) > 1
	for _, row := range rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			if len(row) > 1 { // a single cell is a heading over all columns
				widths[i] = max(widths[i], termsafe.Width(cell))
			}
			simple = simple && !strings.Contains(cell, "\n")
		}
	}
	total := -len(between)
	for _, w := range widths {
		total += w + len(between)
	}
	if !simple || len(widths) < 2 || total > r.out.room() {
		r.writeRows(rows)
	} else {
		for _, row := range rows {
			for i, cell := range row[:len(row)-1] {
				row[i] = termsafe.Pad(cell, widths[i])
			}
			r.out.line(strings.Join(row, between))
		}
	}
	r.block(2)
}

// between separates the cells of a row.
const between = " | "

// writeRows writes rows without alignment.
func (r *renderer) writeRows(rows [][]string) {
	for _, row := range rows {
		r.para = r.para[:0]
		r.joinCells(row)
		r.flush()
		r.out.gap = max(r.out.gap, 1)
	}
}

func (r *renderer) joinCells(row []string) {
	i := slices.IndexFunc(row, func(cell string) bool { return cell != "" })
	if i >= 0 {
		r.para = append(r.para, row[i]...)
		for _, cell := range row[i+1:] {
			r.collapse(between)
			r.para = append(r.para, cell...)
		}
	}
}

// spill ends the open table early: it writes the rows read so far, and the rest becomes plain text.
func (r *renderer) spill() {
	t := r.table
	if t == nil {
		return
	}
	r.table = nil
	text, target, from := slices.Clone(r.para), r.link.target, r.link.from
	r.link.target = ""
	r.writeRows(t.rows)
	r.para = r.para[:0]
	r.joinCells(t.row)
	r.cells = len(t.row)
	if t.cell {
		if r.cells++; len(r.para) > 0 {
			r.collapse(between)
		}
	}
	r.link.target, r.link.from = target, from+len(r.para)
	r.para = append(r.para, text...)
}
