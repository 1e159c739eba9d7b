package commit

import (
	"path/filepath"
	"time"

	"github.com/lektordir/lektor/internal/files/atomicfile"
)

// serverTimeFile holds the latest Date header that servers have sent to the fetchers of a lektor-dir, as a
// line in RFC 3339. By it, programs recognise that the clock of this machine is far ahead, before they
// delete entries that only look old.
const serverTimeFile = "etc/fetch/date"

// MaxClockGap is how far the clock may be ahead of the latest known time before the user must confirm
// it.
const MaxClockGap = 31 * 24 * time.Hour

// ServerTime returns the stored date of the lektor-dir at path, or the zero time.
func ServerTime(path string) time.Time {
	line, err := atomicfile.Line(filepath.Join(path, serverTimeFile))
	if err != nil {
		return time.Time{}
	}
	t, _ := time.Parse(time.RFC3339, line)
	return t
}

// RecordServerTime stores the latest Date of a run, unless the stored one is later. A stored date in the
// future, from a clock that was wrong, is replaced. The caller must have checked that no link
// leads out of the lektor-dir.
func RecordServerTime(path string, date, now time.Time) error {
	old := ServerTime(path)
	if date.IsZero() || !date.After(old) && !old.After(now.Add(24*time.Hour)) {
		return nil
	}
	file := filepath.Join(path, serverTimeFile)
	return atomicfile.InDir(file,
		func() error { return atomicfile.WriteUnsynced(file, []byte(date.UTC().Format(time.RFC3339)+"\n")) })
}
