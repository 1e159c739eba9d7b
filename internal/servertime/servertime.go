// Package servertime keeps the greatest Date that servers have sent to the fetchers of a
// lektor-dir: one line, RFC 3339. With it, programs recognise a clock of this machine that
// is far ahead, before they delete what only looks old.
package servertime

import (
	"os"
	"path/filepath"
	"time"

	"github.com/lektordir/lektor/internal/atomicfile"
)

// File has the date, relative to the lektor-dir.
const File = "etc/fetch/date"

// MaxGap is how far the clock may be ahead of the last sign of the time to be believed
// without a word from the user.
const MaxGap = 31 * 24 * time.Hour

// Last returns the date on record of the lektor-dir at path, and the zero time if there is
// none.
func Last(path string) time.Time {
	line, err := atomicfile.Line(filepath.Join(path, File))
	if err != nil {
		return time.Time{}
	}
	t, _ := time.Parse(time.RFC3339, line)
	return t
}

// Note records the greatest Date of the answers of a run, unless a later one is on
// record. One that is in the future by now, as a clock that was wrong has left it, is
// replaced. The caller has made sure that no link leads out of the lektor-dir.
func Note(path string, date, now time.Time) error {
	old := Last(path)
	if date.IsZero() || !date.After(old) && !old.After(now.Add(24*time.Hour)) {
		return nil
	}
	file := filepath.Join(path, File)
	if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
		return err
	}
	return atomicfile.WriteUnsynced(file, []byte(date.UTC().Format(time.RFC3339)+"\n"))
}
