package feedstate

import (
	"cmp"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/lektordir/lektor/internal/files/atomicfile"
	"github.com/lektordir/lektor/lektordir"
)

// settings holds the user's settings for a feed. A permanent redirect may change the URL, too.
type settings struct {
	*area
	// DefaultInterval is the interval of feeds without one of their own; 0 means [DefaultInterval].
	DefaultInterval time.Duration
}

// loadSettings returns the settings in an area.
func loadSettings(a *area) *settings {
	s := &settings{area: a}
	a.secret = func(name, value string) bool {
		return secret(name, value) || slices.Contains(secretFiles, "etc/fetch/"+name) && s.withheld()
	}
	return s
}

// URL returns the URL from which the feed is fetched, or "" if the feed is not subscribed to. It may
// contain a password.
func (s *settings) URL() string { return s.get(fileURL) }

// Filter returns the command that filters each document, or "".
func (s *settings) Filter() string { return s.get(fileFilter) }

// OnUpdate returns the policy for changed entries; [lektordir.UpdateNew] is the default.
func (s *settings) OnUpdate() lektordir.Policy {
	v := cmp.Or(s.get(fileOnUpdate), string(lektordir.UpdateNew))
	if err := checkOnUpdate(v); err != nil {
		s.malformed(fileOnUpdate, err.Error())
		return lektordir.UpdateNew
	}
	return lektordir.Policy(v)
}

// Interval returns the minimum time between two fetches: the setting, or the default.
func (s *settings) Interval() time.Duration {
	if v := s.get(fileInterval); v != "" {
		d, err := readInterval(v)
		if err == nil {
			return d
		}
		s.malformed(fileInterval, err.Error())
	}
	if s.DefaultInterval > 0 {
		return s.DefaultInterval
	}
	return DefaultInterval
}

// withheld is [Withheld] for the values of the state.
func (s *settings) withheld() bool {
	return s.names[filePrivate] && !strings.EqualFold(strings.TrimSpace(s.get(filePrivate)), "no") ||
		s.get(fileHeaders) != "" || s.get(fileFilter) != "" || ownURL(s.URL())
}

// save saves the new url after a permanent redirect, unless the user has changed it since it was loaded. The
// origin is first: without it, the new url would count as the user's own, and might name a private address.
func (s *settings) save() error {
	value, ok := s.changed[fileURL]
	if !ok {
		return nil
	}
	path := filepath.Join(s.dir, fileURL)
	b, err := atomicfile.Read(path, maxFile)
	if now := strings.TrimSuffix(string(b), "\n"); err == nil && now != s.disk(fileURL) {
		s.stored(fileURL, now)
		delete(s.changed, fileOrigin)
		return nil
	}
	if origin, ok := s.changed[fileOrigin]; ok && err == nil {
		err = s.storeDurably(fileOrigin, origin)
	}
	if err == nil && s.secret(fileURL, value) {
		err = guard(path)
	}
	if err == nil {
		err = s.storeDurably(fileURL, value)
	}
	return err
}
