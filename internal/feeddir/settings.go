package feeddir

import (
	"cmp"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/lektordir/lektor/internal/atomicfile"
	"github.com/lektordir/lektor/lektordir"
)

// settings are what the user has set of a feed, and where it is fetched from, which a
// permanent redirect changes, too.
type settings struct {
	*area
	// DefaultInterval is the interval of feeds that have none of their own;
	// [DefaultInterval] when it is 0.
	DefaultInterval time.Duration
}

// loadSettings makes the settings that are in an area.
func loadSettings(a *area) *settings {
	s := &settings{area: a}
	a.secret = func(name, value string) bool {
		return secret(name, value) || slices.Contains(secretFiles, "etc/fetch/"+name) && s.withheld()
	}
	return s
}

// URL is where the feed is fetched from, empty when the feed is not subscribed
// to. It may contain a password.
func (s *settings) URL() string { return s.get(fileURL) }

// Filter is the command that each document goes through, or empty.
func (s *settings) Filter() string { return s.get(fileFilter) }

// OnUpdate is what is done with changed entries; [lektordir.UpdateNew] is the default.
func (s *settings) OnUpdate() lektordir.Policy {
	v := cmp.Or(s.get(fileOnUpdate), string(lektordir.UpdateNew))
	if err := checkOnUpdate(v); err != nil {
		s.malformed(fileOnUpdate, err.Error())
		return lektordir.UpdateNew
	}
	return lektordir.Policy(v)
}

// Interval is the least time between two fetches, the user's or the default.
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

// withheld is [Withheld] for what the state knows.
func (s *settings) withheld() bool {
	return s.names[filePrivate] && !strings.EqualFold(strings.TrimSpace(s.get(filePrivate)), "no") || s.get(fileHeaders) != "" || s.get(fileFilter) != "" || ownURL(s.URL())
}

// save follows a permanent redirect, unless the user gave another url while we fetched.
func (s *settings) save() error {
	value, ok := s.changed[fileURL]
	if !ok {
		return s.area.save(fileOrigin)
	}
	path := filepath.Join(s.dir, fileURL)
	b, err := atomicfile.Read(path, maxFile)
	if now := strings.TrimSuffix(string(b), "\n"); err == nil && now != s.disk(fileURL) {
		s.stored(fileURL, now)
		return s.area.save(fileOrigin)
	}
	if err == nil && s.secret(fileURL, value) {
		err = guard(path)
	}
	if err == nil {
		err = atomicfile.Write(path, []byte(value+"\n"))
	}
	if err == nil {
		s.stored(fileURL, value)
	}
	return errors.Join(err, s.area.save(fileOrigin))
}
