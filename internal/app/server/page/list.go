package page

import (
	"errors"
	"html/template"
	"iter"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/lektordir/lektor/internal/app/server"
	"github.com/lektordir/lektor/internal/content"
	"github.com/lektordir/lektor/internal/content/htmlsafe"
	"github.com/lektordir/lektor/internal/protocol/greader"
	"github.com/lektordir/lektor/internal/protocol/query"
	"github.com/lektordir/lektor/internal/read/catalog"
	"github.com/lektordir/lektor/internal/read/entrystore"
	"github.com/lektordir/lektor/internal/text/feedurl"
	"github.com/lektordir/lektor/internal/text/termsafe"
	"github.com/lektordir/lektor/lektordir"
)

const (
	perPage = 50
	// A search has at most maxResults entries. Few are enough for most, and take much less time.
	few, maxResults = 150, 2000
)

// scope is which entries a list has, as its URL says it.
type scope struct {
	In           string // unread, all, starred or search
	Feed, Folder string // a hash, a name; "" for all
	Q            string // the query
	// At is when the list was first shown, in microseconds. Entries that are marked as read later stay in it.
	At int64
}

// scopeOf returns the scope of a form.
func scopeOf(in string, form url.Values) scope {
	s := scope{In: in, Feed: form.Get("feed"), Folder: form.Get("folder"), Q: strings.TrimSpace(form.Get("q"))}
	s.At, _ = strconv.ParseInt(form.Get("at"), 36, 64)
	if !strings.Contains(" all starred search ", " "+in+" ") {
		s.In = "unread"
	}
	return s
}

// Fields returns the names and values of the fields of a form that has the scope.
func (s scope) Fields() (list [][2]string) {
	for _, f := range [][2]string{{"in", s.In}, {"feed", s.Feed}, {"folder", s.Folder}, {"q", s.Q},
		{"at", strconv.FormatInt(s.At, 36)}} {
		if f[1] != "" && f[1] != "0" && f[1] != "unread" {
			list = append(list, f)
		}
	}
	return list
}

// url returns the URL of a page that has the parameters of the list, and some more.
func (s scope) url(path string, more ...string) string {
	var list []string
	for _, f := range s.Fields() {
		if f[0] != "in" || path != s.In {
			list = append(list, f[0]+"="+url.QueryEscape(f[1]))
		}
	}
	for i := 0; i < len(more); i += 2 {
		list = append(list, more[i]+"="+url.QueryEscape(more[i+1]))
	}
	if len(list) == 0 {
		return path
	}
	return path + "?" + strings.Join(list, "&")
}

// URL returns the URL of the list, as it was shown first.
func (s scope) URL() string { return s.url(s.In) }

// Fresh returns the URL of the list as it is now.
func (s scope) Fresh() string {
	s.At = 0
	return s.URL()
}

// stream returns the entries of the list as a stream, but for their state.
func (s scope) stream() greader.Stream {
	switch {
	case s.Feed != "":
		return greader.Stream{Kind: greader.Feed, Name: s.Feed}
	case s.Folder != "":
		return greader.Stream{Kind: greader.Label, Name: s.Folder}
	case s.In == "starred":
		return greader.Stream{Kind: greader.State, Name: greader.Starred}
	}
	return greader.Stream{Kind: greader.State, Name: greader.ReadingList}
}

// starred is the flag of starred entries.
var starred = sync.OnceValue(func() catalog.Flags { return catalog.FlagsOf("F") })

// entries yields the entries of a list with keys from a first one on and less than another, 0 for no limit: the last
// one first, or the other way around if rising is set. The error is that of a search.
func (c *visit) entries(s scope, from, before greader.ID, rising bool) (iter.Seq[server.Entry], error) {
	if s.In == "search" {
		keys, err := c.search(s, few)
		if err == nil && before != 0 && len(keys) == few {
			at := slices.IndexFunc(keys, func(key greader.ID) bool { return key < before })
			if at < 0 || at >= few-perPage {
				keys, err = c.search(s, maxResults)
			}
		}
		if err != nil {
			return nil, err
		}
		return func(yield func(server.Entry) bool) {
			if rising {
				keys = slices.Clone(keys)
				slices.Reverse(keys)
			}
			for _, key := range keys {
				if e, ok := c.v.Item(key); ok && key >= from && (before == 0 || key < before) && !yield(e) {
					return
				}
			}
		}, nil
	}
	return func(yield func(server.Entry) bool) {
		for e := range c.v.In(s.stream(), from, before, rising) {
			if s.In == "unread" && !e.Unread() && (s.At == 0 || !c.v.ReadSince(e.Key, s.At)) ||
				s.In == "starred" && !e.Has(starred()) {
				continue
			}
			if !yield(e) {
				return
			}
		}
	}, nil
}

// unread returns the number of unread entries of a list.
func (c *visit) unread(s scope) (n int, err error) {
	if s.In == "unread" || s.In == "all" {
		for _, f := range c.v.FeedsIn(s.stream()) {
			n += f.Unread
		}
		return n, nil
	}
	all, err := c.entries(s, 0, 0, false)
	if err != nil {
		return 0, err
	}
	for e := range all {
		if e.Unread() {
			n++
		}
	}
	return n, nil
}

// results holds the keys that the last searches have found, the last one first, so that the next pages of a list,
// and the neighbours of its entries, are those of the same search.
type results struct {
	mu   sync.Mutex
	list []result
}

type result struct {
	dir string
	scope
	most int
	keys []greader.ID
}

// maxSearches is the number of searches of which the results are kept.
const maxSearches = 20

// search returns the keys of the newest entries that a query selects, the newest first.
func (c *visit) search(s scope, most int) ([]greader.ID, error) {
	r := &c.Page.results
	dir := c.v.Store.Dir.Path()
	r.mu.Lock()
	for _, old := range r.list {
		if old.dir == dir && old.scope == s && old.most == most && s.At != 0 {
			r.mu.Unlock()
			return old.keys, nil
		}
	}
	r.mu.Unlock()
	q, err := query.ParseWith(s.Q, entrystore.SavedIn(dir))
	if err != nil || q.Empty() {
		return nil, err
	}
	found, err := c.v.Store.Select(c.r.Context(), entrystore.Selection{Query: q, All: true, Newest: most})
	if err != nil {
		return nil, err
	}
	keys := make([]greader.ID, 0, len(found))
	for _, rec := range found {
		if key := c.v.KeyOf(rec.Ref); key != 0 {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, func(a, b greader.ID) int { return int(min(max(int64(b)-int64(a), -1), 1)) })
	r.mu.Lock()
	defer r.mu.Unlock()
	r.list = append([]result{{dir, s, most, keys}}, r.list[:min(len(r.list), maxSearches-1)]...)
	return keys, nil
}

// showKey returns the key of an entry in the form of URLs.
func showKey(key greader.ID) string { return strconv.FormatUint(uint64(key), 36) }

// parseKey parses a key in the form of URLs; 0 is that of no entry.
func parseKey(text string) greader.ID {
	n, err := strconv.ParseInt(text, 36, 64)
	if err != nil || n < 0 {
		return 0
	}
	return greader.ID(n)
}

// row is an entry of a list.
type row struct {
	Key         string
	Title, Lang string
	Feed, Age   string
	Read, Star  bool
}

// listData is the data of a list.
type listData struct {
	scope
	Name    string        // of the feed or folder
	Site    string        // URL of the feed's page
	Podcast template.HTML // properties of the feed, by package htmlsafe
	Link    string        // the beginning of the URL of an entry
	Back    string        // the URL of this page
	Rows    []row
	Last    string // the key of the last one
	Top     string // the key of the newest entry when the page was made, in the list or not
	Older   string // URL of the next page
	Unread  int
	Error   *queryError
	Saved   []string
}

// queryError is the error of a query, which is shown at the word.
type queryError struct{ Before, Word, After, Reason, Hint string }

// list shows a list of entries.
func (c *visit) list() error {
	c.renew()
	s := scopeOf(strings.TrimPrefix(c.r.URL.Path, c.base), c.form)
	if s.At == 0 {
		s.At = c.v.Store.Now.UnixMicro()
	}
	d := listData{scope: s, Link: s.url("entry", "id", ""), Back: s.url(s.In)}
	d.name(c)
	before := parseKey(c.form.Get("before"))
	if before != 0 {
		d.Back = s.url(s.In, "before", showKey(before))
	}
	var page []server.Entry
	all, err := c.entries(s, 0, before, false)
	if bad, ok := errors.AsType[*query.Error](err); ok {
		d.Error = atWord(s.Q, bad)
	} else if err != nil {
		return err
	} else {
		for e := range all {
			if len(page) == perPage {
				d.Older = s.url(s.In, "before", showKey(page[perPage-1].Key))
				break
			}
			page = append(page, e)
		}
		if d.Unread, err = c.unread(s); err != nil {
			return err
		}
	}
	for e := range c.v.In(scope{}.stream(), 0, 0, false) {
		d.Top = showKey(e.Key)
		break
	}
	if d.Rows, err = c.rows(page, s.Feed == ""); err != nil {
		return err
	}
	if len(page) > 0 {
		d.Last = showKey(page[len(page)-1].Key)
	}
	if s.In == "search" {
		saved, _ := entrystore.SavedQueries(c.v.Store.Dir.Path()) // without them, the search works
		for _, q := range saved {
			d.Saved = append(d.Saved, q.Name)
		}
	}
	return c.show(http.StatusOK, "list", frame{Title: d.Heading(), In: s.In, Main: d})
}

// SavedURL returns the URL of the search of a saved query.
func (d listData) SavedURL(name string) string {
	return scope{In: "search", Q: query.SavedTerm(name)}.URL()
}

// Heading returns the heading of a list, which is the title of the page, too.
func (d listData) Heading() string {
	if d.Name != "" {
		return d.Name
	}
	return map[string]string{"unread": "Unread", "all": "All entries", "starred": "Starred", "search": "Search"}[d.In]
}

// name sets the name of the feed or folder of a list.
func (d *listData) name(c *visit) {
	d.Name = termsafe.Line(d.Folder)
	if f := c.v.FeedsIn(d.stream()); d.Feed != "" && len(f) == 1 {
		d.Name, d.Site = server.Title(f[0]), entrystore.Followable(feedurl.Public(f[0].About.Link))
		about := c.v.Store.Dir.FeedOf(lektordir.Ref{Feed: d.Feed})
		d.Podcast = template.HTML(htmlsafe.Fields(entrystore.FeedFields(about)))
	}
}

// WithIn returns the URL of the same feed or folder, or of all, with other entries.
func (s scope) WithIn(in string) string {
	s.In, s.At, s.Q = in, 0, ""
	return s.URL()
}

// atWord returns the parts of a query around its error.
func atWord(text string, bad *query.Error) *queryError {
	e := &queryError{Before: text, Reason: bad.Reason, Hint: bad.Hint}
	runes := []rune(text)
	if bad.Name != "" || bad.Line > 1 || bad.Column < 1 || len(runes) == 0 {
		return e // it is in a saved query
	}
	at := min(bad.Column-1, len(runes)-1)
	from, to := at, at
	for from > 0 && runes[from-1] != ' ' {
		from--
	}
	for to < len(runes) && (to == at || runes[to] != ' ') {
		to++
	}
	e.Before, e.Word, e.After = string(runes[:from]), string(runes[from:to]), string(runes[to:])
	return e
}

// rowFields are the fields of entries that lists show.
const rowFields = lektordir.FieldTitle | lektordir.FieldPubDate

// rows reads the entries of a page. Entries that cannot be read are left out.
func (c *visit) rows(page []server.Entry, feeds bool) ([]row, error) {
	byKey := map[string]server.Entry{}
	refs := make([]lektordir.Ref, len(page))
	for i, e := range page {
		refs[i] = e.Ref()
		byKey[entrystore.Key(refs[i].Path())] = e
	}
	records, err := c.v.Store.Records(c.r.Context(), refs, rowFields)
	rows := make([]row, 0, len(page))
	for _, r := range records {
		e := byKey[r.Key()]
		line := row{Key: showKey(e.Key), Title: r.Title(), Lang: content.Language(e.Feed.About.Language),
			Read: !e.Unread(), Star: e.Has(starred()), Age: age(r.Date(), c.v.Store.Now)}
		if feeds {
			line.Feed = server.Title(e.Feed)
		}
		rows = append(rows, line)
	}
	return rows, err
}

// age returns how long ago a time was, or its date.
func age(t, now time.Time) string {
	switch d := now.Sub(t); {
	case d < time.Hour:
		return strconv.Itoa(max(1, int(d.Minutes()))) + " min"
	case d < 24*time.Hour:
		return strconv.Itoa(int(d.Hours())) + " h"
	case d < 30*24*time.Hour:
		return strconv.Itoa(int(d.Hours()/24)) + " d"
	case t.Year() == now.Year():
		return t.Format("2 Jan")
	}
	return t.Format("2 Jan 2006")
}

// newer answers with the number of unread entries that a list got since it was shown, for the script.
func (c *visit) newer() error {
	s := scopeOf(c.form.Get("in"), c.form)
	all, err := c.entries(scope{In: s.In, Feed: s.Feed, Folder: s.Folder}, parseKey(c.form.Get("top"))+1, 0, false)
	if err != nil {
		return err
	}
	n := 0
	for e := range all {
		if e.Unread() {
			n++
		}
	}
	tag := `"` + strconv.Itoa(n) + `"`
	c.w.Header().Set("ETag", tag)
	if c.r.Header.Get("If-None-Match") == tag {
		c.w.WriteHeader(http.StatusNotModified)
		return nil
	}
	c.send(http.StatusOK, "text/plain; charset=utf-8", []byte(strconv.Itoa(n)))
	return nil
}

// site leads to the page of an entry on its site.
func (c *visit) site() error {
	if e, ok := c.v.Item(parseKey(c.form.Get("id"))); ok {
		own := entrystore.Own(c.v.Store.Record(e.Ref()).Get(lektordir.FieldLink | lektordir.FieldID))
		if u := entrystore.Followable(own.URL()); u != "" {
			c.w.Header().Set("Referrer-Policy", "no-referrer")
			http.Redirect(c.w, c.r, u, http.StatusSeeOther)
			return nil
		}
	}
	c.fail(http.StatusNotFound, "The entry is gone, or has no page.")
	return nil
}
