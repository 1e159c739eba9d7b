package feedstate

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/lektordir/lektor/internal/dir/commit"
	"github.com/lektordir/lektor/internal/files/atomicfile"
	"github.com/lektordir/lektor/internal/http/feedurl"
	"github.com/lektordir/lektor/internal/http/httpmsg"
	"github.com/lektordir/lektor/lektordir"
)

// setting is a setting of a subscription. Its value is a file, which users can also write with
// an editor.
type setting struct {
	name  string
	path  string // the file, relative to src/$feed
	lines bool   // it may have several lines
	// check returns an error for a value that a user may not set. A file may nevertheless have such
	// a value.
	check func(value string) error
}

// allSettings holds the settings in the order in which they are shown.
var allSettings = []setting{
	{fileURL, urlFile, false, feedurl.Check},
	{"alias", aliasFile, false, checkAlias},
	{fileInterval, intervalFile, false, checkInterval},
	{fileOnUpdate, "etc/fetch/on-update", false, checkOnUpdate},
	{"categories", categoryFile, true, checkNothing},
	{fileHeaders, "etc/fetch/headers", true, func(v string) error { _, err := httpmsg.ParseHeaders(v); return err }},
	{fileFilter, "etc/fetch/filter", false, checkNothing},
	{fileOrigin, originFile, false, checkNothing},
	{filePrivate, privateFile, false, oneOf("private", "yes", "no")},
	{"history", historyFile, false, oneOf("history", "on", "off")},
	{"keep", keepFile, false, checkKeep},
	{"fulltext", fullTextFile, false, oneOf("fulltext", "on", "off")},
	{filePaused, pausedFile, false, oneOf("paused", "on", "off")},
}

// Settings holds the names of all settings.
var Settings = func() (names []string) {
	for _, s := range allSettings {
		names = append(names, s.name)
	}
	return names
}()

// inState reports whether the file belongs to [State].
func (s *setting) inState() bool { return filepath.Dir(s.path) == "etc/fetch" }

func checkNothing(string) error { return nil }

func checkAlias(v string) error {
	if oneLine(v) == "" {
		return errors.New("an alias cannot be empty")
	}
	return nil
}

var checkOnUpdate = oneOf("on-update", "unread", "deliver", "ignore")

// oneOf returns a check for a setting with fixed values.
func oneOf(name string, values ...string) func(string) error {
	return func(v string) error {
		if slices.Contains(values, v) {
			return nil
		}
		last := len(values) - 1
		return fmt.Errorf("%s must be %s or %s, not %q", name, strings.Join(values[:last], ", "), values[last], v)
	}
}

// UnknownSettingError reports a setting that does not exist.
type UnknownSettingError struct{ Key string }

func (e *UnknownSettingError) Error() string {
	return fmt.Sprintf("there is no setting %q; the settings are %s", e.Key, strings.Join(Settings, ", "))
}

// OfSubscriptions reports whether only a subscription uses a setting. The others also apply to the feeds
// that other programs deliver.
func OfSubscriptions(key string) bool {
	return slices.Contains([]string{fileURL, fileInterval, fileHeaders, fileFilter, fileOrigin, "history", "fulltext",
		filePaused}, key)
}

func findSetting(key string) (*setting, error) {
	for i := range allSettings {
		if allSettings[i].name == key {
			return &allSettings[i], nil
		}
	}
	return nil, &UnknownSettingError{Key: key}
}

// Get returns a setting, "" if it is not set. Categories and headers may have several lines.
func Get(d *lektordir.Dir, hash, key string) (string, error) {
	s, err := findSetting(key)
	if err != nil {
		return "", err
	}
	if key == filePrivate && isPrivate(d, hash) {
		return "yes", nil
	}
	data, err := atomicfile.Read(filepath.Join(d.Join("src", hash), s.path), maxFile)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	value := strings.TrimRight(string(data), "\n")
	if !s.lines && !s.inState() {
		value, _, _ = strings.Cut(value, "\n") // see [atomicfile.Line]
	}
	return value, err
}

// Check returns an error if a value cannot be set. For an interval that is too short it is a
// [*ShortIntervalError]; [SetForced] sets it nevertheless.
func Check(key, value string) error {
	s, err := findSetting(key)
	if err != nil {
		return err
	}
	return s.check(value)
}

// Set sets a setting of a subscription durably. The error may be a [*commit.BusyError].
func Set(w *commit.Writer, d *lektordir.Dir, hash, key, value string, record Recorder) error {
	if err := Check(key, value); err != nil {
		return err
	}
	return SetForced(w, d, hash, key, value, record)
}

// SetForced is like [Set], but allows an interval below [MinInterval].
func SetForced(w *commit.Writer, d *lektordir.Dir, hash, key, value string, record Recorder) error {
	s, err := findSetting(key)
	if err != nil {
		return err
	}
	if err := s.check(value); err != nil && !errors.As(err, new(*ShortIntervalError)) {
		return err
	}
	if s.inState() && !s.lines && strings.ContainsAny(value, "\n\x00") {
		return fmt.Errorf("%s must be one line", key)
	}
	return Restore(w, d, hash, key, value, record)
}

// Restore sets a setting to a value that [Get] returned, also if [Set] refuses the value: a user can
// write any value into the file.
func Restore(w *commit.Writer, d *lektordir.Dir, hash, key, value string, record Recorder) error {
	s, err := findSetting(key)
	if err != nil {
		return err
	}
	if err := mayRun(d, hash, key, value); err != nil {
		return err
	}
	return change(w, d, hash, func(st *State) error { return s.recordAndSet(d, hash, st, value, record) })
}

// mayRun returns an error if the value of a setting is a command that would not be run, so that setting
// it fails now, and not every fetch.
func mayRun(d *lektordir.Dir, hash, key, value string) error {
	if key == fileFilter || key == fileURL && strings.HasPrefix(strings.ToLower(value), "exec:") {
		return Trusted(d, hash, "")
	}
	return nil
}

// RestoreURL is [Restore] for a url with its origin, which may be "". At no time is there one without
// the other, also for a feed that was left.
func RestoreURL(w *commit.Writer, d *lektordir.Dir, hash, url, origin string, record Recorder) error {
	if strings.ContainsAny(url+origin, "\n\x00") || url == "" {
		return errors.New("url and origin must be one line each")
	}
	if err := mayRun(d, hash, fileURL, url); err != nil {
		return err
	}
	return change(w, d, hash, func(st *State) error {
		if old, err := valueOf(d, hash, fileURL); err == nil {
			record.note(d, Change{hash, fileURL, old, withOrigin(url, origin)})
		}
		return st.writeURL(d, hash, url, origin)
	})
}

// writeURL writes a url with its origin, which may be "".
func (s *State) writeURL(d *lektordir.Dir, hash, url, origin string) error {
	if origin == "" {
		return errors.Join(s.write(fileURL, url), Protect(d, hash))
	}
	if err := s.writeOnly(fileOrigin, origin); err != nil {
		return err
	}
	if err := s.writeOnly(fileURL, url); err != nil {
		return err
	}
	return Protect(d, hash)
}

// recordAndSet is set, after the change was recorded.
func (s *setting) recordAndSet(d *lektordir.Dir, hash string, st *State, value string, record Recorder) error {
	if c, ok := changeOf(d, hash, s, value); ok {
		record.note(d, c)
	}
	return s.set(d, hash, st, value)
}

// set sets a setting durably; "" removes it. The caller must hold the feed's lock.
func (s *setting) set(d *lektordir.Dir, hash string, st *State, value string) error {
	switch {
	case s.inState() && value == "":
		return st.Unset(s.name)
	case s.inState():
		if err := st.write(s.name, value); err != nil {
			return err
		}
		return Protect(d, hash)
	case s.path == fullTextFile && value != "on":
		if err := removePages(d, hash); err != nil {
			return err
		}
	}
	if err := s.write(d, hash, value); err != nil {
		return err
	}
	// If the file has the value already, nothing was written. A killed process may have written
	// it without a sync of the directory.
	err := atomicfile.SyncDir(filepath.Dir(filepath.Join(d.Join("src", hash), s.path)))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// write writes the file of a setting that is not part of the state, unless it has the value.
func (s *setting) write(d *lektordir.Dir, hash, value string) error {
	if s.path == categoryFile {
		return SetCategories(d, hash, strings.Split(value, "\n"), atomicfile.Write)
	}
	area, name := filepath.Split(strings.TrimPrefix(s.path, "etc/"))
	return recordDurably(d, hash, strings.TrimSuffix(area, "/"), name, asLines(oneLine(value)))
}

// Unset removes a setting, so that the default applies. The url cannot be unset, because that would end
// the subscription; see [Remove].
func Unset(w *commit.Writer, d *lektordir.Dir, hash, key string, record Recorder) error {
	s, err := findSetting(key)
	if err != nil {
		return err
	}
	if key == fileURL {
		return errors.New("the url cannot be unset; to unsubscribe, use rm")
	}
	return change(w, d, hash, func(st *State) error { return s.recordAndSet(d, hash, st, "", record) })
}

// SameAlias removes the alias of a feed if it equals the feed's own name. The removal is not synced. If
// another process holds the feed's lock, the alias stays.
func SameAlias(w *commit.Writer, d *lektordir.Dir, hash string) error {
	if f, _ := d.ReadFeed(hash); f == nil || f.Alias == "" || oneLine(f.Name) != oneLine(f.Alias) {
		return nil
	}
	err := change(w, d, hash, func(*State) error {
		if f, _ := d.ReadFeed(hash); f == nil || oneLine(f.Name) != oneLine(f.Alias) {
			return nil
		}
		return remove(filepath.Join(d.Join("src", hash), aliasFile))
	})
	if commit.IsBusy(err) {
		return nil
	}
	return err
}

// change changes the state of a feed under its lock.
func change(w *commit.Writer, d *lektordir.Dir, hash string, f func(*State) error) error {
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
	st, err := Load(d, hash)
	if err != nil {
		return err
	}
	return f(st)
}
