package entrystore

import (
	"errors"
	"syscall"

	"github.com/lektordir/lektor/internal/feeds/settings"
	"github.com/lektordir/lektor/internal/text/feedurl"
	"github.com/lektordir/lektor/internal/text/humanize"
	"github.com/lektordir/lektor/lektordir"
)

// Sharing decides which feeds may be published (see [settings.Withheld]), and counts the others for
// one warning. It is not safe for concurrent use.
type Sharing struct {
	s   *Store
	may map[string]bool // cached decisions by feed hash
	// unknown has the hashes of feeds that are not shared because a file that decides it cannot be
	// read.
	unknown map[string]bool
	omitted int    // number of omitted feeds
	first   string // title of the first omitted feed, and the reason
}

// Sharing returns a Sharing that always allows the feeds with the hashes in named.
func (s *Store) Sharing(named []string) *Sharing {
	h := &Sharing{s: s, may: map[string]bool{}, unknown: map[string]bool{}}
	for _, hash := range named {
		h.may[hash] = true
	}
	return h
}

// May reports whether a feed may be shared.
func (h *Sharing) May(hash string) bool {
	may, known := h.may[hash]
	if known {
		return may
	}
	why, err := settings.Withheld(h.s.Dir, hash)
	may = why == ""
	h.may[hash] = may
	if _, system := errors.AsType[syscall.Errno](err); system {
		h.unknown[hash] = true
		h.s.S.Report.Print(err)
	} else if !may {
		if h.omitted++; h.omitted == 1 {
			h.first = feedurl.RedactText(h.s.Dir.FeedOf(lektordir.Ref{Feed: hash}).Title()) + " " + why
		}
	}
	return may
}

// Unknown reports whether a feed may not be shared because a file that decides it cannot be read. May
// has reported the error.
func (h *Sharing) Unknown(hash string) bool { return h.unknown[hash] }

// Tell prints a warning about the omitted feeds. how is a hint on how to include them.
func (h *Sharing) Tell(how string) {
	switch {
	case h.omitted == 1:
		h.s.S.Report.Warn("%s, and is left out; %s", h.first, how)
	case h.omitted > 1:
		h.s.S.Report.Warn("%s are not for others and left out (%s); %s", humanize.Count(h.omitted, "feed"), h.first,
			how)
	}
}
