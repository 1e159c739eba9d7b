package viewer

import (
	"testing"

	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/read/entrystore"
	"github.com/lektordir/lektor/internal/testkit/manual"
)

// The manual documents all columns of -o, those of entries in the list that says when they are printed.
func TestManualColumns(t *testing.T) {
	lists := map[string][]cmdline.Column[*entrystore.Record]{}
	for _, c := range entrystore.Columns() {
		from := "These fields are printed as"
		switch {
		case c.Sparse:
			from = "These too, but JSON leaves them out if they are empty:"
		case c.Full:
			from = "These are printed on request, and as"
		case c.Extra:
			from = "These are printed on request only:"
		}
		lists[from] = append(lists[from], c)
	}
	for from, columns := range lists {
		manual.CheckColumns(t, "lektor-view.1", from, columns)
	}
	manual.CheckColumns(t, "lektor-view.1", ".Ss stats", statColumns)
	for _, by := range []string{"", "folder"} {
		manual.CheckColumns(t, "lektor-view.1", ".Ss count", countColumns(by))
	}
}
