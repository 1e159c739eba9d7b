// Package settings has the table of the settings of a feed, and reads and checks their values. Package
// subscriptions writes them, since some invalidate a part of the state between fetches.
package settings

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/lektordir/lektor/internal/feeds/feedfiles"
	"github.com/lektordir/lektor/internal/files/atomicfile"
	"github.com/lektordir/lektor/internal/http/httpmsg"
	"github.com/lektordir/lektor/internal/text/feedurl"
	"github.com/lektordir/lektor/internal/text/humanize"
	"github.com/lektordir/lektor/lektordir"
)

// Setting is a setting of a subscription. Its value is a file, which users can also write with
// an editor.
type Setting struct {
	Name  string
	Path  string // the file, relative to src/$feed
	Lines bool   // it may have several lines
	// check returns an error for a value that a user may not set. A file may nevertheless have such
	// a value.
	Check func(value string) error
}

// All holds the settings in the order in which they are shown.
var All = []Setting{
	{feedfiles.FileURL, feedfiles.PathURL, false, feedurl.Check},
	{"alias", feedfiles.PathAlias, false, checkAlias},
	{feedfiles.FileInterval, feedfiles.PathInterval, false, checkInterval},
	{feedfiles.FileOnUpdate, "etc/fetch/on-update", false, CheckOnUpdate},
	{"categories", feedfiles.PathCategories, true, checkNothing},
	{feedfiles.FileHeaders, "etc/fetch/headers", true, parsed(httpmsg.ParseHeaders)},
	{feedfiles.FileFilter, "etc/fetch/filter", false, checkNothing},
	{feedfiles.FileOrigin, feedfiles.PathOrigin, false, checkNothing},
	{feedfiles.FilePrivate, feedfiles.PathPrivate, false, oneOf("private", "yes", "no")},
	{"history", feedfiles.PathHistory, false, oneOf("history", "on", "off")},
	{"keep", feedfiles.PathKeep, false, parsed(ParseKeep)},
	{"fulltext", feedfiles.PathFullText, false, oneOf("fulltext", "on", "off")},
	{feedfiles.FilePaused, feedfiles.PathPaused, false, oneOf("paused", "on", "off")},
}

// Names holds the names of all settings.
var Names = func() (names []string) {
	for _, s := range All {
		names = append(names, s.Name)
	}
	return names
}()

// InState reports whether the file belongs to [schedule.State].
func (s *Setting) InState() bool { return filepath.Dir(s.Path) == "etc/fetch" }

func checkNothing(string) error { return nil }

// parsed returns the check of a setting that is parsed.
func parsed[T any](parse func(string) (T, error)) func(string) error {
	return func(v string) error { _, err := parse(v); return err }
}

func checkAlias(v string) error {
	if feedfiles.OneLine(v) == "" {
		return errors.New("an alias cannot be empty")
	}
	return nil
}

// CheckOnUpdate returns an error if v is not a policy for changed entries.
var CheckOnUpdate = oneOf("on-update", "unread", "deliver", "ignore")

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
	return fmt.Sprintf("there is no setting %q; the settings are %s", e.Key, strings.Join(Names, ", "))
}

// OfSubscriptions reports whether only a subscription uses a setting. The others also apply to the feeds
// that other programs deliver.
func OfSubscriptions(key string) bool {
	return slices.Contains([]string{feedfiles.FileURL, feedfiles.FileInterval, feedfiles.FileHeaders,
		feedfiles.FileFilter, feedfiles.FileOrigin, "history", "fulltext",
		feedfiles.FilePaused}, key)
}

// Lookup returns the setting with a name.
func Lookup(key string) (*Setting, error) {
	for i := range All {
		if All[i].Name == key {
			return &All[i], nil
		}
	}
	return nil, &UnknownSettingError{Key: key}
}

// Get returns a setting, "" if it is not set. Categories and headers may have several lines.
func Get(d *lektordir.Dir, hash, key string) (string, error) {
	s, err := Lookup(key)
	if err != nil {
		return "", err
	}
	if key == feedfiles.FilePrivate && IsPrivate(d, hash) {
		return "yes", nil
	}
	data, err := atomicfile.Optional(atomicfile.Read(filepath.Join(d.Join("src", hash), s.Path), feedfiles.MaxSize))
	value := strings.TrimRight(string(data), "\n")
	if !s.Lines && !s.InState() {
		value, _, _ = strings.Cut(value, "\n") // see [atomicfile.Line]
	}
	return value, err
}

// Check returns an error if a value cannot be set. For an interval that is too short it is a
// [*ShortIntervalError]; [subscriptions.Restore] sets it nevertheless.
func Check(key, value string) error {
	s, err := Lookup(key)
	if err != nil {
		return err
	}
	if s.InState() && !s.Lines && strings.ContainsAny(value, "\n\x00") {
		return fmt.Errorf("%s must be one line", key)
	}
	return s.Check(value)
}

// MinInterval is the shortest interval that can be set without force.
const MinInterval = time.Minute

// ShortIntervalError reports an interval below [MinInterval].
type ShortIntervalError struct{ Value string }

func (e *ShortIntervalError) Error() string {
	return fmt.Sprintf("an interval of %s is too short: servers refuse clients that come more often than every %s",
		e.Value, humanize.ShortDuration(MinInterval))
}

// unitless reports whether an interval has no unit.
func unitless(v string) bool { return strings.Trim(v, "0123456789") == "" }

// checkInterval returns an error for an interval that a user must not set. It must have a unit, because a
// user who writes 3 rarely means seconds.
func checkInterval(v string) error {
	v = strings.TrimSpace(v)
	d, err := humanize.ParseInterval(v)
	switch {
	case v != "" && unitless(v):
		return fmt.Errorf("the interval %s has no unit; is it %[1]sm, %[1]sh or %[1]sd?", v)
	case err != nil:
		return err
	case d < MinInterval:
		return &ShortIntervalError{Value: v}
	}
	return nil
}

// ReadInterval parses the interval in a file, which the user may have edited. A number without a unit is
// in seconds, and is raised to MinInterval. An interval with a unit may be shorter.
func ReadInterval(v string) (time.Duration, error) {
	d, err := humanize.ParseInterval(v)
	if err == nil && unitless(strings.TrimSpace(v)) {
		d = max(d, MinInterval)
	}
	return d, err
}
