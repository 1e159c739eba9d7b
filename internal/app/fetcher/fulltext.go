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
	"github.com/lektordir/lektor/internal/cli/fulltext"
	"github.com/lektordir/lektor/internal/dir/entryname"
	"github.com/lektordir/lektor/internal/dir/stage"
	"github.com/lektordir/lektor/internal/feeds/feedstage"
	"github.com/lektordir/lektor/internal/feeds/history"
	"github.com/lektordir/lektor/internal/feeds/spool"
	"github.com/lektordir/lektor/internal/files/workers"
	"github.com/lektordir/lektor/internal/http/httpmsg"
	"github.com/lektordir/lektor/internal/http/limiter"
	"github.com/lektordir/lektor/internal/text/feedurl"
	"github.com/lektordir/lektor/internal/text/humanize"
	"github.com/lektordir/lektor/lektordir"
)

// Limits for the pages of one visit of a feed.
const (
	maxPages     = 100 // pages requested; the newest entries come first
	pagesAtOnce  = 4   // pages requested at the same time, if the client's limit for a host allows it
	pagesTime    = 2 * time.Minute
	maxRefreshes = 2
)

// retries are the waits before a page that failed is requested again. After the last one, the entry
// keeps the feed's text.
var retries = limiter.Backoff{Steps: []time.Duration{time.Hour, 6 * time.Hour, 24 * time.Hour}}

// errPagesTime cancels the requests for pages.
var errPagesTime = errors.New("it took too long, with the other pages of the feed")

// fullText fetches the articles of the pages of a feed's entries, during a visit.
//
// A delivered entry never changes, so a new entry waits for its page for at most pagesTime. If the
// page has not come, the entry is delivered with the feed's text, so that no entry is missed
// because of its page, and the page is requested again at later visits, a few times. If it comes
// while the entry is still in new/, a version with the article replaces the entry, like an update
// by the feed. An entry that a viewer has moved to cur/ keeps its text.
//
// The identity of an entry, and whether it changed, depend on the feed's document alone.
type fullText struct {
	v        *visit
	pages    *spool.Pages
	articles map[int]string // URLs of pages with an article, by the index of the entry in the document
	late     []*wantedPage  // pages with an article for entries that were delivered without it
	bad      error          // an article could not be read

	recorded map[string]*spool.Page // by URL: pages recorded before this visit, without their articles
	document string                 // URL of the feed's document, which names the pages
}

// newFullText returns the fullText of a visit.
func (v *visit) newFullText() (*fullText, error) {
	pages, err := spool.PagesOf(v.r.Dir, v.hash)
	return &fullText{v: v, pages: pages, articles: map[int]string{}, recorded: map[string]*spool.Page{}}, err
}

// wantedPage is a page to fetch for an entry.
type wantedPage struct {
	url      string
	index    int    // the entry's index in the document; -1 for an entry delivered before
	unique   string // the entry's unique, if index is -1
	isUpdate bool   // an older version of the entry was delivered
	own      ownText

	page *spool.Page // the result; nil if the page was not fetched
	err  error       // the reason why the page could not be fetched
}

// fullText fetches the pages of the entries that are about to be delivered, and of entries
// delivered without their article. The error is a local one, or the context's.
func (v *visit) fullText() error {
	doc := feedstage.Document(v.feed, v.st.Settings.OnUpdate(), nil)
	doc.Dates = dates(history.Of(v.r.Dir, v.hash))
	wanted, err := v.txn.Wanted(doc)
	if err != nil {
		return err
	}
	urls := entryPages(v.feed)
	var list []*wantedPage
	skipped := 0
	for _, w := range slices.Backward(wanted) { // the newest entry is delivered last
		e := &v.feed.Entries[w.Index]
		switch {
		case urls[w.Index] == "":
		case len(list) >= maxPages:
			skipped++
		default:
			own := ownText{title: e.Title, content: e.Content, mime: e.Type,
				summary: feedconv.PlainText(e.Summary, e.SummaryType)}
			list = append(list, &wantedPage{url: urls[w.Index], index: w.Index, isUpdate: !w.New, own: own})
		}
	}
	if skipped > 0 {
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

// retryPages fetches pages for delivered entries if the document has no new ones, and ends the visit.
// sum is the result of the visit so far.
func (v *visit) retryPages(sum Summary) *VisitResult {
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

// entryPages returns the URL of each entry's page. It is "" for a page that several entries share,
// or that is the feed's own: such a page is not about the one entry.
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

// pageURL returns the URL to request, or "" if it is not http or https. User and password are
// removed, as a stranger wrote them.
func pageURL(raw string) string {
	u, err := feedurl.Parse(raw)
	if err != nil {
		return ""
	}
	u.User = nil
	return u.String()
}

// delivered returns the pages to request for entries that were delivered without their article and
// are still in new/: the due ones or, if the user asked for full text, all of them. Pages in
// list are left out. Records of due pages without such an entry are removed.
func (f *fullText) delivered(list []*wantedPage) ([]*wantedPage, error) {
	v := f.v
	due := map[string]bool{} // pages to request again; true: now
	if err := f.pages.Each(func(p *spool.Page) {
		f.recorded[p.URL] = p
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
		if now, known := due[u]; len(entries) == 1 && len(late)+len(list) < maxPages &&
			(now || v.t.want.FullText && !known) {
			late = append(late, entries[0])
		}
	}
	var bad error
	for u := range due {
		if len(found[u]) == 0 {
			delete(f.recorded, u)
			bad = errors.Join(bad, f.pages.Remove(u))
		}
	}
	return late, bad
}

// without returns the pages of the entries in new/ that have no article, by URL, newest entries
// first.
func (v *visit) without() (map[string][]*wantedPage, error) {
	refs, err := v.r.Dir.List(v.ctx, lektordir.ListOptions{Feeds: []string{v.hash},
		Places: []lektordir.Place{lektordir.New}})
	if v.ctx.Err() != nil {
		return nil, context.Cause(v.ctx)
	}
	if err != nil {
		v.r.report.Warn("%v", err)
	}
	found := map[string][]*wantedPage{}
	for _, ref := range slices.Backward(refs) {
		e, err := v.r.Dir.ReadEntry(ref,
			lektordir.FieldTitle|lektordir.FieldID|lektordir.FieldLink|lektordir.FieldContent|lektordir.FieldType|
				lektordir.FieldSummary|lektordir.FieldFullText)
		if err != nil {
			continue // a viewer has moved it, or it is malformed
		}
		if u := pageURL(e.URL()); u != "" && e.FullText.URL == "" {
			own := ownText{title: e.Title, content: string(e.Content), mime: e.Type, summary: e.Summary}
			found[u] = append(found[u], &wantedPage{url: u, index: -1, unique: ref.Unique, isUpdate: true, own: own})
		}
	}
	return found, nil
}

// get fetches pages and records the results.
func (f *fullText) get(list []*wantedPage) error {
	if len(list) == 0 {
		return nil
	}
	v := f.v
	ctx, cancel := context.WithTimeoutCause(v.ctx, v.r.pagesTime, errPagesTime)
	defer cancel()
	f.document = cmp.Or(v.resp.FinalURL, v.st.Document.URL()) // State is not safe for concurrent use
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
		switch {
		case w.err != nil || w.page == nil || w.page.Refused != "" || w.page.Text == "":
		case w.index < 0:
			f.late = append(f.late, w)
		default:
			f.articles[w.index] = w.url
		}
	}
	f.report(list)
	return nil
}

// one fetches a page and records the result. The error is a local one.
func (f *fullText) one(ctx context.Context, w *wantedPage) error {
	old, err := f.pages.Get(w.url)
	if err != nil {
		return err
	}
	if old != nil && old.Tries == 0 && !w.isUpdate {
		w.page = old // fetched by a run that was stopped
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
		// The page stays due until the entry has the article: otherwise, if the run ends before,
		// the entry would never get it.
		w.page.Tries, w.page.Next = 1, f.v.r.now()
		if old != nil {
			w.page.Tries = max(old.Tries, 1)
		}
	}
	if err := f.pages.Put(w.page); err != nil {
		return err
	}
	f.v.r.hook("page")
	w.page.Article = nil // to save memory; it is read again when the entry is delivered
	return nil
}

// failed returns the record of a page that could not be fetched.
func (f *fullText) failed(url string, old *spool.Page, err error) *spool.Page {
	p := &spool.Page{URL: url}
	if old != nil {
		p.Tries = old.Tries
	}
	p.Tries++
	if lasting(err) || retries.Over(p.Tries) {
		p.Tries, p.Refused = 0, err.Error()
		return p
	}
	p.Next = f.v.r.now().Add(retries.Wait(p.Tries, 0, httpmsg.Pause(err)))
	return p
}

// lasting reports whether a failed page is not worth another request: it is not a page, or access
// is refused. A page that does not exist yet, and a failing server, are worth one.
func lasting(err error) bool {
	if e := (*httpmsg.StatusError)(nil); errors.As(err, &e) {
		switch e.Status {
		case http.StatusUnauthorized, http.StatusPaymentRequired, http.StatusForbidden, http.StatusGone,
			http.StatusUnavailableForLegalReasons:
			return true
		}
		return false
	}
	return !errors.Is(err, errPagesTime) && !errors.Is(err, errTruncated) && !errors.As(err, new(*httpmsg.NetError)) &&
		!errors.As(err, new(*httpmsg.HostDelayError))
}

// ask requests a page and extracts its article. The error is for the user.
func (f *fullText) ask(ctx context.Context, w *wantedPage, old *spool.Page) (*spool.Page, error) {
	v := f.v
	// The document names the page, so the rules for redirects apply.
	from, to := f.document, w.url
	for range 1 + maxRefreshes {
		req := &httpmsg.Request{URL: to, Origin: from, Page: true}
		if old != nil && len(old.Article) > 0 {
			req.ETag, req.LastModified, req.Validated = old.ETag, old.LastModified, old.Final
		}
		resp, err := v.lockedFeed.ask(ctx, v.req, req)
		if err != nil {
			return nil, err
		}
		if resp.NotModified {
			a := &fulltext.Article{Content: string(old.Article)}
			return &spool.Page{
				URL: w.url, Final: old.Final, ETag: old.ETag, LastModified: old.LastModified,
				Article: old.Article, Refused: whyUnusable(a, w.own),
			}, nil
		}
		var a *fulltext.Article
		err = v.r.parser.withPlace(ctx, resp.Body, func() (err error) {
			a, err = v.r.extract(ctx, resp.Body, resp.FinalURL, resp.Header.Get("Content-Type"))
			return err
		})
		if err != nil {
			return nil, err
		}
		refused := whyUnusable(a, w.own)
		if refused == "" && astray(w.url, resp.FinalURL) {
			refused = "it leads to the home page"
		}
		if refused != "" && a.Refresh != "" {
			from, to = resp.FinalURL, a.Refresh
			continue
		}
		p := &spool.Page{URL: w.url, Final: resp.FinalURL, Refused: refused}
		if refused == "" {
			p.ETag, p.LastModified, p.Article = resp.ETag, resp.LastModified, []byte(a.Content)
		}
		return p, nil
	}
	return nil, &httpmsg.RedirectError{URL: w.url, Target: to, Reason: "the page leads from one to another"}
}

// astray reports whether a URL with a path led to a home page: sites redirect there if they do not
// find a page.
func astray(from, to string) bool {
	u, uerr := url.Parse(from)
	t, terr := url.Parse(to)
	return uerr == nil && terr == nil && strings.Trim(t.Path, "/") == "" && t.RawQuery == "" &&
		strings.Trim(u.Path, "/") != ""
}

// distinct drops articles that are not about their entries: if the pages of several entries have
// the same text or the same final URL, it is a consent or login page.
func (f *fullText) distinct(list []*wantedPage) error {
	texts, places := map[string]int{}, map[string]int{}
	all := maps.Clone(f.recorded)
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
		w.page = &spool.Page{URL: w.url, Final: w.page.Final,
			Refused: "the pages of several entries have the same text"}
		if err := f.pages.Put(w.page); err != nil {
			return err
		}
	}
	return nil
}

// report reports the pages that could not be fetched, in one line.
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
				first = prefixed(feedurl.Public(w.url), w.err)
			}
		}
	}
	if failed > 0 {
		f.v.r.report.Info("%s: %d of %s without full text: %v", f.v.name, failed, humanize.Count(len(list), "page"),
			first)
	}
}

// prune removes the records of pages whose entries are no longer in the document: such entries
// cannot change. Pages of this visit stay, as they may belong to entries delivered before.
func (f *fullText) prune(urls []string) (err error) {
	for u, p := range f.recorded {
		if p.Tries == 0 && !slices.Contains(urls, u) {
			err = errors.Join(err, f.pages.Remove(u))
		}
	}
	return err
}

// replace sets the content of e to the article of its page, and its FeedContent to the feed's content.
func replace(e *lektordir.Entry, p *spool.Page) {
	e.FeedContent, e.FullText = e.Content, lektordir.FullText{URL: feedurl.Public(p.Final), Type: e.Type}
	e.Content, e.Type = p.Article, "text/html"
}

// entry replaces the content of an entry of the document, if it has an article. f may be nil: the feed
// has no full text. After an error, revise fails, because an entry that is delivered without its
// article would never get it.
func (f *fullText) entry(index int, e *lektordir.Entry) {
	if f == nil || f.articles[index] == "" {
		return
	}
	p, err := f.pages.Get(f.articles[index])
	if p != nil && len(p.Article) > 0 {
		replace(e, p)
	}
	f.bad = cmp.Or(f.bad, err)
}

// recordDurable records that the entries with articles are durable, so that their pages are not due any
// more. If recording fails, the page is requested once more.
func (f *fullText) recordDurable() {
	if f == nil {
		return
	}
	for _, w := range f.late {
		if p, err := f.pages.Get(w.url); err == nil && p != nil && p.Tries > 0 {
			p.Tries, p.Next = 0, time.Time{}
			_ = f.pages.Put(p)
		}
	}
}

// revise stages versions with an article for entries that were delivered without one. An entry that
// the document updated as well is in out already, and is skipped.
func (f *fullText) revise(out *stage.Result) error {
	for _, w := range f.late {
		same := func(unique string) bool { return entryname.Identity(unique) == entryname.Identity(w.unique) }
		p, err := f.pages.Get(w.url)
		if err != nil {
			return err
		}
		if p == nil || len(p.Article) == 0 || slices.ContainsFunc(out.Updated, same) {
			continue
		}
		e, err := f.v.r.Dir.ReadEntry(lektordir.Ref{Feed: f.v.hash, Unique: w.unique}, lektordir.AllFields)
		if errors.Is(err, fs.ErrNotExist) || errors.As(err, new(*lektordir.MalformedError)) {
			continue // no longer in new/, or malformed
		} else if err != nil {
			return err
		}
		replace(e, p) // unknown extras are lost
		e.Replaces = w.unique
		unique, ok, err := f.v.txn.Revise(f.v.ctx, w.unique, e.Files())
		if err != nil {
			return err
		}
		if ok {
			out.Updated = append(out.Updated, unique)
		}
	}
	return f.bad
}
