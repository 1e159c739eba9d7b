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
	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/feeds/feedfiles"
	"github.com/lektordir/lektor/internal/http/httpmsg"
	"github.com/lektordir/lektor/internal/protocol/discover"
	"github.com/lektordir/lektor/internal/protocol/rfc5005"
	"github.com/lektordir/lektor/internal/text/feedurl"
	"github.com/lektordir/lektor/internal/text/humanize"
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
	given      *httpmsg.Response // response of a subscription's url, in place of the first request
	resp       *httpmsg.Response // response with its document; nil if it was not requested
	page       *pageError        // the page that links to the feed, or nil
	existing   *Added            // the existing subscription, or nil

	// inPlace is set after a page in place of a feed: its links may be those of other feeds than the
	// one that was asked for, so the user must choose.
	inPlace bool
}

// find looks for the feed at f.url, or for the feed that the page or archive there leads to.
func (f *search) find(ctx context.Context) (err error) {
	archive := "" // URL of the archive that led to f.url
	refreshed := false
	for look := f.o.Look != LookNowhere; ; {
		if before, ok := f.r.subscribed(f.url); ok && f.given == nil {
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
		case !errors.As(err, &html), !html.isPage:
			return err
		case f.page != nil:
			return &pageError{url: f.url, err: html.err}
		case html.Refresh != "" && !html.Challenge && !refreshed && (len(html.Feeds) == 0 || html.Guessed):
			refreshed = true
			if err := f.leadsTo(html.Refresh, "page", html.final); err != nil {
				return err
			}
			continue
		case len(html.Feeds) == 0 && f.o.Look == LookAround && !html.instead:
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
			look = !f.o.NoFetch
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
		look = !f.o.NoFetch
	}
}

// leadsTo continues at a URL that a document names: that of a feed or page, which is what. It returns
// an error if the user's headers are not for the server there.
func (f *search) leadsTo(url, what, origin string) error {
	url = lektordir.NormalizeID(url)
	if len(f.header) > 0 && !feedurl.SameOrigin(f.url, url) {
		return cmdline.Hint(fmt.Errorf("%s: it links to a %s on another server, %s, which must not get the headers",
			feedurl.Public(f.url), what, feedurl.Public(url)),
			"add that %s itself, with --header if its server may get them", what)
	}
	f.url, f.origin = url, origin
	return nil
}

// follow continues with one of the feeds that a page links to.
func (f *search) follow(page *pageError) error {
	if err := page.choose(f.o, f.r.report); err != nil {
		return err
	}
	f.page, f.title = page, page.title()
	return f.leadsTo(page.chosen.URL, "feed", page.final)
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
		return cmdline.Hint(fmt.Errorf("%w; the feed is on another server, %s, which must not get the headers", what,
			feedurl.Public(doc.Current)), "add that feed itself, with --header if its server may get them")
	}
	f.r.report.Info("%s is an archive; its feed is %s", feedurl.Public(url), feedurl.Public(doc.Current))
	return nil
}

// look fetches a document and parses it as a feed. The error is a *pageError if the document is not
// a feed.
func (f *search) look(ctx context.Context, req *httpmsg.Request) (*httpmsg.Response, *feedconv.Feed, error) {
	url := req.URL
	if strings.HasPrefix(strings.ToLower(url), "exec:") {
		if err := feedfiles.Trusted(f.r.Dir, "", ""); err != nil {
			return nil, nil, err
		}
		req.AllowExec = true
	}
	var err error
	resp := f.given
	if f.given = nil; resp == nil {
		resp, err = f.r.Client.Get(ctx, req)
	}
	if err != nil {
		return nil, nil, err
	}
	contentType := resp.Header.Get("Content-Type")
	var feed *feedconv.Feed
	err = f.r.parser.withPlace(ctx, resp.Body, func() (err error) {
		feed, err = f.r.parse(resp.Body, resp.FinalURL, contentType, resp.Header)
		return err
	})
	var not *feedconv.NotFeedError
	switch {
	case errors.As(err, &not) && not.HTML:
		page := &pageError{Result: discover.Page(resp.Body, resp.FinalURL, contentType), url: url, final: resp.FinalURL,
			err: not, isPage: true}
		f.inPlace = f.inPlace || page.Challenge || discover.LooksLikeFeed(url)
		page.instead = f.inPlace
		return nil, nil, page
	case errors.As(err, &not):
		return nil, nil, &pageError{url: url, err: not}
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
		resp, feed, err := f.look(ctx, &httpmsg.Request{URL: url, Origin: f.origin, Header: f.header})
		if err == nil || ctx.Err() != nil {
			return url, resp, feed, err
		}
	}
	return "", nil, nil, page
}

// pageError reports an HTML page in place of a feed, or another document.
type pageError struct {
	discover.Result
	url    string // URL of the request
	final  string // URL after redirects
	err    *feedconv.NotFeedError
	isPage bool
	chosen discover.Link // one of Feeds
	// instead is set if the server answered the page in place of the feed.
	instead bool
}

func (e *pageError) Error() string {
	url := feedurl.Public(e.url)
	switch {
	case e.hasFeeds():
		is := "it is a page that"
		if e.instead {
			is = "the server answered a page in place of the feed; the page"
		}
		s := fmt.Sprintf("%s: %s links to %s", url, is, humanize.Count(len(e.Feeds), "feed"))
		if e.Limit != "" {
			s += ", and perhaps more: only " + e.Limit + " were looked at"
		}
		return s
	case e.instead:
		return fmt.Sprintf("%s: %v; the server answered it in place of the feed", url, e.err)
	case e.isPage:
		return fmt.Sprintf("%s: %v, and it links to no feed", url, e.err)
	}
	return fmt.Sprintf("%s: %v", url, e.err)
}

// hasFeeds reports whether the page links to feeds. Links of a page that asks for proof that a browser
// asks do not count.
func (e *pageError) hasFeeds() bool { return len(e.Feeds) > 0 && !e.Challenge }

// choose sets e.chosen to one of the feeds.
func (e *pageError) choose(o AddOptions, report Reporter) error {
	if !e.hasFeeds() {
		return e
	}
	n := e.First(e.final)
	one, same := e.OneFeed()
	switch {
	case same && (o.First || !e.instead):
		n = one
		report.Info("%s: it links to one feed in several formats; lektor takes %s", feedurl.Public(e.url),
			feedurl.Public(e.Feeds[n].URL))
	case !o.First && (len(e.Feeds) > 1 || e.instead):
		if o.choose == nil || len(e.Feeds) > maxListed {
			return e
		}
		var err error
		if n, err = o.choose(e.Feeds); err != nil {
			return fmt.Errorf("%v, and %w", e, err) // the feeds were listed already, so %v
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
	case "rss", "atom", "feed", "rss feed", "atom feed", "rss 2.0", "json feed", "json", "subscribe",
		"subscribe via rss", "xml":
		return true
	}
	return false
}

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
