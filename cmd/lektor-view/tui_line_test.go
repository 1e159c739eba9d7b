package main

import "testing"

// TestTUICommandLine: a command that is typed works on the chosen entry, and undo covers it. Tab
// completes commands by the program's own table.
func TestTUICommandLine(t *testing.T) {
	t.Parallel()
	r := read(t, readerDir(t, false), 80, 24, "")
	r.see(t, `Gamma +3`)
	r.Keys("l", "j")
	r.see(t, `>N .*three 1`)
	r.Keys(":")
	r.Type("mark --se")
	r.Keys("Tab")
	r.see(t, `:mark --set`)
	r.Type("F")
	r.Keys("Enter")
	r.place(t, 8, "cur;2,F")
	r.see(t, `>NF .*three 1`)
	r.Keys("u")
	r.see(t, `>N  .*three 1`)
	r.Keys(":")
	r.Type("count --by feed -o '{{.feed}} has {{.unread}}'")
	r.Keys("Enter")
	r.see(t, `Beta has 3`)
	r.Keys("q", ":")
	r.Type("q")
	r.Keys("Enter")
	r.ended(t, 0)
}
