package sharer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/lektordir/lektor/internal/feeds/subscriptions"
	"github.com/lektordir/lektor/internal/files/workers"
	"github.com/lektordir/lektor/internal/protocol/feedsync"
	"github.com/lektordir/lektor/internal/protocol/opml"
	"github.com/lektordir/lektor/internal/text/feedurl"
	"github.com/lektordir/lektor/internal/text/humanize"
	"github.com/lektordir/lektor/internal/text/textfile"
	"github.com/lektordir/lektor/internal/text/xmltext"
	"github.com/lektordir/lektor/lektordir"
)

// words are the names of flags in documents.
var words = map[byte]string{'S': "read", 'F': "flagged", 'T': "trashed"}

func wordOf(flag byte) string { return cmp.Or(words[flag], string(flag)) }

// describe reads the entries whose flags were set, for the text of their marks. It uses all
// processors, as the first sync reads most entries. If an entry cannot be read, its edit is
// left for the next run.
func (r *reader) describe(ctx context.Context, l *local, edits []edit) ([]edit, error) {
	failed := make([]error, len(edits))
	err := workers.ForEach(ctx, len(edits), func(i int) {
		d := &edits[i]
		if d.kind != editFlag || !d.set {
			return
		}
		ref := l.entries[d.feed][d.identity]
		e, err := r.d.ReadEntry(ref, lektordir.FieldTitle|lektordir.FieldID|lektordir.FieldLink)
		if isUnreadable(err) {
			failed[i] = err
			return
		}
		d.text = &entryText{}
		if e != nil {
			d.text.id, d.text.title, d.text.link = e.ID, e.Title, e.URL()
		}
		if sub := l.subs[d.feed]; sub != nil {
			d.text.feedID = sub.ID
		} else if f := r.d.FeedOf(ref); f != nil {
			d.text.feedID = f.ID
		}
	})
	r.addTrouble(cmp.Or(failed...)) // one of many errors is enough
	kept := edits[:0]
	for i, d := range edits {
		if failed[i] == nil {
			kept = append(kept, d)
			continue
		}
		l.unknown[entryID{d.feed, d.identity}] = true
		delete(l.entries[d.feed], d.identity)
	}
	return kept, err
}

// noter adds edits to a set.
type noter struct {
	set     *itemSet
	base    *baseline // records edits that the set cannot hold
	tree    *folders
	rand    io.Reader
	vacated map[string]bool // paths of folders that feeds have left
	warned  []string        // edits that stay on this machine
}

// note adds edits to the set, unless the set has them already. base is the baseline after
// [baseline.follow].
func (s *itemSet) note(edits []edit, base *baseline, from io.Reader) (warned []string, err error) {
	if len(edits) == 0 {
		return nil, nil
	}
	n := &noter{set: s, base: base, tree: foldersOf(s.subs), rand: from, vacated: map[string]bool{}}
	for i := range edits {
		if err := n.note(&edits[i]); err != nil {
			return nil, err
		}
		edits[i].text = nil // a first sync has many
	}
	for _, path := range slices.Backward(slices.Sorted(maps.Keys(n.vacated))) {
		if err := n.dropEmpty(path); err != nil && !errors.As(err, new(*feedsync.BoundError)) {
			return nil, err
		}
	}
	return n.warned, nil
}

// note adds one edit. An edit that would exceed a limit of the item stays on this machine,
// and the baseline records that.
func (n *noter) note(d *edit) error {
	var err error
	switch d.kind {
	case editFolder:
		err = n.moveFolder(d.folder)
	case editFeed:
		err = n.noteFeed(d)
	default:
		err = n.noteMark(d)
	}
	var bound *feedsync.BoundError
	if !errors.As(err, &bound) {
		return err
	}
	text := cmp.Or(d.text, &entryText{})
	name := cmp.Or(text.title, text.id, d.feed)
	switch d.kind {
	case editFolder:
		return nil // the edits of its feeds put them into another folder
	case editFeed:
		sub := n.base.sub(d.feed)
		sub.unshared = true
		n.base.setSub(d.feed, sub)
		if d.sub.now != nil {
			name = d.sub.now.Title()
		} else if it := n.set.subs.Item(d.feed); it != nil {
			name = label(it)
		}
	default:
		if e, ok := n.base.entries(d.feed)[d.identity]; ok && strings.IndexByte(e.unshared, d.flag) < 0 {
			e.unshared += string(d.flag)
			n.base.setEntry(d.feed, d.identity, e)
		}
	}
	n.warned = append(n.warned, fmt.Sprintf("%s: the change stays on this machine: %s", name, bound.Reason))
	return nil
}

// noteMark adds an edit of a flag, or the removal of an entry.
func (n *noter) noteMark(d *edit) error {
	id := stateID(d.feed, d.key, d.flag)
	if d.kind == editGone && n.set.marks.item(id) != nil || n.set.marks.isSet(d.feed, d.key, d.flag) == d.set {
		return nil
	}
	var content []byte
	if d.set {
		content = markContent(id, d.flag, cmp.Or(d.text, &entryText{}))
	}
	return n.set.modify(feedsync.RSS, id, !d.set, content, "")
}

// maxTitle is the maximum length of a title in a mark, in bytes.
const maxTitle = 2 << 10

// markContent returns the content of a mark.
func markContent(id string, flag byte, m *entryText) []byte {
	title := humanize.Cut(feedurl.RedactText(cmp.Or(strings.TrimSpace(m.title), m.id)), maxTitle)
	b := []byte("<item>")
	child := func(name, text string) {
		if text = xmltext.Text(text); text == "" {
			b = fmt.Appendf(b, "<%s/>", name)
			return
		}
		b = fmt.Appendf(b, "<%s>%s</%s>", name, text, name)
	}
	child("title", title)
	if feedurl.IsHTTP(m.link) && len(m.link) <= maxURL {
		child("link", feedurl.Public(m.link))
	}
	b = fmt.Appendf(b, `<guid isPermaLink="false">%s</guid>`, xmltext.Text(id))
	child("category", wordOf(flag))
	if len(m.feedID) <= maxURL {
		child("lektor:feed", feedurl.Public(m.feedID))
	}
	if m.id != "" && len(m.id) <= maxURL {
		child("lektor:entry", feedurl.Public(m.id))
	}
	return append(b, "</item>"...)
}

// noteFeed adds an edit of a subscription.
func (n *noter) noteFeed(d *edit) error {
	it := n.set.subs.Item(d.feed)
	if d.sub.now == nil {
		if it == nil || it.Deleted {
			return nil
		}
		n.leaves(d.feed)
		// The tombstone does not name the feed, for privacy, and because programs that do not know
		// tombstones read the document, too.
		return n.set.modify(feedsync.OPML, it.ID, true,
			[]byte(`<outline text="(no subscription any more)"></outline>`), it.Parent)
	}
	old := d.sub.before
	if old == nil && it != nil && !it.Deleted {
		return nil // another machine subscribed, and its subscription is not applied here yet
	}
	sub := d.sub.now
	if old != nil && it != nil && !it.Deleted {
		// Keep values that the user did not change: the set may have newer values of another
		// machine that are not applied here yet.
		edited := *sub
		if m := meaningOf(it); old.alias == sub.Alias {
			edited.Alias = m.alias
		}
		if slices.Equal(old.categories, sub.Categories) {
			edited.Categories = n.tree.categories(it)
		}
		sub = &edited
	}
	if it != nil && !it.Deleted && meaningOf(it).alias == sub.Alias &&
		slices.Equal(n.tree.categories(it), sub.Categories) {
		return nil
	}
	parent, err := n.folder(first(sub.Categories))
	if err != nil {
		return err
	}
	if it != nil {
		n.leaves(d.feed)
	}
	return n.set.modify(feedsync.OPML, d.feed, false, content(sub), parent)
}

// leaves records that a feed leaves its folder.
func (n *noter) leaves(feed string) { n.vacated[n.tree.path(n.tree.parent[feed])] = true }

// first returns the first category, which is the folder of the feed, or "".
func first(categories []string) string {
	if len(categories) == 0 {
		return ""
	}
	return categories[0]
}

var escapeComma = strings.NewReplacer(`\`, `\\`, `,`, `\,`)

// content returns the outline of a subscription.
func content(s *subscriptions.Subscription) []byte {
	// Attributes are in the order of [feedsync.Canonical].
	b := []byte("<outline")
	attr := func(name, value string) { b = fmt.Appendf(b, ` %s="%s"`, name, xmltext.Attr(value)) }
	if len(s.Categories) > 1 {
		var list []string
		for _, c := range s.Categories[1:] {
			list = append(list, "/"+escapeComma.Replace(c))
		}
		attr("category", strings.Join(list, ","))
	}
	if feedurl.IsHTTP(s.Link) && len(s.Link) <= maxURL {
		attr("htmlUrl", feedurl.Public(s.Link))
	}
	attr("text", cmp.Or(s.Alias, s.Name))
	attr("title", s.Name)
	attr("type", "rss")
	attr("xmlUrl", feedurl.Public(s.URL))
	if s.ID != s.URL {
		attr("lektor:id", feedurl.Public(s.ID))
	}
	return append(b, "></outline>"...)
}

// meaning is the part of an outline that users edit: the alias, and all categories but the
// first, which is the folder.
type meaning struct {
	alias      string
	categories []string
}

func meaningOf(it *feedsync.Item) meaning {
	var m meaning
	line := func(name string) string { return strings.TrimSpace(textfile.OneLine(it.Value("", name))) }
	if text, title := line("text"), line("title"); text != title && title != "" {
		m.alias = text
	}
	for _, c := range strings.Split(hideEscaped.Replace(it.Value("", "category")), ",") {
		m.categories = withCategory(m.categories, strings.TrimPrefix(strings.TrimSpace(showEscaped.Replace(c)), "/"))
	}
	return m
}

// The control characters stand for an escaped backslash and comma; XML never contains them.
var (
	hideEscaped = strings.NewReplacer(`\\`, "\x00", `\,`, "\x01")
	showEscaped = strings.NewReplacer("\x00", `\`, "\x01", ",")
)

// withCategory appends a category in normal form, unless it is empty or in the list.
func withCategory(list []string, c string) []string {
	if c = opml.JoinPath(opml.SplitPath(c)); c == "" || slices.Contains(list, c) {
		return list
	}
	return append(list, c)
}

// sameOutline reports whether two outlines mean the same. Another name or xmlUrl alone is
// not an edit.
func sameOutline(a, b *feedsync.Item) bool {
	if isFolder(a) || a.Value("", "xmlUrl") == "" || b.Value("", "xmlUrl") == "" {
		return a.Parent == b.Parent && feedsync.Canonical(a.Content) == feedsync.Canonical(b.Content)
	}
	x, y := meaningOf(a), meaningOf(b)
	return a.Parent == b.Parent && x.alias == y.alias && slices.Equal(x.categories, y.categories)
}

// categories returns the categories of a feed from its outline and its folder.
func (t *folders) categories(it *feedsync.Item) []string {
	categories := meaningOf(it).categories
	if path := t.path(t.parent[it.ID]); path != "" {
		categories = slices.Insert(slices.DeleteFunc(categories, func(c string) bool { return c == path }), 0, path)
	}
	return categories
}
