package fetcher

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/lektordir/lektor/feedconv"
	"github.com/lektordir/lektor/internal/backoff"
	"github.com/lektordir/lektor/internal/delivery"
	"github.com/lektordir/lektor/internal/entryname"
	"github.com/lektordir/lektor/internal/feeddir"
	"github.com/lektordir/lektor/internal/fetch"
	"github.com/lektordir/lektor/internal/fulltext"
	"github.com/lektordir/lektor/internal/stage"
	"github.com/lektordir/lektor/internal/units"
	"github.com/lektordir/lektor/internal/workers"
	"github.com/lektordir/lektor/lektordir"
)

// Limits of the pages of one visit of a feed.
const (
	maxPages     = 100 // that are asked for; the newest entries come first
	pagesAtOnce  = 4   // of several hosts; of one, it is what the client lets through
	pagesTime    = 2 * time.Minute
	maxRefreshes = 2
)

// retries are the waits before a page that could not be had is asked for again. After the
// last one the feed's text stays.
var retries = backoff.Backoff{Steps: []time.Duration{time.Hour, 6 * time.Hour, 24 * time.Hour}}

// errPagesTime ends the wait for pages.
var errPagesTime = errors.New("it took too long, with the other pages of the feed")

// fullText gets the articles of the pages of a feed's entries, during a visit.
//
// An entry that was delivered never changes, so it waits for its page, for a time. What
// has not come then is delivered with the feed's text, as no entry is to be missed for
// its page, and the page is asked for again at later visits, a few times. When it
// comes while no viewer has taken the entry, a version with it takes the place of the
// entry, as one would that the feed changed; an entry that was read stays as it was
// read.
//
// What an entry is known by, and whether it changed, rests on the feed's document alone.
type fullText struct {
	v     *visit
	pages *feeddir.Pages
	got   []*wantedPage // with an article

	kept     map[string]*feeddir.Page // by URL, the pages that were there before this visit, without articles
	document string                   // where the feed's was found, which names the pages
}

// newFullText prepares it for a feed with the setting.
func (v *visit) newFullText() (*fullText, error) {
	pages, err := feeddir.PagesOf(v.r.Dir, v.hash)
	return &fullText{v: v, pages: pages, kept: map[string]*feeddir.Page{}}, err
}

// wantedPage is a page that is to be had for an entry.
type wantedPage struct {
	url    string
	index  int    // of the entry in the document, -1 for one that was delivered
	unique string // of the latter
	known  bool   // an older version of the entry was delivered
	own    ownText

	page *feeddir.Page // what became of it, nil for nothing
	err  error         // why it could not be had
}

// has reports whether the entry has an article now.
func (w *wantedPage) has() bool {
	return w.err == nil && w.page != nil && w.page.Refused == "" && w.page.Text != ""
}

// fullText gets the pages of the entries that are about to be delivered, and of those
// delivered without. The error is a local one, or the context's.
func (v *visit) fullText() error {
	policy := v.st.OnUpdate()
	wanted, err := delivery.Wanted(v.txn, v.feed, policy, dates(feeddir.HistoryOf(v.r.Dir, v.hash)))
	if err != nil {
		return err
	}
	urls := entryPages(v.feed)
	var list []*wantedPage
	left := 0
	for _, w := range slices.Backward(wanted) { // what is delivered last is the newest
		e := &v.feed.Entries[w.Index]
		switch {
		case urls[w.Index] == "":
		case len(list) >= maxPages:
			left++
		default:
			own := ownText{title: e.Title, content: e.Content, mime: e.ContentType, summary: feedconv.PlainText(e.Summary, e.SummaryType)}
			list = append(list, &wantedPage{url: urls[w.Index], index: w.Index, known: !w.New, own: own})
		}
	}
	if left > 0 {
		v.r.report.Info("%s: full text of the newest %d entries only", v.name, maxPages)
	}
	late, err := v.full.delivered(list)
	if err != nil {
		return err
	}
	if err := v.full.get(append(list, late...)); err != nil {
		return err
	}
	return v.full.prune(urls)
}

// again is what is done of it when the document brings nothing new: it ends the visit. sum
// is what became of the feed otherwise.
func (v *visit) again(sum Summary) *Outcome {
	late, err := v.full.delivered(nil)
	if err == nil {
		err = v.full.get(late)
	}
	if err == nil {
		err = v.full.revise(&v.out)
	}
	if err == nil && len(v.out.Updated) > 0 {
		err = v.commitVisit()
	}
	if err != nil {
		return v.local(err)
	}
	sum.Updated = len(v.out.Updated)
	return v.save(sum)
}

// entryPages gives the page of each entry of a document, "" for one that has none of its
// own: a page that several entries share, or that is the feed's, has another text.
func entryPages(f *feedconv.Feed) []string {
	urls := make([]string, len(f.Entries))
	entries := map[string]int{pageURL(f.Link): 2}
	for i := range f.Entries {
		e := &f.Entries[i]
		urls[i] = pageURL((&lektordir.Entry{ID: e.ID, Link: e.Link}).URL())
		entries[urls[i]]++
	}
	for i, u := range urls {
		if entries[u] > 1 {
			urls[i] = ""
		}
	}
	return urls
}

// pageURL is a URL as it is asked for, "" for what is none of http or https. A user and
// password in what a stranger wrote are not ours to send.
func pageURL(raw string) string {
	u, err := fetch.ParseURL(raw)
	if err != nil {
		return ""
	}
	u.User = nil
	return u.String()
}

// delivered gives the pages that are to be asked for again, for entries that were
// delivered without and that no viewer has taken; or, if the user wants it so, the pages
// of all such entries. Those of others are forgotten, and those in list left out.
func (f *fullText) delivered(list []*wantedPage) ([]*wantedPage, error) {
	v := f.v
	due := map[string]bool{} // and whether now
	if err := f.pages.Each(func(p *feeddir.Page) {
		f.kept[p.URL] = p
		if p.Tries > 0 {
			due[p.URL] = v.t.reason == Named || !p.Next.After(v.r.now())
		}
	}); err != nil {
		return nil, err
	}
	for _, w := range list {
		delete(due, w.url)
	}
	if len(due) == 0 && !v.t.want.FullText {
		return nil, nil
	}
	found, err := v.without()
	if err != nil {
		return nil, err
	}
	for _, w := range list {
		delete(found, w.url)
	}
	var late []*wantedPage
	for u, entries := range found {
		if now, known := due[u]; len(entries) == 1 && len(late)+len(list) < maxPages && (now || v.t.want.FullText && !known) {
			late = append(late, entries[0])
		}
	}
	var bad error
	for u := range due {
		if len(found[u]) == 0 {
			delete(f.kept, u)
			bad = errors.Join(bad, f.pages.Remove(u))
		}
	}
	return late, bad
}

// without returns the pages of entries that were delivered without them and that no viewer
// has taken, by URL, the newest entries first.
func (v *visit) without() (map[string][]*wantedPage, error) {
	refs, err := v.r.Dir.List(v.ctx, lektordir.ListOptions{Feeds: []string{v.hash}, Places: []lektordir.Place{lektordir.New}})
	if v.ctx.Err() != nil {
		return nil, context.Cause(v.ctx)
	}
	if err != nil {
		v.r.report.Warn("%v", err)
	}
	found := map[string][]*wantedPage{}
	for _, ref := range slices.Backward(refs) {
		e, err := v.r.Dir.ReadEntry(ref, lektordir.FieldTitle|lektordir.FieldID|lektordir.FieldLink|lektordir.FieldContent|lektordir.FieldType|lektordir.FieldSummary|lektordir.FieldFullText)
		if err != nil {
			continue // a viewer has it, or it is none
		}
		if u := pageURL(e.URL()); u != "" && e.FullText.URL == "" {
			own := ownText{title: e.Title, content: string(e.Content), mime: e.Type, summary: e.Summary}
			found[u] = append(found[u], &wantedPage{url: u, index: -1, unique: ref.Unique, known: true, own: own})
		}
	}
	return found, nil
}

// get gets pages and keeps what became of them.
func (f *fullText) get(list []*wantedPage) error {
	if len(list) == 0 {
		return nil
	}
	v := f.v
	ctx, cancel := context.WithTimeoutCause(v.ctx, v.r.pagesTime, errPagesTime)
	defer cancel()
	f.document = cmp.Or(v.resp.FinalURL, v.st.Document()) // a state is for one goroutine
	g := workers.Limited(pagesAtOnce)
	for _, w := range list {
		g.Go(func() error { return f.one(ctx, w) })
	}
	err := g.Wait()
	if v.ctx.Err() != nil {
		return context.Cause(v.ctx)
	}
	if err == nil {
		err = f.distinct(list)
	}
	if err != nil {
		return err
	}
	for _, w := range list {
		if w.has() {
			f.got = append(f.got, w)
		}
	}
	f.report(list)
	return nil
}

// one gets a page and keeps what became of it. The error is a local one.
func (f *fullText) one(ctx context.Context, w *wantedPage) error {
	old, err := f.pages.Get(w.url)
	if err != nil {
		return err
	}
	if old != nil && old.Tries == 0 && !w.known {
		w.page = old // a run that was stopped had it
		return nil
	}
	if w.page, err = f.ask(ctx, w, old); err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if f.v.ctx.Err() != nil {
		w.page = nil
		return nil
	}
	if w.err = err; err != nil {
		if errors.As(err, new(*fulltext.MissingError)) {
			w.page = nil
			return nil
		}
		w.page = f.failed(w.url, old, err)
	} else if w.index < 0 && w.page.Refused == "" {
		// Until the entry has it, it is to be asked for: a run that ends before would
		// else leave the entry as it is.
		w.page.Tries, w.page.Next = 1, f.v.r.now()
		if old != nil {
			w.page.Tries = max(old.Tries, 1)
		}
	}
	if err := f.pages.Put(w.page); err != nil {
		return err
	}
	f.v.r.at("page")
	w.page.Article = nil // there may be many; they are read again when they are delivered
	return nil
}

// failed is what is known of a page that could not be had.
func (f *fullText) failed(url string, old *feeddir.Page, err error) *feeddir.Page {
	p := &feeddir.Page{URL: url}
	if old != nil {
		p.Tries = old.Tries
	}
	p.Tries++
	if lasting(err) || retries.Over(p.Tries) {
		p.Tries, p.Refused = 0, err.Error()
		return p
	}
	p.Next = f.v.r.now().Add(retries.Wait(p.Tries, 0, fetch.Pause(err)))
	return p
}

// lasting reports whether a page that failed so is not worth another request: it is no
// page, or not for us. One that is not there yet, or a server in trouble, is.
func lasting(err error) bool {
	if e := (*fetch.StatusError)(nil); errors.As(err, &e) {
		switch e.Status {
		case http.StatusUnauthorized, http.StatusPaymentRequired, http.StatusForbidden, http.StatusGone, http.StatusUnavailableForLegalReasons:
			return true
		}
		return false
	}
	return !errors.Is(err, errPagesTime) && !errors.Is(err, errTruncated) && !errors.As(err, new(*fetch.NetError)) && !errors.As(err, new(*fetch.HostDelayError))
}

// ask asks for a page and finds its article. The error is for the user.
func (f *fullText) ask(ctx context.Context, w *wantedPage, old *feeddir.Page) (*feeddir.Page, error) {
	v := f.v
	// The document names the page, so what holds for redirects holds for it.
	from, to := f.document, w.url
	for range 1 + maxRefreshes {
		req := &fetch.Request{URL: to, Origin: from, Page: true}
		if old != nil && len(old.Article) > 0 {
			req.ETag, req.LastModified, req.Validated = old.ETag, old.LastModified, old.Final
		}
		resp, err := v.session.ask(ctx, v.req, req)
		if err != nil {
			return nil, err
		}
		if resp.NotModified {
			a := &fulltext.Article{Content: string(old.Article)}
			return &feeddir.Page{
				URL: w.url, Final: old.Final, ETag: old.ETag, LastModified: old.LastModified,
				Article: old.Article, Refused: judge(a, w.own),
			}, nil
		}
		var a *fulltext.Article
		err = v.r.parser.reading(ctx, resp.Body, func() (err error) {
			a, err = v.r.extract(ctx, resp.Body, resp.FinalURL, resp.Header.Get("Content-Type"))
			return err
		})
		if err != nil {
			return nil, err
		}
		refused := judge(a, w.own)
		if refused == "" && astray(w.url, resp.FinalURL) {
			refused = "it leads to the home page"
		}
		if refused != "" && a.Refresh != "" {
			from, to = resp.FinalURL, a.Refresh
			continue
		}
		p := &feeddir.Page{URL: w.url, Final: resp.FinalURL, Refused: refused}
		if refused == "" {
			p.ETag, p.LastModified, p.Article = resp.ETag, resp.LastModified, []byte(a.Content)
		}
		return p, nil
	}
	return nil, &fetch.RedirectError{URL: w.url, Target: to, Reason: "the page leads from one to another"}
}

// astray reports whether a page that is none of a site's front pages led to one, as sites
// do with what they do not find.
func astray(from, to string) bool {
	u, uerr := url.Parse(from)
	t, terr := url.Parse(to)
	return uerr == nil && terr == nil && strings.Trim(t.Path, "/") == "" && t.RawQuery == "" && strings.Trim(u.Path, "/") != ""
}

// distinct takes articles back that are not those of their entries: the same text, or the
// same place, behind the pages of several is a wall before them all.
func (f *fullText) distinct(list []*wantedPage) error {
	texts, places := map[string]int{}, map[string]int{}
	all := maps.Clone(f.kept)
	for _, w := range list {
		if w.page != nil {
			all[w.url] = w.page
		}
	}
	for _, p := range all {
		if p.Text != "" {
			texts[p.Text]++
			places[p.Final]++
		}
	}
	for _, w := range list {
		if w.page == nil || w.page.Text == "" || texts[w.page.Text] < 2 && places[w.page.Final] < 2 {
			continue
		}
		w.page = &feeddir.Page{URL: w.url, Final: w.page.Final, Refused: "the pages of several entries have the same text"}
		if err := f.pages.Put(w.page); err != nil {
			return err
		}
	}
	return nil
}

// report tells what could not be had, in one line.
func (f *fullText) report(list []*wantedPage) {
	failed := 0
	var first error
	for _, w := range list {
		switch {
		case w.err == nil:
		case errors.As(w.err, new(*fulltext.MissingError)):
			f.v.r.missing.Do(func() { f.v.r.report.Warn("%v", w.err) })
		default:
			if failed++; first == nil {
				first = prefixed(fetch.Public(w.url), w.err)
			}
		}
	}
	if failed > 0 {
		f.v.r.report.Info("%s: %d of %s without full text: %v", f.v.name, failed, units.Count(len(list), "page"), first)
	}
}

// prune forgets the pages of entries that the document does not have any more. They
// cannot change, and are not asked for again. Those that came with this visit stay: the
// entry of one may be one that was delivered without.
func (f *fullText) prune(urls []string) (err error) {
	for u, p := range f.kept {
		if p.Tries == 0 && !slices.Contains(urls, u) {
			err = errors.Join(err, f.pages.Remove(u))
		}
	}
	return err
}

// read returns the article of a page that came, and false if it cannot be read any more.
func (f *fullText) read(url string) (delivery.Article, bool) {
	p, err := f.pages.Get(url)
	if err != nil || p == nil || len(p.Article) == 0 {
		return delivery.Article{}, false
	}
	return delivery.Article{URL: fetch.Public(p.Final), HTML: p.Article}, true
}

// article returns the function that finds the article of an entry of the document, see
// [delivery.Options]; nil for a feed whose entries have its own text.
func (f *fullText) article() func(int) (delivery.Article, bool) {
	if f == nil {
		return nil
	}
	return func(entry int) (delivery.Article, bool) {
		i := slices.IndexFunc(f.got, func(w *wantedPage) bool { return w.index == entry })
		if i < 0 {
			return delivery.Article{}, false
		}
		return f.read(f.got[i].url)
	}
}

// late returns the pages for entries that were delivered without.
func (f *fullText) late() (pages []*wantedPage) {
	for _, w := range f.got {
		if w.index < 0 {
			pages = append(pages, w)
		}
	}
	return pages
}

// settle takes note that the entries are durable: those that waited for their pages have
// them. If it fails, that costs a request.
func (f *fullText) settle() {
	if f == nil {
		return
	}
	for _, w := range f.late() {
		if p, err := f.pages.Get(w.url); err == nil && p != nil && p.Tries > 0 {
			p.Tries, p.Next = 0, time.Time{}
			_ = f.pages.Put(p)
		}
	}
}

// reviseEntry stages a version of an entry with an article. Extras that we do not know are
// lost. ok is false if the entry is not in new/ any more, or cannot be read.
func (f *fullText) reviseEntry(old string, a delivery.Article) (unique string, ok bool, err error) {
	e, err := f.v.r.Dir.ReadEntry(lektordir.Ref{Feed: f.v.hash, Unique: old}, lektordir.AllFields)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.As(err, new(*lektordir.MalformedError)):
		return "", false, nil
	case err != nil:
		return "", false, err
	}
	a.Replace(e)
	e.Replaces = old
	return f.v.txn.Revise(f.v.ctx, old, e.Files())
}

// revise stages versions with the full text of entries that were delivered without. An
// entry that the document has changed is among out, and not revised.
func (f *fullText) revise(out *stage.Result) error {
	for _, w := range f.late() {
		same := func(unique string) bool { return entryname.Identity(unique) == entryname.Identity(w.unique) }
		a, ok := f.read(w.url)
		if !ok || slices.ContainsFunc(out.Updated, same) {
			continue
		}
		unique, ok, err := f.reviseEntry(w.unique, a)
		if err != nil {
			return err
		}
		if ok {
			out.Updated = append(out.Updated, unique)
		}
	}
	return nil
}
