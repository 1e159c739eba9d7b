package feeddir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/lektordir/lektor/internal/atomicfile"
	"github.com/lektordir/lektor/internal/units"
	"github.com/lektordir/lektor/lektordir"
)

// Settings are what a user can set of a subscription, in the order in which
// they are shown. The values are files; whoever likes it better writes them
// with an editor.
var Settings = []string{"url", "alias", "interval", "on-update", "categories", "headers", "filter"}

// settingFile is where a setting is kept, relative to src/$feed.
func settingFile(key string) string {
	switch key {
	case "alias":
		return aliasFile
	case "categories":
		return categoryFile
	}
	return "etc/fetch/" + key
}

// UnknownSettingError is returned for a setting that there is not.
type UnknownSettingError struct{ Key string }

func (e *UnknownSettingError) Error() string {
	return fmt.Sprintf("there is no setting %q; they are %s", e.Key, strings.Join(Settings, ", "))
}

func known(key string) error {
	for _, s := range Settings {
		if s == key {
			return nil
		}
	}
	return &UnknownSettingError{Key: key}
}

// Get gives a setting, "" when it is not set. Categories and headers may have
// several lines.
func Get(d *lektordir.Dir, hash, key string) (string, error) {
	if err := known(key); err != nil {
		return "", err
	}
	data, err := atomicfile.Read(filepath.Join(d.Join("src", hash), settingFile(key)), maxFile)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return strings.TrimRight(string(data), "\n"), err
}

// LeastInterval is the least time between two fetches that is set without
// force: more often nobody is asked by somebody who means well.
const LeastInterval = time.Minute

// Check tells whether a user can set a value. It asks for more than [Set]: an
// interval has a unit, as nobody who says 3 means seconds, and is not less than
// [LeastInterval] unless force is set.
func Check(key, value string, force bool) error {
	if err := check(key, value); err != nil || key != "interval" {
		return err
	}
	switch d, _ := units.ParseInterval(value); {
	case strings.Trim(strings.TrimSpace(value), "0123456789") == "":
		return fmt.Errorf("%q has no unit: is it %[1]sm, %[1]sh or %[1]sd?", strings.TrimSpace(value))
	case d < LeastInterval && !force:
		return fmt.Errorf("%q: an interval is at least a minute; --force allows less", value)
	}
	return nil
}

func check(key, value string) error {
	if err := known(key); err != nil {
		return err
	}
	if key == "alias" && oneLine(value) == "" {
		return errors.New("an alias cannot be empty")
	}
	if f := userFiles[key]; f != nil {
		return f(value)
	}
	return nil
}

// Set sets a setting of a subscription; it is on the disk when Set returns. The
// error may be a [*lektordir.BusyError].
func Set(w *lektordir.Writer, d *lektordir.Dir, hash, key, value string) error {
	if err := check(key, value); err != nil {
		return err
	}
	if key == "filter" || key == "url" && strings.HasPrefix(strings.ToLower(value), "exec:") {
		// Refused now rather than at every fetch.
		if err := Trusted(d, hash, ""); err != nil {
			return err
		}
	}
	return change(w, d, hash, func(st *State) error {
		switch key {
		case "alias":
			if err := d.InsideSrc(hash, "view"); err != nil {
				return err
			}
			path := filepath.Join(d.Join("src", hash), aliasFile)
			if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
				return err
			}
			return atomicfile.Write(path, []byte(oneLine(value)+"\n"))
		case "categories":
			return SetCategories(d, hash, strings.Split(value, "\n"), atomicfile.Write)
		}
		return st.SetUser(key, value)
	})
}

// Unset removes a setting, so that the default holds. The url cannot be
// removed: the feed would not be subscribed to.
func Unset(w *lektordir.Writer, d *lektordir.Dir, hash, key string) error {
	if err := known(key); err != nil {
		return err
	}
	if key == "url" {
		return errors.New("the url cannot be unset; to unsubscribe there is rm")
	}
	return change(w, d, hash, func(st *State) error {
		switch key {
		case "alias", "categories":
			if err := d.InsideSrc(hash, "view"); err != nil {
				return err
			}
			return atomicfile.Remove(filepath.Join(d.Join("src", hash), settingFile(key)))
		}
		return st.Unset(key)
	})
}

// SameAlias removes the alias of a feed that calls itself so. That need not
// survive a power cut, and a feed that another process has at the moment keeps
// its alias.
func SameAlias(w *lektordir.Writer, d *lektordir.Dir, hash string) error {
	if f, _ := d.ReadFeed(hash); f == nil || f.Alias == "" || oneLine(f.Name) != oneLine(f.Alias) {
		return nil
	}
	err := change(w, d, hash, func(*State) error {
		if f, _ := d.ReadFeed(hash); f == nil || oneLine(f.Name) != oneLine(f.Alias) {
			return nil
		}
		return remove(filepath.Join(d.Join("src", hash), aliasFile))
	})
	if inUse := (*lektordir.BusyError)(nil); errors.As(err, &inUse) {
		return nil
	}
	return err
}

// change changes the state of a feed under its lock.
func change(w *lektordir.Writer, d *lektordir.Dir, hash string, f func(*State) error) error {
	t, err := w.Begin(hash)
	if err != nil {
		return err
	}
	defer t.Close()
	st, err := Load(d, hash)
	if err != nil {
		return err
	}
	defer st.Close()
	return f(st)
}
