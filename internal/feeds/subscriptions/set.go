package subscriptions

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/lektordir/lektor/internal/dir/commit"
	"github.com/lektordir/lektor/internal/feeds/feedfiles"
	"github.com/lektordir/lektor/internal/feeds/schedule"
	"github.com/lektordir/lektor/internal/feeds/settings"
	"github.com/lektordir/lektor/internal/feeds/spool"
	"github.com/lektordir/lektor/internal/files/atomicfile"
	"github.com/lektordir/lektor/lektordir"
)

// Set sets a setting of a subscription durably. The error may be a [*commit.BusyError].
func Set(w *commit.Writer, d *lektordir.Dir, hash, key, value string, record Recorder) error {
	if err := settings.Check(key, value); err != nil {
		return err
	}
	return Restore(w, d, hash, key, value, record)
}

// Restore is [Set] for a value that the caller has checked, or that [settings.Get] returned, also if Set refuses the
// value: a user can write any value into the file.
func Restore(w *commit.Writer, d *lektordir.Dir, hash, key, value string, record Recorder) error {
	s, err := settings.Lookup(key)
	if err != nil {
		return err
	}
	if err := mayRun(d, hash, key, value); err != nil {
		return err
	}
	return change(w, d, hash, func(st *schedule.State) error {
		if c, ok := changeOf(d, hash, s, value); ok {
			record.note(d, c)
		}
		return setDurably(s, d, hash, st, value)
	})
}

// Unset removes a setting, so that the default applies. The url cannot be unset, because that would end
// the subscription; see [Remove].
func Unset(w *commit.Writer, d *lektordir.Dir, hash, key string, record Recorder) error {
	if key == feedfiles.FileURL {
		return errors.New("the url cannot be unset; to unsubscribe, use rm")
	}
	return Restore(w, d, hash, key, "", record)
}

// mayRun returns an error if the value of a setting is a command that would not be run, so that setting
// it fails now, and not every fetch.
func mayRun(d *lektordir.Dir, hash, key, value string) error {
	if isCommand(key, value) {
		return feedfiles.Trusted(d, hash, "")
	}
	return nil
}

// RestoreURL is [Restore] for a url with its origin, which may be "". At no time is there one without
// the other, also for a feed that was left.
func RestoreURL(w *commit.Writer, d *lektordir.Dir, hash, url, origin string, record Recorder) error {
	if strings.ContainsAny(url+origin, "\n\x00") || url == "" {
		return errors.New("url and origin must be one line each")
	}
	if err := mayRun(d, hash, feedfiles.FileURL, url); err != nil {
		return err
	}
	return change(w, d, hash, func(st *schedule.State) error {
		if old, err := valueOf(d, hash, feedfiles.FileURL); err == nil {
			record.note(d, Change{hash, feedfiles.FileURL, old, withOrigin(url, origin)})
		}
		return writeURL(st, d, hash, url, origin)
	})
}

// writeURL writes a url with its origin, which may be "".
func writeURL(st *schedule.State, d *lektordir.Dir, hash, url, origin string) error {
	set := st.Change
	if origin != "" {
		if err := st.ChangeOnly(feedfiles.FileOrigin, origin); err != nil {
			return err
		}
		set = st.ChangeOnly
	}
	return errors.Join(set(feedfiles.FileURL, url), settings.Protect(d, hash))
}

// setDurably sets a setting durably; "" removes it. The caller must hold the feed's lock.
func setDurably(s *settings.Setting, d *lektordir.Dir, hash string, st *schedule.State, value string) error {
	switch {
	case s.InState():
		if err := st.Change(s.Name, value); err != nil {
			return err
		}
		return settings.Protect(d, hash)
	case s.Path == feedfiles.PathFullText && value != "on":
		if err := spool.RemovePages(d, hash); err != nil {
			return err
		}
	}
	if err := writeFile(s, d, hash, value); err != nil {
		return err
	}
	// If the file has the value already, nothing was written. A killed process may have written
	// it without a sync of the directory.
	_, err := atomicfile.Optional(0, atomicfile.SyncDir(filepath.Dir(d.Join("src", hash, s.Path))))
	return err
}

// writeFile writes the file of a setting that is not part of the state, unless it has the value.
func writeFile(s *settings.Setting, d *lektordir.Dir, hash, value string) error {
	if s.Path == feedfiles.PathCategories {
		return settings.SetCategories(d, hash, strings.Split(value, "\n"), atomicfile.Write)
	}
	area, name := filepath.Split(strings.TrimPrefix(s.Path, "etc/"))
	return feedfiles.In(d, hash, strings.TrimSuffix(area, "/")).RecordDurably(name, feedfiles.OneLine(value))
}

// change changes the state of a feed under its lock.
func change(w *commit.Writer, d *lektordir.Dir, hash string, f func(*schedule.State) error) error {
	t, err := w.Begin(hash)
	if err != nil {
		return err
	}
	defer t.Close()
	// An interrupted purge may just have been finished; a setting would create half a feed again.
	if _, err := os.Stat(d.Join("src", hash)); errors.Is(err, fs.ErrNotExist) {
		return &lektordir.NotFoundError{Name: hash, Feed: true}
	} else if err != nil {
		return err
	}
	st, err := schedule.Load(d, hash)
	if err != nil {
		return err
	}
	return f(st)
}
