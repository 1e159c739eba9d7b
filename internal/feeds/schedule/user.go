package schedule

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/lektordir/lektor/internal/feeds/feedfiles"
	"github.com/lektordir/lektor/internal/feeds/settings"
	"github.com/lektordir/lektor/internal/files/atomicfile"
	"github.com/lektordir/lektor/lektordir"
)

// Settings holds the user's settings for a feed. A permanent redirect may change the URL, too.
type Settings struct {
	values *feedfiles.Values
	// DefaultInterval is the interval of feeds without one of their own; 0 means [DefaultInterval].
	DefaultInterval time.Duration
}

// readSettings returns the settings in an area.
func readSettings(a *feedfiles.Values) *Settings {
	s := &Settings{values: a}
	a.Secret = func(name, value string) bool {
		return feedfiles.IsSecret(name, value) || slices.Contains(feedfiles.SecretFiles, "etc/fetch/"+name) &&
			s.withheld()
	}
	return s
}

// URL returns the URL from which the feed is fetched, or "" if the feed is not subscribed to. It may
// contain a password.
func (s *Settings) URL() string { return s.values.Get(feedfiles.FileURL) }

// Filter returns the command that filters each document, or "".
func (s *Settings) Filter() string { return s.values.Get(feedfiles.FileFilter) }

// OnUpdate returns the policy for changed entries; [lektordir.UpdateNew] is the default.
func (s *Settings) OnUpdate() lektordir.Policy {
	v := cmp.Or(s.values.Get(feedfiles.FileOnUpdate), string(lektordir.UpdateNew))
	if err := settings.CheckOnUpdate(v); err != nil {
		s.values.Ignore(feedfiles.FileOnUpdate, err.Error())
		return lektordir.UpdateNew
	}
	return lektordir.Policy(v)
}

// Interval returns the minimum time between two fetches: the setting, or the default.
func (s *Settings) Interval() time.Duration {
	if v := s.values.Get(feedfiles.FileInterval); v != "" {
		d, err := settings.ReadInterval(v)
		if err == nil {
			return d
		}
		s.values.Ignore(feedfiles.FileInterval, err.Error())
	}
	if s.DefaultInterval > 0 {
		return s.DefaultInterval
	}
	return DefaultInterval
}

// withheld is [settings.Withheld] for the values of the state.
func (s *Settings) withheld() bool {
	return s.values.Has(feedfiles.FilePrivate) &&
		!strings.EqualFold(strings.TrimSpace(s.values.Get(feedfiles.FilePrivate)), "no") ||
		s.values.Get(feedfiles.FileHeaders) != "" || s.values.Get(feedfiles.FileFilter) != "" ||
		feedfiles.IsPrivateURL(s.URL())
}

// save saves the new url after a permanent redirect, unless the user has changed it since it was loaded. The
// origin is first: without it, the new url would count as the user's own, and might name a private address.
func (s *Settings) save() error {
	value, ok := s.values.Changed(feedfiles.FileURL)
	if !ok {
		return nil
	}
	b, err := atomicfile.Read(s.values.Path(feedfiles.FileURL), feedfiles.MaxSize)
	if now := strings.TrimSuffix(string(b), "\n"); err == nil && now != s.values.Stored(feedfiles.FileURL) {
		s.values.SetStored(feedfiles.FileURL, now)
		s.values.Forget(feedfiles.FileOrigin)
		return nil
	}
	if origin, ok := s.values.Changed(feedfiles.FileOrigin); ok && err == nil {
		err = s.values.Write(feedfiles.FileOrigin, origin)
	}
	if err == nil {
		err = s.values.Write(feedfiles.FileURL, value)
	}
	return err
}
