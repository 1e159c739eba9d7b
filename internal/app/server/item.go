package server

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"math"
	"strings"
	"sync"
	"time"

	"github.com/lektordir/lektor/internal/content/htmlsafe"
	"github.com/lektordir/lektor/internal/files/workers"
	"github.com/lektordir/lektor/internal/protocol/greader"
	"github.com/lektordir/lektor/internal/read/catalog"
	"github.com/lektordir/lektor/internal/read/entrystore"
	"github.com/lektordir/lektor/internal/text/feedurl"
	"github.com/lektordir/lektor/internal/text/termsafe"
	"github.com/lektordir/lektor/lektordir"
)

// itemFields are the fields of entries that items show.
const itemFields = lektordir.FieldTitle | lektordir.FieldID | lektordir.FieldContent |
	lektordir.FieldAuthor | lektordir.FieldPubDate |
	lektordir.FieldType | lektordir.FieldLink | lektordir.FieldUpdated | lektordir.FieldEnclosures |
	lektordir.FieldDuration | lektordir.FieldEpisode | lektordir.FieldSeason | lektordir.FieldElements

// itemsOf reads entries in parallel. Entries that are gone or malformed are left out. The error is
// that of ctx, or of a file that cannot be read.
func (v *View) itemsOf(ctx context.Context, entries []Entry) ([]greader.Item, error) {
	defer reading()()
	found := make([]greader.Item, len(entries))
	failed := make([]error, len(entries))
	if err := workers.ForEach(ctx, len(entries), func(i int) {
		found[i], failed[i] = v.itemOf(entries[i])
	}); err != nil {
		return nil, err
	}
	items := found[:0]
	for i, err := range failed {
		switch {
		case err == nil:
			items = append(items, found[i])
		case errors.Is(err, fs.ErrNotExist):
		case errors.As(err, new(*lektordir.MalformedError)):
			v.Store.S.Report.Warn("%v", err)
		default:
			return nil, err
		}
	}
	return items, nil
}

// turns limits the number of batches that are read at once, and with them the memory.
var turns = sync.OnceValue(func() chan struct{} { return make(chan struct{}, 2*workers.Size()) })

// reading waits for a turn to read a batch. The result ends it.
func reading() (end func()) {
	turns() <- struct{}{}
	return func() { <-turns() }
}

// itemOf reads an entry.
func (v *View) itemOf(e Entry) (greader.Item, error) {
	ref := e.Ref()
	r := v.Store.Record(ref)
	if err := r.Read(itemFields); err != nil {
		return greader.Item{}, err
	}
	feed, own := e.Feed.About.Feed, entrystore.Own(r.Get(itemFields))
	if e.Feed.About.Err != nil {
		feed = r.Feed() // the entry may have its own
	}
	page := cmp.Or(feed.Link, feed.ID)
	url := own.URL()
	delivered := ref.Delivered()
	published := unixTime(r.Published())
	i := greader.Item{
		ID: e.Key.Long(), CrawlTimeMsec: greader.Millis(delivered), TimestampUsec: greader.Micros(delivered),
		Published: published, Updated: published,
		Title: strings.TrimSpace(termsafe.Line(own.Title)), Author: termsafe.Line(cmp.Or(own.Author, feed.Author)),
		Canonical:  []greader.Link{{Href: cmp.Or(url, publicURL(page))}},
		Alternate:  []greader.Link{{Href: cmp.Or(url, publicURL(page)), Type: "text/html"}},
		Categories: v.categories(e),
		Origin:     greader.Origin{StreamID: greader.FeedID(ref.Feed), Title: titleOf(feed), HTMLURL: publicURL(page)},
		Summary: greader.Text{Content: htmlsafe.Clean(own.Content, own.Type,
			htmlsafe.Options{Base: cmp.Or(own.URL(), page)}) + htmlsafe.Podcast(own, r.Kept)},
	}
	if i.Title == "" {
		i.Title = r.Title()
	}
	if !own.Updated.IsZero() {
		i.Updated = unixTime(own.Updated)
	}
	for _, f := range own.Enclosures {
		i.Enclosure = append(i.Enclosure, greader.Link{Href: f.URL, Type: f.Type, Length: max(f.Length, 0)})
	}
	return i, nil
}

// unixTime returns a time in seconds. Some clients have 32 bits for it.
func unixTime(t time.Time) int64 { return min(max(t.Unix(), 0), math.MaxInt32) }

// publicURL returns the first http or https URL among some texts, without a password, "" if there is none.
func publicURL(texts ...string) string {
	for _, text := range texts {
		if feedurl.IsHTTP(text) {
			return feedurl.Public(text)
		}
	}
	return ""
}

// categories returns the states and labels of an entry.
func (v *View) categories(e Entry) []string {
	list := []string{greader.StateID(greader.ReadingList)}
	if e.Unread() {
		list = append(list, greader.StateID(greader.KeptUnread))
	} else {
		list = append(list, greader.StateID(greader.Read))
	}
	if e.Has(catalog.FlagsOf("F")) {
		list = append(list, greader.StateID(greader.Starred))
	}
	for _, f := range v.folders(e.Feed) {
		list = append(list, greader.LabelID(f))
	}
	for flag := range strings.SplitSeq(e.Flags().String(), "") {
		if flag >= "a" && flag <= "z" {
			list = append(list, greader.LabelID(v.flagLabel(flag)))
		}
	}
	return list
}

// head returns the beginning of a list of items.
func (v *View) head(s greader.Stream, p page) greader.Head {
	h := greader.Head{
		Direction: "ltr", ID: greader.StateID(greader.ReadingList), Title: "lektor", Updated: v.Store.Now.Unix(),
		Self: []greader.Link{}, Alternate: []greader.Link{},
	}
	if len(p.entries) > 0 {
		h.Updated = p.entries[0].Ref().Delivered().Unix() // not the present time, so that equal lists have equal ETags
	}
	switch s.Kind {
	case greader.Feed:
		hash := v.feedOf(s.Name)
		h.ID = greader.FeedID(s.Name)
		if hash != "" {
			h.ID = greader.FeedID(hash)
			if f := v.Feed(hash); f != nil && f.About != nil {
				h.Title = titleOf(f.About.Feed)
				h.Alternate = append(h.Alternate, greader.Link{Href: publicURL(cmp.Or(f.About.Link, f.About.ID)),
					Type: "text/html"})
			}
		}
	case greader.Label:
		h.ID, h.Title = greader.LabelID(s.Name), termsafe.Line(s.Name)
	case greader.State:
		h.ID = greader.StateID(s.Name)
	}
	return h
}
