package fetcher

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/lektordir/lektor/feedconv"
	"github.com/lektordir/lektor/internal/delivery"
	"github.com/lektordir/lektor/internal/discover"
	"github.com/lektordir/lektor/internal/feeddir"
	"github.com/lektordir/lektor/internal/fetch"
	"github.com/lektordir/lektor/internal/units"
	"github.com/lektordir/lektor/lektordir"
)

// AddOptions say how to subscribe.
type AddOptions struct {
	First   bool // of several feeds that a page links to, take the first
	NoFetch bool // deliver nothing
	AsIs    bool // the URL is a feed's: do not look for one
	DryRun  bool // change nothing

	Alias, Interval string
	Categories      []string
}

// Added tells what became of a subscription.
type Added struct {
	ID, URL, Hash, Title string
	Already              bool // it was subscribed to before
	Summary              Summary
}

// SeveralError is returned for a page that links to several feeds.
type SeveralError struct {
	URL   string
	Feeds []discover.Link
}

func (e *SeveralError) Error() string {
	return fmt.Sprintf("%s: it is a page that links to %d feeds", e.URL, len(e.Feeds))
}

// NoFeedsError is returned for a page that links to no feed, and for another
// document that is none.
type NoFeedsError struct {
	URL  string
	Err  *feedconv.NotFeedError
	Page bool
}

func (e *NoFeedsError) Error() string {
	if e.Page {
		return fmt.Sprintf("%s: %v, and it links to no feed", e.URL, e.Err)
	}
	return fmt.Sprintf("%s: %v", e.URL, e.Err)
}

func (e *NoFeedsError) Unwrap() error { return e.Err }

// Add subscribes to the feed at a URL, or to the one that the page there links
// to, and delivers its entries. The document that told that it is a feed is the
// one that is delivered; the server is not asked twice. When the document
// cannot be had or is no feed, there is no subscription.
func (r *Runner) Add(ctx context.Context, url string, o AddOptions) (Added, error) {
	id := lektordir.NormalizeID(url)
	if a, ok := r.subscribed(id); ok {
		return a, nil
	}
	a := Added{ID: id, URL: id, Hash: lektordir.FeedHash(id)}
	var resp *fetch.Response
	var linked *discover.Result
	var chosen discover.Link
	if !o.AsIs {
		var err error
		resp, a.Title, err = r.look(ctx, id)
		var page *pageError
		if errors.As(err, &page) {
			link, err := page.choose(o.First)
			if err != nil {
				return a, err
			}
			linked, chosen = &page.Result, link
			a.ID = lektordir.NormalizeID(link.URL)
			a.URL, a.Hash = a.ID, lektordir.FeedHash(a.ID)
			if before, ok := r.subscribed(a.ID); ok {
				if o.DryRun {
					return before, nil
				}
				return before, r.essOfPage(before.Hash, linked, chosen)
			}
			a.Title = link.Title
			if len(page.Feeds) > 1 || a.Title == "" || generic(a.Title) {
				a.Title = cmp.Or(page.Title, link.Title)
			}
			if !o.NoFetch {
				if resp, a.Title, err = r.look(ctx, a.ID); err != nil {
					if errors.As(err, &page) {
						err = &NoFeedsError{URL: fetch.Public(a.ID), Err: page.err}
					}
					return a, err
				}
			}
		} else if err != nil {
			return a, err
		}
	}
	a.Title = cmp.Or(oneField(a.Title), feeddir.DefaultName(a.ID))
	if o.DryRun {
		return a, nil
	}
	if strings.HasPrefix(strings.ToLower(a.ID), "exec:") {
		// Refused now rather than at every fetch.
		if err := feeddir.Trusted(r.Dir, "", ""); err != nil {
			return a, err
		}
	}
	added, err := feeddir.Add(r.Writer, r.Dir, &feeddir.Subscription{
		ID: a.ID, Name: a.Title, Alias: o.Alias, Interval: o.Interval, Categories: o.Categories,
	}, feeddir.Options{})
	if err != nil {
		return a, err
	}
	if err := r.essOfPage(a.Hash, linked, chosen); err != nil {
		return a, err
	}
	if !added {
		a.Already = true
		return a, nil
	}
	if o.NoFetch {
		return a, nil
	}
	var first error
	a.Summary.Feeds = 1
	t := r.task(a.Hash)
	t.force, t.quiet = true, true
	done := make(chan struct{})
	r.feed(ctx, t, resp, hooks{
		free: func() {}, submitted: r.Writer.Flush,
		finished: func(res result) {
			a.Summary.add(res)
			if res.err != nil {
				first = prefixed(fetch.Public(a.URL), res.err)
			}
			close(done)
		},
	})
	<-done
	if first == nil && ctx.Err() != nil {
		first = context.Cause(ctx)
	}
	return a, first
}

// subscribed finds a subscription by the id or URL.
func (r *Runner) subscribed(id string) (Added, bool) {
	hash := lektordir.FeedHash(id)
	if !feeddir.Subscribed(r.Dir, hash) {
		// Read once for all: feeds added meanwhile are found by their ids.
		r.urls.Do(func() { r.byURL = feeddir.ByURL(r.Dir) })
		if hash = r.byURL[id]; hash == "" {
			return Added{}, false
		}
	}
	s, err := feeddir.Read(r.Dir, hash)
	if err != nil {
		return Added{}, false
	}
	return Added{ID: s.ID, URL: s.URL, Hash: hash, Title: s.Title(), Already: true}, true
}

// pageError is an HTML page where a feed was looked for.
type pageError struct {
	discover.Result
	url string
	err *feedconv.NotFeedError
}

func (e *pageError) Error() string { return e.err.Error() }

func (e *pageError) choose(first bool) (discover.Link, error) {
	switch {
	case len(e.Feeds) == 0:
		return discover.Link{}, &NoFeedsError{URL: fetch.Public(e.url), Err: e.err, Page: true}
	case len(e.Feeds) > 1 && !first:
		return discover.Link{}, &SeveralError{URL: fetch.Public(e.url), Feeds: e.Feeds}
	}
	return e.Feeds[0], nil
}

// generic reports whether the title of a link says only that it is a feed.
func generic(title string) bool {
	switch strings.ToLower(title) {
	case "rss", "atom", "feed", "rss feed", "atom feed", "rss 2.0", "json feed", "json", "subscribe", "subscribe via rss", "xml":
		return true
	}
	return false
}

// look fetches a document and tells whether it is a feed; the error is a
// *pageError for an HTML page.
func (r *Runner) look(ctx context.Context, url string) (*fetch.Response, string, error) {
	req := &fetch.Request{URL: url}
	if strings.HasPrefix(strings.ToLower(url), "exec:") {
		if err := feeddir.Trusted(r.Dir, "", ""); err != nil {
			return nil, "", err
		}
		req.AllowExec = true
	}
	resp, err := r.Client.Get(ctx, req)
	if err != nil {
		return nil, "", err
	}
	r.parsing <- struct{}{}
	defer func() { <-r.parsing }()
	contentType := resp.Header.Get("Content-Type")
	feed, err := r.read(resp.Body, resp.FinalURL, contentType, resp.Header)
	var not *feedconv.NotFeedError
	switch {
	case errors.As(err, &not) && not.HTML:
		return nil, "", &pageError{discover.Page(resp.Body, resp.FinalURL, contentType), url, not}
	case errors.As(err, &not):
		return nil, "", &NoFeedsError{URL: fetch.Public(url), Err: not}
	case err != nil:
		return nil, "", prefixed(fetch.Public(url), err)
	}
	return resp, feed.Title, nil
}

// Document is a feed document that was not fetched by us.
type Document struct {
	ID          string // of the feed
	Name        string // of the feed; empty: as the document says
	URL         string // where it is from, for relative references
	ContentType string
	Body        []byte
	DryRun      bool
}

// Deliver delivers what is new in a document. The feed need not be subscribed
// to, and is not afterwards.
func (r *Runner) Deliver(ctx context.Context, doc Document) (Summary, error) {
	feed, err := r.read(doc.Body, cmp.Or(doc.URL, doc.ID), doc.ContentType, http.Header{})
	if err != nil {
		return Summary{Feeds: 1}, err
	}
	r.warn(fetch.Public(doc.ID), feed)
	if doc.DryRun {
		r.report.Info("%s: a feed of %s; nothing was delivered", doc.ID, units.Count(len(feed.Entries), "entry"))
		return Summary{Feeds: 1}, nil
	}
	return r.into(ctx, doc.ID, func(t *lektordir.Txn, o delivery.Options) (delivery.Result, error) {
		if err := r.describe(t, feed, doc.ID, doc.Name); err != nil {
			return delivery.Result{}, err
		}
		return delivery.Stage(ctx, t, feed, o)
	})
}

// Put delivers one entry, which is recognised by its id alone. It gives the
// path of the entry, relative to the lektor-dir: of the version delivered, or
// of the one that is there already; empty when that was removed.
func (r *Runner) Put(ctx context.Context, feedID, feedName string, e feedconv.Entry) (string, Summary, error) {
	path := ""
	sum, err := r.into(ctx, feedID, func(t *lektordir.Txn, o delivery.Options) (delivery.Result, error) {
		old, _ := r.Dir.ReadFeed(t.Feed())
		if old == nil {
			old = &lektordir.Feed{}
		}
		old.ID = feedID
		old.Name = cmp.Or(oneField(feedName), old.Name, feeddir.DefaultName(feedID))
		if err := t.PutFeed(old); err != nil {
			return delivery.Result{}, err
		}
		out, err := delivery.Put(ctx, t, e, o)
		if err != nil {
			return out, err
		}
		for _, ref := range append(out.New, out.Updated...) {
			path = ref.Path()
		}
		if path == "" {
			path = r.present(ctx, t, e.GUID)
		}
		return out, nil
	})
	return path, sum, err
}

// present finds the newest version of an entry that was put, if it is there.
func (r *Runner) present(ctx context.Context, t *lektordir.Txn, guid string) string {
	j, err := t.Journal()
	if err != nil {
		return ""
	}
	path := ""
	known := map[string]bool{}
	// The identity of an entry with a guid of its own, as delivery has it.
	for _, rec := range j.Versions(lektordir.DigestOf("guid", guid)) {
		known[rec.Lineage()] = true
	}
	refs, _ := r.Dir.List(ctx, lektordir.ListOptions{Feeds: []string{t.Feed()}})
	for _, ref := range refs {
		if known[ref.Identity()] {
			path = ref.Path()
		}
	}
	return path
}

// lockTries is how long into waits for another fetcher, in tries.
const lockTries = 100

// into delivers to a feed, waiting a little for another fetcher: what comes on
// standard input cannot be had again later.
func (r *Runner) into(ctx context.Context, id string, stage func(*lektordir.Txn, delivery.Options) (delivery.Result, error)) (Summary, error) {
	sum := Summary{Feeds: 1, Fetched: 1}
	hash := lektordir.FeedHash(id)
	var txn *lektordir.Txn
	for try := 0; ; try++ {
		var err error
		txn, err = r.Writer.Begin(hash)
		var inUse *lektordir.BusyError
		if err == nil {
			break
		}
		if !errors.As(err, &inUse) || try == lockTries {
			return sum, err
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return sum, context.Cause(ctx)
		}
	}
	defer txn.Close()
	st, err := r.state(hash)
	if err != nil {
		return sum, err
	}
	defer st.Close()
	policy, err := delivery.ParsePolicy(st.OnUpdate())
	if err != nil {
		return sum, err
	}
	out, err := stage(txn, delivery.Options{Policy: policy})
	if err != nil {
		return sum, err
	}
	sum.New, sum.Updated = len(out.New), len(out.Updated)
	done := make(chan error, 1)
	r.commit(txn, func(err error) { done <- err })
	r.Writer.Flush()
	if err := <-done; err != nil {
		return sum, err
	}
	r.delivered(txn)
	return sum, nil
}
