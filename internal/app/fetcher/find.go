package fetcher

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/textproto"
	"strconv"
	"strings"
	"sync"

	"github.com/lektordir/lektor/feedconv"
	"github.com/lektordir/lektor/internal/cmdline"
	"github.com/lektordir/lektor/internal/discover"
	"github.com/lektordir/lektor/internal/feedstate"
	"github.com/lektordir/lektor/internal/feedurl"
	"github.com/lektordir/lektor/internal/httpmsg"
	"github.com/lektordir/lektor/internal/rfc5005"
	"github.com/lektordir/lektor/lektordir"
)

// search looks for the feed at a URL, for one [Runner.Add].
type search struct {
	r      *Runner
	o      AddOptions
	header textproto.MIMEHeader // parsed o.Headers

	// The result.
	url, title string
	origin     string            // URL of the document that named the feed; "": the user
	resp       *httpmsg.Response // response with its document; nil if it was not requested
	page       *pageError        // the page that links to the feed, or nil
	existing   *Added            // the existing subscription, or nil
}

// find looks for the feed at f.url, or for the feed that the page or archive there leads to.
func (f *search) find(ctx context.Context) (err error) {
	archive := "" // URL of the archive that led to f.url
	for look := f.o.Look != LookNowhere; ; look = !f.o.NoFetch {
		if before, ok := f.r.subscribed(f.url); ok {
			f.existing = &before
			return nil
		}
		if !look {
			return nil
		}
		var feed *feedconv.Feed
		var html *pageError
		f.resp, feed, err = f.look(ctx, &httpmsg.Request{URL: f.url, Origin: f.origin, Header: f.header})
		switch {
		case err == nil:
		case !errors.As(err, &html):
			return err
		case f.page != nil:
			return &NoFeedsError{URL: feedurl.Public(f.url), Err: html.err}
		case len(html.Feeds) == 0 && f.o.Look == LookAround:
			if f.url, f.resp, feed, err = f.guess(ctx, html); err != nil {
				return err
			}
			if feed == nil {
				continue // already subscribed
			}
		default:
			if err := f.follow(html); err != nil {
				return err
			}
			continue
		}
		f.title = feed.Title
		doc := rfc5005.Subscribed(feed, f.resp.FinalURL, f.url)
		if doc.Kind != rfc5005.Archive {
			return nil
		}
		if err := f.ofArchive(doc, archive); err != nil {
			return err
		}
		f.url, archive, f.origin = lektordir.NormalizeID(doc.Current), f.url, f.resp.FinalURL
	}
}

// follow continues with one of the feeds that a page links to.
func (f *search) follow(page *pageError) error {
	if err := page.choose(f.o); err != nil {
		return err
	}
	link := lektordir.NormalizeID(page.chosen.URL)
	if len(f.header) > 0 && !feedurl.SameOrigin(f.url, link) {
		return cmdline.Hint(fmt.Errorf("%s: it links to a feed on another server, %s, which must not get the headers", feedurl.Public(f.url), feedurl.Public(link)), "add that feed itself, with --header if its server may get them")
	}
	f.page, f.url, f.title, f.origin = page, link, page.title(), page.final
	return nil
}

// ofArchive returns an error if the feed of an archive document cannot be subscribed to in place of
// the archive. before is the URL of the archive that led here, or "".
func (f *search) ofArchive(doc rfc5005.Document, before string) error {
	url := f.url
	what := fmt.Errorf("%s: it is an archive of old entries, and no new entries will appear in it", feedurl.Public(url))
	const hint = "find the address of the feed itself on its page; add --as-is subscribes to this one all the same"
	switch {
	case doc.Current == "":
		return cmdline.Hint(fmt.Errorf("%w, and does not say where the feed is", what), hint)
	case before != "":
		return cmdline.Hint(fmt.Errorf("%w, as is %s, which leads to it", what, feedurl.Public(before)), hint)
	}
	if err := rfc5005.Check(doc.URL, doc.Current); err != nil {
		return cmdline.Hint(fmt.Errorf("%w; the feed would be %w", what, err), hint)
	}
	if len(f.header) > 0 && !feedurl.SameOrigin(url, doc.Current) {
		return cmdline.Hint(fmt.Errorf("%w; the feed is on another server, %s, which must not get the headers", what, feedurl.Public(doc.Current)), "add that feed itself, with --header if its server may get them")
	}
	f.r.report.Info("%s is an archive; its feed is %s", feedurl.Public(url), feedurl.Public(doc.Current))
	return nil
}

// look fetches a document and parses it as a feed. The error is a *pageError if the document is an
// HTML page.
func (f *search) look(ctx context.Context, req *httpmsg.Request) (*httpmsg.Response, *feedconv.Feed, error) {
	url := req.URL
	if strings.HasPrefix(strings.ToLower(url), "exec:") {
		if err := feedstate.Trusted(f.r.Dir, "", ""); err != nil {
			return nil, nil, err
		}
		req.AllowExec = true
	}
	resp, err := f.r.Client.Get(ctx, req)
	if err != nil {
		return nil, nil, err
	}
	contentType := resp.Header.Get("Content-Type")
	var feed *feedconv.Feed
	err = f.r.parser.withPlace(ctx, resp.Body, func() (err error) {
		feed, err = f.r.parser.read(resp.Body, resp.FinalURL, contentType, resp.Header)
		return err
	})
	var not *feedconv.NotFeedError
	switch {
	case errors.As(err, &not) && not.HTML:
		return nil, nil, &pageError{Result: discover.Page(resp.Body, resp.FinalURL, contentType), url: url, final: resp.FinalURL, err: not}
	case errors.As(err, &not):
		return nil, nil, &NoFeedsError{URL: feedurl.Public(url), Err: not}
	case err != nil:
		return nil, nil, prefixed(feedurl.Public(url), err)
	}
	return resp, feed, nil
}

// guess looks at the usual paths for the feed of a page that links to none. Response and feed are
// nil if the URL is subscribed to already.
func (f *search) guess(ctx context.Context, page *pageError) (string, *httpmsg.Response, *feedconv.Feed, error) {
	for _, url := range discover.Guesses(page.url) {
		url = lektordir.NormalizeID(url)
		if _, ok := f.r.subscribed(url); ok {
			return url, nil, nil, nil
		}
		f.r.report.Info("%s links to no feed; looking for one at %s", feedurl.Public(page.url), feedurl.Public(url))
		resp, feed, err := f.look(ctx, &httpmsg.Request{URL: url, Header: f.header})
		if err == nil || ctx.Err() != nil {
			return url, resp, feed, err
		}
	}
	return "", nil, nil, &NoFeedsError{URL: feedurl.Public(page.url), Err: page.err, Page: true}
}

// pageError reports an HTML page in place of a feed.
type pageError struct {
	discover.Result
	url    string // URL of the request
	final  string // URL after redirects
	err    *feedconv.NotFeedError
	chosen discover.Link // one of Feeds
}

func (e *pageError) Error() string { return e.err.Error() }

// choose sets e.chosen to one of the feeds.
func (e *pageError) choose(o AddOptions) error {
	n := 0
	switch {
	case len(e.Feeds) == 0:
		return &NoFeedsError{URL: feedurl.Public(e.url), Err: e.err, Page: true}
	case len(e.Feeds) > 1 && !o.First:
		several := &SeveralError{URL: feedurl.Public(e.url), Feeds: e.Feeds, Limit: e.Limit}
		if o.choose == nil || len(e.Feeds) > maxListed {
			return several
		}
		var err error
		if n, err = o.choose(e.Feeds); err != nil {
			return fmt.Errorf("%v, and %w", several, err) // the feeds were listed already, so %v
		}
	}
	e.chosen = e.Feeds[n]
	return nil
}

// title returns the title of the chosen feed.
func (e *pageError) title() string {
	if t := e.chosen.Title; len(e.Feeds) == 1 && t != "" && !generic(t) {
		return t
	}
	return cmp.Or(e.Title, e.chosen.Title)
}

// generic reports whether the title of a link only says that it is a feed.
func generic(title string) bool {
	switch strings.ToLower(title) {
	case "rss", "atom", "feed", "rss feed", "atom feed", "rss 2.0", "json feed", "json", "subscribe", "subscribe via rss", "xml":
		return true
	}
	return false
}

// SeveralError is returned for a page that links to several feeds.
type SeveralError struct {
	URL   string
	Feeds []discover.Link
	Limit string // as in [discover.Result]
}

func (e *SeveralError) Error() string {
	s := fmt.Sprintf("%s: it is a page that links to %d feeds", e.URL, len(e.Feeds))
	if e.Limit != "" {
		s += ", and perhaps more: only " + e.Limit + " were looked at"
	}
	return s
}

// NoFeedsError is returned for a page that links to no feed, and for a document that is neither a
// feed nor a page.
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

// chooser returns a function that asks the user to choose one of several feeds. Concurrent calls
// wait for each other.
func chooser(s *cmdline.Streams) func([]discover.Link) (int, error) {
	var mu sync.Mutex
	in := bufio.NewReader(s.In)
	return func(links []discover.Link) (int, error) {
		mu.Lock()
		defer mu.Unlock()
		for i, l := range links {
			s.Report.Info("%d  %s", i+1, linkText(l))
		}
		s.Report.Info("which one? enter 1-%d, or nothing to cancel", len(links))
		line, err := in.ReadString('\n')
		if line = strings.TrimSpace(line); line == "" && err != nil && err != io.EOF {
			return 0, err
		}
		n, err := strconv.Atoi(line)
		if err != nil || n < 1 || n > len(links) {
			return 0, errors.New("no feed was chosen")
		}
		return n - 1, nil
	}
}

// linkText returns the text by which a user chooses a link.
func linkText(l discover.Link) string {
	if l.Title == "" {
		return l.URL
	}
	return l.URL + " (" + l.Title + ")"
}
