package feedstate

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/lektordir/lektor/internal/files/atomicfile"
	"github.com/lektordir/lektor/lektordir"
)

// settings holds the user's settings for a feed. A permanent redirect may change the URL, too.
type Settings struct {
	values *Values
	// DefaultInterval is the interval of feeds without one of their own; 0 means [DefaultInterval].
	DefaultInterval time.Duration
}

// loadSettings returns the settings in an area.
func readSettings(a *Values) *Settings {
	s := &Settings{values: a}
	a.Secret = func(name, value string) bool {
		return secret(name, value) || slices.Contains(secretFiles, "etc/fetch/"+name) && s.withheld()
	}
	return s
}

// URL returns the URL from which the feed is fetched, or "" if the feed is not subscribed to. It may
// contain a password.
func (s *Settings) URL() string { return s.values.Get(fileURL) }

// Filter returns the command that filters each document, or "".
func (s *Settings) Filter() string { return s.values.Get(fileFilter) }

// OnUpdate returns the policy for changed entries; [lektordir.UpdateNew] is the default.
func (s *Settings) OnUpdate() lektordir.Policy {
	v := cmp.Or(s.values.Get(fileOnUpdate), string(lektordir.UpdateNew))
	if err := checkOnUpdate(v); err != nil {
		s.values.Ignore(fileOnUpdate, err.Error())
		return lektordir.UpdateNew
	}
	return lektordir.Policy(v)
}

// Interval returns the minimum time between two fetches: the setting, or the default.
func (s *Settings) Interval() time.Duration {
	if v := s.values.Get(fileInterval); v != "" {
		d, err := readInterval(v)
		if err == nil {
			return d
		}
		s.values.Ignore(fileInterval, err.Error())
	}
	if s.DefaultInterval > 0 {
		return s.DefaultInterval
	}
	return DefaultInterval
}

// withheld is [Withheld] for the values of the state.
func (s *Settings) withheld() bool {
	return s.values.Has(filePrivate) && !strings.EqualFold(strings.TrimSpace(s.values.Get(filePrivate)), "no") ||
		s.values.Get(fileHeaders) != "" || s.values.Get(fileFilter) != "" || ownURL(s.URL())
}

// save saves the new url after a permanent redirect, unless the user has changed it since it was loaded. The
// origin is first: without it, the new url would count as the user's own, and might name a private address.
func (s *Settings) save() error {
	value, ok := s.values.Changed(fileURL)
	if !ok {
		return nil
	}
	path := s.values.Path(fileURL)
	b, err := atomicfile.Read(path, maxFile)
	if now := strings.TrimSuffix(string(b), "\n"); err == nil && now != s.values.Stored(fileURL) {
		s.values.SetStored(fileURL, now)
		s.values.Forget(fileOrigin)
		return nil
	}
	if origin, ok := s.values.Changed(fileOrigin); ok && err == nil {
		err = s.values.Write(fileOrigin, origin)
	}
	if err == nil && s.values.Secret(fileURL, value) {
		err = guard(path)
	}
	if err == nil {
		err = s.values.Write(fileURL, value)
	}
	return err
}
