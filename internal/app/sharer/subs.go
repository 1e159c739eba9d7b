package sharer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/lektordir/lektor/internal/command"
	"github.com/lektordir/lektor/internal/feeddir"
	"github.com/lektordir/lektor/internal/feedsync"
	"github.com/lektordir/lektor/internal/fetch"
	"github.com/lektordir/lektor/internal/joined"
	"github.com/lektordir/lektor/lektordir"
)

// local is what the lektor-dir has.
type local struct {
	subs   map[string]*feeddir.Subscription // that are shared
	own    map[string]string                // hash -> why a feed is not shared
	unread map[string]bool                  // feeds that could not be read: nothing is known of them

	entries map[string]map[string]*entry // feed, lineage
}

// withheld tells why a feed is not shared, "" if it is.
func withheld(d *lektordir.Dir, hash string) string {
	if feeddir.Never(d, hash) {
		return "has a file etc/share/never"
	}
	why, _ := feeddir.Shareable(d, hash)
	return why
}

// look reads what the lektor-dir has of subscriptions.
func (h *share) look() error {
	h.local = &local{subs: map[string]*feeddir.Subscription{}, own: map[string]string{}, unread: map[string]bool{}}
	hashes, err := h.d.FeedHashes()
	if err != nil {
		return err
	}
	for _, hash := range hashes {
		if why := withheld(h.d, hash); why != "" {
			// What cannot be read is not shared, and was not removed.
			h.fails(feeddir.Unreadable(h.d, hash))
			h.local.own[hash] = why
			continue
		}
		h.readSub(hash)
	}
	return nil
}

// fails notes what could not be read. The rest is done, and the next run does what is
// left.
func (h *share) fails(err error) {
	if err != nil {
		h.trouble = errors.Join(h.trouble, err)
	}
}

// readSub reads a subscription.
func (h *share) readSub(hash string) {
	sub, err := feeddir.ReadWhole(h.d, hash)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return // not subscribed to
	case err != nil:
		// What cannot be read was not removed.
		h.local.unread[hash] = true
		h.fails(fmt.Errorf("%w; what was shared of it stays", err))
		return
	case !fetch.IsHTTP(sub.URL) || !fetch.IsHTTP(sub.ID):
		h.local.own[hash] = "is not from an http or https URL"
		return
	}
	var categories []string
	for _, c := range sub.Categories {
		if c = clean(c); c != "" && !slices.Contains(categories, c) {
			categories = append(categories, c)
		}
	}
	sub.Categories = categories
	if sub.Alias = strings.TrimSpace(sub.Alias); sub.Alias == strings.TrimSpace(sub.Name) {
		sub.Alias = ""
	}
	h.local.subs[hash] = sub
}

func sameSub(a, b *feeddir.Subscription) bool {
	return a.Alias == b.Alias && slices.Equal(a.Categories, b.Categories)
}

// first is the first category, whose folder the feed's outline is in.
func first(categories []string) string {
	if len(categories) == 0 {
		return ""
	}
	return categories[0]
}

var escapeComma = strings.NewReplacer(`\`, `\\`, `,`, `\,`)

// content is the outline of a subscription.
func content(s *feeddir.Subscription) []byte {
	b := fmt.Appendf(nil, `<outline xmlns:lektor="%s" type="rss" text="%s" title="%s" xmlUrl="%s"`, feedsync.LektorNamespace,
		feedsync.Attr(cmp.Or(s.Alias, s.Name)), feedsync.Attr(s.Name), feedsync.Attr(fetch.Public(s.URL)))
	if s.ID != s.URL {
		b = fmt.Appendf(b, ` lektor:id="%s"`, feedsync.Attr(fetch.Public(s.ID)))
	}
	if fetch.IsHTTP(s.Link) {
		b = fmt.Appendf(b, ` htmlUrl="%s"`, feedsync.Attr(fetch.Public(s.Link)))
	}
	if len(s.Categories) > 1 {
		var list []string
		for _, c := range s.Categories[1:] {
			list = append(list, "/"+escapeComma.Replace(c))
		}
		b = fmt.Appendf(b, ` category="%s"`, feedsync.Attr(strings.Join(list, ",")))
	}
	return append(b, "/>"...)
}

// meaning is what of an outline is its content: alias, and categories but the first,
// which is the folder that it is in.
type meaning struct {
	alias      string
	categories []string
}

func (m meaning) equal(o meaning) bool {
	return m.alias == o.alias && slices.Equal(m.categories, o.categories)
}

func meaningOf(it *feedsync.Item) meaning {
	var m meaning
	text, title := strings.TrimSpace(it.Value("", "text")), strings.TrimSpace(it.Value("", "title"))
	if text != title && title != "" {
		m.alias = text
	}
	var word strings.Builder
	end := func() {
		if c := clean(strings.TrimPrefix(strings.TrimSpace(word.String()), "/")); c != "" && !slices.Contains(m.categories, c) {
			m.categories = append(m.categories, c)
		}
		word.Reset()
	}
	escaped := false
	for _, r := range it.Value("", "category") {
		switch {
		case escaped && r != ',' && r != '\\':
			word.WriteByte('\\')
			fallthrough
		case escaped:
			word.WriteRune(r)
			escaped = false
		case r == '\\':
			escaped = true
		case r == ',':
			end()
		default:
			word.WriteRune(r)
		}
	}
	end()
	return m
}

// sameOutline tells whether two outlines mean the same: another name or xmlUrl alone is
// no edit.
func sameOutline(a, b *feedsync.Item) bool {
	if isFolder(a) || a.Value("", "xmlUrl") == "" || b.Value("", "xmlUrl") == "" {
		return a.Parent == b.Parent && feedsync.Canonical(a.Content()) == feedsync.Canonical(b.Content())
	}
	return a.Parent == b.Parent && meaningOf(a).equal(meaningOf(b))
}

// noteSubs notes in the set what the user did to subscriptions.
func (h *share) noteSubs() error {
	t := h.folders()
	hashes := slices.Sorted(maps.Keys(h.local.subs))
	// Folders first, as what is moved with its folder is not moved.
	from, to := map[string]string{}, map[string]string{}
	for _, hash := range hashes {
		if old := h.last.feeds[hash]; old != nil && old.subscribed && h.inSet(hash) {
			from[hash], to[hash] = first(old.categories), first(h.local.subs[hash].Categories)
		}
	}
	if err := h.moveFolders(t, from, to); err != nil {
		return err
	}
	left := map[string]bool{}
	for _, hash := range hashes {
		sub, old := h.local.subs[hash], h.last.feeds[hash]
		it := h.subs.Item(hash)
		known := old != nil && old.subscribed
		if known && it != nil && old.alias == sub.Alias && slices.Equal(old.categories, sub.Categories) {
			continue
		}
		if !known && it != nil && !it.Deleted {
			continue // told by another machine, and not applied as yet
		}
		if known && it != nil && !it.Deleted {
			// What the user left alone may be another machine's, not applied as yet.
			edit := *sub
			if m := meaningOf(it); old.alias == sub.Alias {
				edit.Alias = m.alias
			}
			if slices.Equal(old.categories, sub.Categories) {
				edit.Categories = h.categories(t, it)
			}
			sub = &edit
		}
		parent, err := h.folder(t, first(sub.Categories))
		if err != nil {
			return err
		}
		want := meaning{alias: sub.Alias}
		if len(sub.Categories) > 1 {
			want.categories = sub.Categories[1:]
		}
		if it != nil && !it.Deleted && it.Parent == parent && meaningOf(it).equal(want) {
			continue
		}
		if known && it != nil && it.Deleted && slices.Equal(old.categories, sub.Categories) && old.alias == sub.Alias {
			continue // ended elsewhere, and not applied as yet
		}
		if it != nil {
			left[t.path(t.parent[hash])] = true
		}
		if err := h.modify(h.subs, hash, content(sub), parent); err != nil {
			return err
		}
	}
	for _, hash := range slices.Sorted(maps.Keys(h.last.feeds)) {
		it := h.subs.Item(hash)
		if !h.last.feeds[hash].subscribed || h.local.subs[hash] != nil || h.local.own[hash] != "" || h.local.unread[hash] || it == nil || it.Deleted {
			continue
		}
		left[t.path(t.parent[hash])] = true
		// What ended is nobody's business, and no other program is to subscribe
		// to it.
		if err := h.unsubscribe(it); err != nil {
			return err
		}
	}
	for _, path := range slices.Backward(slices.Sorted(maps.Keys(left))) {
		if err := h.dropEmpty(path); err != nil {
			return err
		}
	}
	return nil
}

func (h *share) inSet(hash string) bool {
	it := h.subs.Item(hash)
	return it != nil && !it.Deleted
}

// unsubscribe makes the tombstone of a feed. Its content names no feed: programs that
// know nothing of tombstones read the document, too.
func (h *share) unsubscribe(it *feedsync.Item) error {
	if err := h.modify(h.subs, it.ID, nil, ""); err != nil {
		return err
	}
	grave := h.subs.Item(it.ID)
	return grave.SetContent([]byte(`<outline text="(no subscription any more)"/>`))
}

// change is what is to be done to the subscriptions of the lektor-dir.
type change struct {
	hash       string
	add        *feeddir.Subscription // subscribe
	remove     bool                  // or unsubscribe
	alias      *string               // or set these
	categories []string
	set        bool
}

// ErrManyEnd is the error for a merge that would end most subscriptions.
type ErrManyEnd struct{ End, Of int }

func (e *ErrManyEnd) Error() string {
	return fmt.Sprintf("it would end %d of %d subscriptions; none of them is ended", e.End, e.Of)
}

// categories are those of a feed by its outline.
func (h *share) categories(t *folders, it *feedsync.Item) []string {
	categories := meaningOf(it).categories
	if path := t.path(t.parent[it.ID]); path != "" {
		categories = slices.Insert(slices.DeleteFunc(categories, func(c string) bool { return c == path }), 0, path)
	}
	return categories
}

// plan gives what differs between the set and the subscriptions of the lektor-dir, and
// why some of the set is not for this machine.
func (h *share) plan() (changes []change, refused []string) {
	t := h.folders()
	for _, it := range h.subs.Items() {
		if isFolder(it) || h.local.unread[it.ID] || h.local.own[it.ID] != "" {
			continue
		}
		sub := h.local.subs[it.ID]
		if it.Deleted {
			if sub != nil {
				changes = append(changes, change{hash: it.ID, remove: true})
			}
			continue
		}
		url := strings.TrimSpace(it.Value("", "xmlUrl"))
		if url == "" {
			continue // what another program shares
		}
		m, categories := meaningOf(it), h.categories(t, it)
		if sub == nil {
			id := cmp.Or(strings.TrimSpace(it.Value(feedsync.LektorNamespace, "id")), url)
			why := ""
			switch {
			case !fetch.IsHTTP(url) || !fetch.IsHTTP(id):
				why = "it is not from an http or https URL"
			case fetch.Public(url) != url || fetch.Public(id) != id:
				why = "it has a user or password in its URL"
			case lektordir.FeedHash(lektordir.NormalizeID(id)) != it.ID:
				why = "its id is not that of its URL"
			}
			if why != "" {
				refused = append(refused, fmt.Sprintf("%s: not subscribed to: %s", fetch.Brief(fetch.Public(url)), why))
				continue
			}
			changes = append(changes, change{hash: it.ID, add: &feeddir.Subscription{
				ID: id, URL: url, Name: it.Value("", "title"), Alias: m.alias, Link: it.Value("", "htmlUrl"), Categories: categories, Origin: h.origins[it.ID],
			}})
			continue
		}
		c := change{hash: it.ID}
		if sub.Alias != m.alias {
			c.alias, c.set = &m.alias, true
		}
		if !slices.Equal(sub.Categories, categories) {
			c.categories, c.set = append([]string{}, categories...), true
		}
		if c.set {
			changes = append(changes, c)
		}
	}
	return changes, refused
}

// applySubs makes the subscriptions what the set says. Of more than ten that are more
// than half none is ended unless the user agreed.
func (h *share) applySubs(ctx context.Context, yes, dryRun bool) error {
	changes, refused := h.plan()
	warnings := command.Warnings{Report: h.s.Report}
	for _, r := range refused {
		warnings.Warn("%s", r)
	}
	ends := 0
	for _, c := range changes {
		if c.remove {
			ends++
		}
	}
	var bad error
	if many := ends > 10 && 2*ends > len(h.local.subs); many && !yes {
		bad = command.Hint(&ErrManyEnd{ends, len(h.local.subs)}, "if that is right: lektor-share sync --yes")
		changes = slices.DeleteFunc(changes, func(c change) bool { return c.remove })
		h.waiting += ends
	}
	if dryRun || len(changes) == 0 {
		for _, c := range changes {
			h.tell(c)
		}
		return bad
	}
	w, err := h.d.NewWriter(lektordir.WriterOptions{})
	if err != nil {
		return errors.Join(bad, err)
	}
	defer w.Close()
	var added []*feeddir.Subscription
	for _, c := range changes {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		h.change()
		err := h.applyChange(w, c)
		var busy *lektordir.BusyError
		switch {
		case errors.As(err, &busy):
			h.waiting++ // a fetcher has it; the next sync finds the difference again
		case err != nil:
			bad = errors.Join(bad, err)
		case c.add != nil:
			added = append(added, c.add)
		case c.remove:
			delete(h.local.subs, c.hash)
		default:
			// What was set, not what is read now: an edit of the user's that came
			// meanwhile is one for the next run.
			sub := *h.local.subs[c.hash]
			if c.alias != nil {
				sub.Alias = *c.alias
			}
			if c.categories != nil {
				sub.Categories = c.categories
			}
			h.local.subs[c.hash] = &sub
		}
	}
	if len(added) > 0 {
		h.change()
		err := feeddir.Finish(w, h.d, added)
		for _, e := range joined.Errors(err) {
			if busy := (*lektordir.BusyError)(nil); errors.As(e, &busy) {
				h.waiting++
				continue
			}
			bad = errors.Join(bad, e)
		}
		for _, sub := range added {
			if feeddir.Subscribed(h.d, sub.Hash) {
				h.local.subs[sub.Hash] = sub
			}
		}
	}
	return bad
}

func (h *share) applyChange(w *lektordir.Writer, c change) error {
	switch {
	case c.add != nil:
		_, err := feeddir.Add(w, h.d, c.add, feeddir.Options{Unsynced: true})
		return err
	case c.remove:
		return feeddir.Remove(w, h.d, c.hash)
	}
	var bad error
	before := *h.local.subs[c.hash]
	if h.readSub(c.hash); h.local.unread[c.hash] || !sameSub(&before, h.local.subs[c.hash]) {
		h.local.subs[c.hash] = &before
		return &lektordir.BusyError{Feed: c.hash} // by the user, who has changed it just now
	}
	if c.alias != nil && *c.alias != "" {
		bad = feeddir.Set(w, h.d, c.hash, "alias", *c.alias)
	} else if c.alias != nil {
		bad = feeddir.Unset(w, h.d, c.hash, "alias")
	}
	if c.categories != nil && bad == nil {
		bad = feeddir.Set(w, h.d, c.hash, "categories", strings.Join(c.categories, "\n"))
	}
	return bad
}

// tell prints what a dry run would do to a subscription.
func (h *share) tell(c change) {
	name := c.hash
	if s := h.local.subs[c.hash]; s != nil {
		name = fetch.Public(s.URL)
	}
	switch {
	case c.add != nil:
		h.s.Report.Info("would subscribe to %s", fetch.Public(c.add.URL))
	case c.remove:
		h.s.Report.Info("would unsubscribe from %s", name)
	default:
		h.s.Report.Info("would change the alias or the categories of %s", name)
	}
}
