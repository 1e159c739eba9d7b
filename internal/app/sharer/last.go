package sharer

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/lektordir/lektor/internal/atomicfile"
	"github.com/lektordir/lektor/internal/feedsync"
)

// seen is what the lektor-dir had when it was last looked at, etc/share/last. What
// differs from it is an edit of the user's.
type seen struct {
	made  time.Time // of the last edit of this endpoint
	feeds map[string]*seenFeed
	data  []byte // as it was read
}

// seenFeed is what a feed had.
type seenFeed struct {
	subscribed bool
	alias      string
	categories []string
	entries    map[string]seenEntry // by lineage
}

// seenEntry is what an entry had: its flags, whether it was in new/, and under which
// lineage its state is shared, "" for its own.
type seenEntry struct {
	flags  string
	unread bool
	as     string
}

// lastHeader begins the file. A program that finds another does not know the form.
const lastHeader = "lektor-share 1"

// readLast reads what was seen; nothing is a first run.
func (h *share) readLast() (*seen, error) {
	l := &seen{feeds: map[string]*seenFeed{}}
	data, err := atomicfile.Read(h.path(lastFile), maxDocument)
	if errors.Is(err, fs.ErrNotExist) {
		l.made = h.ownLast()
		return l, nil
	}
	if err != nil {
		return nil, err
	}
	l.data = data
	bad := func(line string) error {
		return fmt.Errorf("%s: %q makes no sense; remove the file, and what differs between this machine and the set counts as an edit", h.path(lastFile), line)
	}
	var feed *seenFeed
	sc := bufio.NewScanner(bytes.NewReader(data))
	sc.Buffer(nil, 1<<20)
	for n := 0; sc.Scan(); n++ {
		text := sc.Text()
		word, rest, _ := strings.Cut(text, " ")
		switch {
		case n == 0:
			if text != lastHeader {
				return nil, bad(text)
			}
		case word == "made":
			l.made, _ = feedsync.ParseDate(rest)
		case word == "feed" || word == "subscribed":
			feed = &seenFeed{subscribed: word == "subscribed", entries: map[string]seenEntry{}}
			l.feeds[rest] = feed
		case feed == nil:
			return nil, bad(text)
		case word == "alias":
			feed.alias = rest
		case word == "in":
			feed.categories = append(feed.categories, rest)
		default:
			flags, as, _ := strings.Cut(rest, " ")
			e := seenEntry{flags: strings.TrimPrefix(flags, "-"), as: as}
			if e.unread = flags == "new"; e.unread {
				e.flags = ""
			}
			feed.entries[word] = e
		}
	}
	return l, sc.Err()
}

// ownLast is the time of the last edit in the set that this endpoint made.
func (h *share) ownLast() (last time.Time) {
	for _, doc := range []*feedsync.Document{h.subs, h.states} {
		for _, it := range doc.Items() {
			for _, u := range it.History {
				if u.By == h.me && u.When.After(last) {
					last = u.When
				}
			}
		}
	}
	return last
}

// writeLast remembers what the lektor-dir has.
func (h *share) writeLast(l *seen) error {
	var b bytes.Buffer
	b.WriteString(lastHeader + "\n")
	if !l.made.IsZero() {
		b.WriteString("made " + feedsync.FormatDate(l.made) + "\n")
	}
	for _, hash := range slices.Sorted(maps.Keys(l.feeds)) {
		f := l.feeds[hash]
		word := "feed "
		if f.subscribed {
			word = "subscribed "
		}
		b.WriteString(word + hash + "\n")
		if f.alias != "" {
			b.WriteString("alias " + f.alias + "\n")
		}
		for _, c := range f.categories {
			b.WriteString("in " + c + "\n")
		}
		for _, lineage := range slices.Sorted(maps.Keys(f.entries)) {
			e := f.entries[lineage]
			b.WriteString(lineage)
			switch {
			case e.unread:
				b.WriteString(" new")
			default:
				b.WriteString(" -" + e.flags)
			}
			if e.as != "" {
				b.WriteString(" " + e.as)
			}
			b.WriteByte('\n')
		}
	}
	if bytes.Equal(b.Bytes(), l.data) {
		return nil
	}
	l.data = b.Bytes()
	_, err := h.private(h.path(lastFile), l.data)
	return err
}
