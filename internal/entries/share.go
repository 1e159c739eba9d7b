package entries

import (
	"errors"
	"syscall"

	"github.com/lektordir/lektor/internal/feeddir"
	"github.com/lektordir/lektor/internal/redact"
	"github.com/lektordir/lektor/internal/units"
	"github.com/lektordir/lektor/lektordir"
)

// Sharing decides which feeds may stand in what leaves the machine, see
// [feeddir.Withheld], and tells once which may not. It is used by one goroutine
// at a time.
type Sharing struct {
	s   *Store
	may map[string]bool // by hash
	// unknown are the hashes of feeds that may not, as something cannot be read that
	// decides it.
	unknown map[string]bool
	left    int    // feeds that were left out
	first   string // one of them, and why
}

// Sharing begins a decision. The feeds whose hashes are named may, whatever they
// are.
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
	why, err := feeddir.Withheld(h.s.Dir, hash)
	may = why == ""
	h.may[hash] = may
	if _, system := errors.AsType[syscall.Errno](err); system {
		h.unknown[hash] = true
		h.s.S.Report.Print(err)
	} else if !may {
		if h.left++; h.left == 1 {
			h.first = redact.Text(h.s.Dir.FeedOf(lektordir.Ref{Feed: hash}).Title()) + " " + why
		}
	}
	return may
}

// Unknown reports whether a feed may not be shared only because something cannot be read,
// which was reported as an error.
func (h *Sharing) Unknown(hash string) bool { return h.unknown[hash] }

// Tell warns of the feeds that were left out; how says how to have them all the
// same.
func (h *Sharing) Tell(how string) {
	switch {
	case h.left == 1:
		h.s.S.Report.Warn("%s, and is left out; %s", h.first, how)
	case h.left > 1:
		h.s.S.Report.Warn("%s are not for others and left out (%s); %s", units.Count(h.left, "feed"), h.first, how)
	}
}
