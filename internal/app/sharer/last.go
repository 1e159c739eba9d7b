package sharer

import (
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
	"github.com/lektordir/lektor/lektordir"
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
	h.needs(seenWeight * len(data))
	bad := func(line string) error {
		return fmt.Errorf("%s: %q makes no sense; remove the file, and what differs between this machine and the set counts as an edit", h.path(lastFile), line)
	}
	var feed *seenFeed
	n := -1
	for text := range strings.Lines(string(data)) {
		n++
		text = strings.TrimSuffix(text, "\n")
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
	return l, nil
}

// ownLast is the time of the last edit in the set that this endpoint made.
func (h *share) ownLast() (last time.Time) {
	for _, it := range h.items(every) {
		for _, u := range it.History {
			if u.By == h.me && u.When.After(last) {
				last = u.When
			}
		}
	}
	return last
}

// remember writes down what the lektor-dir has now, for the next run.
func (h *share) remember() error {
	var b bytes.Buffer
	b.WriteString(lastHeader + "\n")
	if !h.last.made.IsZero() {
		b.WriteString("made " + feedsync.FormatDate(h.last.made) + "\n")
	}
	feeds := map[string]bool{}
	for hash := range h.local.subs {
		feeds[hash] = true
	}
	for hash := range h.local.entries {
		feeds[hash] = true
	}
	for hash := range h.last.feeds {
		if h.local.own[hash] != "" || h.local.unread[hash] {
			feeds[hash] = true
		}
	}
	for _, hash := range slices.Sorted(maps.Keys(feeds)) {
		// Of what is not looked at the last look counts.
		f := h.last.feeds[hash]
		if f == nil || h.local.own[hash] == "" && !h.local.unread[hash] {
			f = &seenFeed{}
			if sub := h.local.subs[hash]; sub != nil {
				f = &seenFeed{subscribed: true, alias: sub.Alias, categories: sub.Categories}
			}
		}
		f.write(&b, hash)
		if here := h.local.entries[hash]; here != nil {
			old := h.last.feeds[hash]
			for _, lineage := range slices.Sorted(maps.Keys(here)) {
				e := here[lineage].seen(lineage)
				if here[lineage].late {
					if old == nil {
						continue
					}
					was, ok := old.entries[lineage]
					if !ok {
						continue
					}
					e = was
				}
				e.write(&b, lineage)
			}
			continue
		}
		for _, lineage := range slices.Sorted(maps.Keys(f.entries)) {
			f.entries[lineage].write(&b, lineage)
		}
	}
	if bytes.Equal(b.Bytes(), h.last.data) {
		return nil
	}
	h.last.data = b.Bytes()
	_, err := h.private(h.path(lastFile), h.last.data)
	return err
}

// write writes the lines of a feed, but for its entries.
func (f *seenFeed) write(b *bytes.Buffer, hash string) {
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
}

// seen is an entry as it is now.
func (e *entry) seen(lineage string) seenEntry {
	s := seenEntry{flags: shared(e.ref), unread: e.ref.Place == lektordir.New, as: e.as}
	if s.as == lineage {
		s.as = ""
	}
	return s
}

// write writes the line of an entry.
func (e seenEntry) write(b *bytes.Buffer, lineage string) {
	b.WriteString(lineage)
	if e.unread {
		b.WriteString(" new")
	} else {
		b.WriteString(" -")
		b.WriteString(e.flags)
	}
	if e.as != "" {
		b.WriteByte(' ')
		b.WriteString(e.as)
	}
	b.WriteByte('\n')
}
