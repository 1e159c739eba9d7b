package fetcher

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/lektordir/lektor/feedconv"
	"github.com/lektordir/lektor/internal/command"
	"github.com/lektordir/lektor/internal/discover"
	"github.com/lektordir/lektor/internal/entries"
	"github.com/lektordir/lektor/internal/feeddir"
	"github.com/lektordir/lektor/internal/fetch"
	"github.com/lektordir/lektor/internal/fulltext"
	"github.com/lektordir/lektor/internal/history"
	"github.com/lektordir/lektor/internal/units"
	"github.com/lektordir/lektor/internal/workers"
	"github.com/lektordir/lektor/lektordir"
)

// AddOptions are those of [Add].
type AddOptions struct {
	Common
	Sources []string // what to subscribe to, see [source]; "-" reads them
	Nul     bool     // what "-" reads ends with NUL

	First   bool // of several feeds that a page links to, take the first
	NoFetch bool // deliver nothing
	DryRun  bool // change nothing
	Look    Look

	Alias, Interval string
	Force           bool // an interval of less than [feeddir.MinInterval] too
	Categories      []string
	Headers         []string // lines, see [fetch.ParseHeaders]
	Private         bool     // see the setting
	FullText        bool     // likewise
	History         bool     // deliver what is in the feed's archives, too

	choose func([]discover.Link) (int, error) // of several feeds; nil for an error
}

// Look is where a feed is looked for.
type Look int

const (
	LookAtPage  Look = iota // at the URL; if that is a page, at the feeds that it links to
	LookAround              // likewise, or where feeds usually are
	LookNowhere             // the URL is that of a feed
)

// maxAdding is how many feeds are added at once: fewer than an update fetches,
// as each holds a document until it knows what it is.
const maxAdding = 8

// warnFullText warns where the program is missing that finds the article of a page.
func warnFullText(s *command.Streams) {
	if err := fulltext.Installed(); err != nil {
		s.Report.Warn("%v", err)
	}
}

// Add subscribes to feeds, and delivers their entries.
func Add(ctx context.Context, o AddOptions, s *command.Streams) error {
	if err := o.check(); err != nil {
		return err
	}
	if o.FullText {
		warnFullText(s)
	}
	r, end, err := o.begin(ctx, s, o.DryRun, nil)
	if err != nil {
		return err
	}
	defer end()
	if s.InIsTerminal() && s.ErrIsTerminal() && !slices.Contains(o.Sources, "-") {
		o.choose = chooser(s)
	}
	adding := workers.Limited(maxAdding)
	var mu sync.Mutex
	var walks []Outcome // when all are added
	for arg, err := range command.ReadArgs(o.Sources, s.In, o.Nul) {
		if ctx.Err() != nil {
			break
		}
		if err == nil {
			arg, err = source(arg)
		}
		if err != nil {
			s.Report.Print(err)
			continue
		}
		adding.Go(func() error {
			a := r.subscribe(ctx, arg, o, s)
			mu.Lock()
			defer mu.Unlock()
			if a.outcome.walk {
				walks = append(walks, a.outcome)
			}
			return nil
		})
	}
	_ = adding.Wait() // there are no errors
	if sum := r.walks(ctx, walks); sum.Requested > 0 {
		s.Report.Info("history: %s requested; %s", units.Count(sum.Requested, "document"), units.Count(sum.New+sum.Updated, "entry"))
	}
	r.disk.tell(r.Dir.Path(), r.report)
	return context.Cause(ctx)
}

// subscribe adds one feed, and reports what became of it.
func (r *Runner) subscribe(ctx context.Context, url string, o AddOptions, s *command.Streams) Added {
	a, err := r.Add(ctx, url, o)
	if err == nil && a.Already && o.History && !o.DryRun {
		err = r.first(ctx, &a, nil, true)
	}
	did := ""
	switch {
	case ctx.Err() != nil:
		return a
	case err != nil:
		s.Report.Print(addHint(err))
		return Added{}
	case a.Already:
		did = "already subscribed"
	case o.DryRun:
		did = "would be subscribed to"
	default:
		did = "subscribed"
	}
	line := fmt.Sprintf("%s: %s (%s)", fetch.Public(a.URL), did, a.Title)
	fetched := !a.Already && !o.DryRun && !o.NoFetch
	if fetched {
		line += ", " + units.Count(a.Summary.New+a.Summary.Updated, "entry")
	}
	s.Report.Info("%s", line)
	if fetched && !o.History && feeddir.HistoryOf(r.Dir, a.Hash).Linked().Prev != "" {
		s.Report.Info("%s: it has archives; lektor-fetch history brings what is in them", fetch.Public(a.URL))
	}
	return a
}

// check checks what can be known before anything is asked for.
func (o AddOptions) check() error {
	if o.History && o.NoFetch {
		return command.Usagef("--history delivers old entries, and --no-fetch none at all")
	}
	if o.Alias != "" && len(o.Sources) > 1 {
		return command.Usagef("--alias names one feed, and several URLs were given")
	}
	if o.Interval != "" {
		if err := checkSetting("interval", o.Interval, o.Force); err != nil {
			return usage(fmt.Errorf("--interval: %w", err))
		}
	}
	if err := checkSetting("headers", o.headers(), false); err != nil {
		return usage(fmt.Errorf("--header: %w", err))
	}
	return nil
}

func (o AddOptions) headers() string { return strings.Join(o.Headers, "\n") }

// chooser lets the user choose of several feeds, one page at a time.
func chooser(s *command.Streams) func([]discover.Link) (int, error) {
	var mu sync.Mutex
	in := bufio.NewReader(s.In)
	return func(links []discover.Link) (int, error) {
		mu.Lock()
		defer mu.Unlock()
		for i, l := range links {
			s.Report.Info("%d  %s", i+1, named(l))
		}
		s.Report.Info("which one? 1-%d, or nothing for none", len(links))
		line, err := in.ReadString('\n')
		if line = strings.TrimSpace(line); line == "" && err != nil && err != io.EOF {
			return 0, err
		}
		n, err := strconv.Atoi(line)
		if err != nil || n < 1 || n > len(links) {
			return 0, errors.New("none of them was chosen")
		}
		return n - 1, nil
	}
}

// named is a link as a user chooses it.
func named(l discover.Link) string {
	if l.Title == "" {
		return l.URL
	}
	return l.URL + " (" + l.Title + ")"
}

// source makes a URL of what the user typed: a URL, a file, or a host.
func source(arg string) (string, error) {
	arg = strings.TrimSpace(arg)
	scheme, _, ok := strings.Cut(arg, ":")
	switch scheme = strings.ToLower(scheme); {
	case arg == "":
		return "", errors.New("an empty URL")
	case ok && slices.Contains([]string{"http", "https", "file", "exec", "feed"}, scheme):
		return feeddir.FeedURL(arg), nil
	case strings.Contains(arg, "://"):
		return "", command.Hint(fmt.Errorf("%s: feeds are not fetched by %s", arg, scheme), "http, https, file and exec are known; for others there is lektor-fetch deliver")
	}
	if _, err := os.Stat(arg); err == nil || strings.HasPrefix(arg, "/") || strings.HasPrefix(arg, "./") || strings.HasPrefix(arg, "../") {
		if err != nil {
			return "", err
		}
		abs, err := filepath.Abs(arg)
		if err != nil {
			return "", err
		}
		return "file://" + strings.NewReplacer("%", "%25", "?", "%3F", "#", "%23").Replace(abs), nil
	}
	return lektordir.NormalizeID("https://" + arg), nil
}

// mostListed is how many feeds of a page are listed for the user to choose.
const mostListed = 50

// addHint adds to an error of [Runner.Add] what can be done.
func addHint(err error) error {
	var several *SeveralError
	var none *NoFeedsError
	switch {
	case errors.As(err, &several):
		errs := []error{errors.New(err.Error() + ":")}
		for _, l := range several.Feeds[:min(len(several.Feeds), mostListed)] {
			errs = append(errs, errors.New(named(l)))
		}
		if more := len(several.Feeds) - mostListed; more > 0 {
			errs = append(errs, fmt.Errorf("and %d more", more))
		}
		last := &errs[len(errs)-1]
		*last = command.Hint(*last, "add the one you want, or take the first with --first")
		return errors.Join(errs...)
	case errors.As(err, &none) && none.Page:
		return command.Hint(err, "if you know the address of its feed, add that")
	case errors.As(err, &none):
		return command.Hint(err, "give the address of a feed, or of a page that links to one")
	case errors.As(err, new(*fetch.NetError)):
		return command.Hint(err, "add --no-fetch --as-is subscribes to a URL without looking at it")
	}
	return entries.FeedHint(err)
}

// Added tells what became of a subscription.
type Added struct {
	ID, URL, Hash, Title string
	Already              bool // it was subscribed to before
	Summary              Summary

	outcome Outcome // of its first visit
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
	header, err := fetch.ParseHeaders(o.headers())
	if err != nil {
		return Added{}, err
	}
	f, err := r.find(ctx, lektordir.NormalizeID(url), header, o)
	switch {
	case err != nil:
		return Added{}, err
	case f.before == nil:
	case f.page == nil || o.DryRun:
		return *f.before, nil
	default:
		return *f.before, r.essOfPage(f.before.Hash, &f.page.Result, f.page.chosen)
	}
	a := Added{ID: f.url, URL: f.url, Hash: lektordir.FeedHash(f.url), Title: cmp.Or(feeddir.OneField(f.title), feeddir.DefaultName(f.url))}
	if o.DryRun {
		return a, nil
	}
	if strings.HasPrefix(strings.ToLower(f.url), "exec:") {
		// Refused now rather than at every fetch.
		if err := feeddir.Trusted(r.Dir, "", ""); err != nil {
			return a, err
		}
	}
	added, err := feeddir.Add(r.Writer, r.Dir, &feeddir.Subscription{
		ID: f.url, Name: a.Title, Alias: o.Alias, Interval: o.Interval, Categories: o.Categories, Private: o.Private, Origin: f.origin,
	}, feeddir.Options{Headers: o.headers()})
	if err == nil && added && o.FullText {
		err = feeddir.Set(r.Writer, r.Dir, a.Hash, "fulltext", "on")
	}
	if err == nil && f.page != nil {
		err = r.essOfPage(a.Hash, &f.page.Result, f.page.chosen)
	}
	a.Already = err == nil && !added
	if err != nil || !added || o.NoFetch {
		return a, err
	}
	err = r.first(ctx, &a, f.resp, o.History)
	return a, err
}

// found is the feed that was found for a URL.
type found struct {
	url, title string
	origin     string          // URL of what named the feed, "" for the user
	resp       *fetch.Response // its document; nil if that was not asked for
	page       *pageError      // that links to the feed, nil for none
	before     *Added          // the subscription, if there is one already
}

// find looks for the feed at a URL, or for the one that the page or archive there leads to.
func (r *Runner) find(ctx context.Context, url string, header http.Header, o AddOptions) (f found, err error) {
	f.url = url
	archive := "" // URL of one that leads to the feed
	for look := o.Look != LookNowhere; ; look = !o.NoFetch {
		if before, ok := r.subscribed(f.url); ok {
			f.before = &before
			return f, nil
		}
		if !look {
			return f, nil
		}
		var feed *feedconv.Feed
		var html *pageError
		f.resp, feed, err = r.look(ctx, &fetch.Request{URL: f.url, Origin: f.origin, Header: header})
		switch {
		case err == nil:
		case !errors.As(err, &html):
			return f, err
		case f.page != nil:
			return f, &NoFeedsError{URL: fetch.Public(f.url), Err: html.err}
		case len(html.Feeds) == 0 && o.Look == LookAround:
			if f.url, f.resp, feed, err = r.guess(ctx, html, header); err != nil {
				return f, err
			}
			if feed == nil {
				continue // it is subscribed to
			}
		default:
			if err := f.follow(html, len(header) > 0, o); err != nil {
				return f, err
			}
			continue
		}
		f.title = feed.Title
		doc := history.Subscribed(feed, f.resp.FinalURL, f.url)
		if doc.Kind != history.Archive {
			return f, nil
		}
		if err := r.ofArchive(doc, f.url, archive, len(header) > 0); err != nil {
			return f, err
		}
		f.url, archive, f.origin = lektordir.NormalizeID(doc.Current), f.url, f.resp.FinalURL
	}
}

// follow goes on with one of the feeds that a page links to. headers are meant for one
// server.
func (f *found) follow(page *pageError, headers bool, o AddOptions) error {
	if err := page.choose(o); err != nil {
		return err
	}
	link := lektordir.NormalizeID(page.chosen.URL)
	if headers && !fetch.SameOrigin(f.url, link) {
		return command.Hint(fmt.Errorf("%s: it links to a feed of another server, %s, and headers are meant for one", fetch.Public(f.url), fetch.Public(link)), "add that one, with --header if it is meant to have them")
	}
	f.page, f.url, f.title, f.origin = page, link, page.title(), page.final
	return nil
}

// ofArchive is the error for an archive document whose subscription document cannot be
// subscribed to in its place. before is the archive that led here, "" for none.
func (r *Runner) ofArchive(doc history.Document, url, before string, headers bool) error {
	what := fmt.Errorf("%s: it is an archive of old entries, in which nothing new is to be expected", fetch.Public(url))
	const hint = "find the address of the feed itself on its page; add --as-is subscribes to this one all the same"
	switch {
	case doc.Current == "":
		return command.Hint(fmt.Errorf("%w, and does not say where the feed is", what), hint)
	case before != "":
		return command.Hint(fmt.Errorf("%w, as is %s, which leads to it", what, fetch.Public(before)), hint)
	}
	if err := history.Check(doc.URL, doc.Current); err != nil {
		return command.Hint(fmt.Errorf("%w; the feed would be %w", what, err), hint)
	}
	if headers && !fetch.SameOrigin(url, doc.Current) {
		return command.Hint(fmt.Errorf("%w; the feed is on another server, %s, and headers are meant for one", what, fetch.Public(doc.Current)), "add that one, with --header if it is meant to have them")
	}
	r.report.Info("%s is an archive; its feed is %s", fetch.Public(url), fetch.Public(doc.Current))
	return nil
}

// guess looks for the feed of a page that links to none where feeds usually
// are. The document is nil for one that is subscribed to.
func (r *Runner) guess(ctx context.Context, page *pageError, header http.Header) (string, *fetch.Response, *feedconv.Feed, error) {
	for _, url := range discover.Guesses(page.url) {
		url = lektordir.NormalizeID(url)
		if _, ok := r.subscribed(url); ok {
			return url, nil, nil, nil
		}
		r.report.Info("%s links to no feed; looking for one at %s", fetch.Public(page.url), fetch.Public(url))
		resp, feed, err := r.look(ctx, &fetch.Request{URL: url, Header: header})
		if err == nil || ctx.Err() != nil {
			return url, resp, feed, err
		}
	}
	return "", nil, nil, &NoFeedsError{URL: fetch.Public(page.url), Err: page.err, Page: true}
}

// first fetches a feed for the first time, or delivers the document that was
// fetched already.
func (r *Runner) first(ctx context.Context, a *Added, resp *fetch.Response, whole bool) error {
	t := r.task(a.Hash, Named)
	t.want.Archives = whole
	a.outcome = r.visit(ctx, t, &turn{r: r}, resp)
	a.Summary = a.outcome.Summary
	a.Summary.Feeds = 1
	return cmp.Or(a.outcome.Err, context.Cause(ctx))
}

// subscribed finds a subscription by the id or URL.
func (r *Runner) subscribed(id string) (Added, bool) {
	hash := lektordir.FeedHash(id)
	if !feeddir.Subscribed(r.Dir, hash) {
		// Read once for all: feeds added meanwhile are found by their ids.
		if hash = r.byURL()[id]; hash == "" {
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
	url    string // as it was asked for
	final  string // where it came from
	err    *feedconv.NotFeedError
	chosen discover.Link // of Feeds
}

func (e *pageError) Error() string { return e.err.Error() }

// choose chooses one of the feeds.
func (e *pageError) choose(o AddOptions) error {
	n := 0
	switch {
	case len(e.Feeds) == 0:
		return &NoFeedsError{URL: fetch.Public(e.url), Err: e.err, Page: true}
	case len(e.Feeds) > 1 && !o.First:
		several := &SeveralError{URL: fetch.Public(e.url), Feeds: e.Feeds, Limit: e.Limit}
		if o.choose == nil || len(e.Feeds) > mostListed {
			return several
		}
		var err error
		if n, err = o.choose(e.Feeds); err != nil {
			return fmt.Errorf("%v, and %w", several, err) // not wrapped: they were listed
		}
	}
	e.chosen = e.Feeds[n]
	return nil
}

// title is what the feed is called that was chosen.
func (e *pageError) title() string {
	if t := e.chosen.Title; len(e.Feeds) == 1 && t != "" && !generic(t) {
		return t
	}
	return cmp.Or(e.Title, e.chosen.Title)
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
func (r *Runner) look(ctx context.Context, req *fetch.Request) (*fetch.Response, *feedconv.Feed, error) {
	url := req.URL
	if strings.HasPrefix(strings.ToLower(url), "exec:") {
		if err := feeddir.Trusted(r.Dir, "", ""); err != nil {
			return nil, nil, err
		}
		req.AllowExec = true
	}
	resp, err := r.Client.Get(ctx, req)
	if err != nil {
		return nil, nil, err
	}
	contentType := resp.Header.Get("Content-Type")
	var feed *feedconv.Feed
	err = r.reading(ctx, resp.Body, func() (err error) {
		feed, err = r.read(resp.Body, resp.FinalURL, contentType, resp.Header)
		return err
	})
	var not *feedconv.NotFeedError
	switch {
	case errors.As(err, &not) && not.HTML:
		return nil, nil, &pageError{Result: discover.Page(resp.Body, resp.FinalURL, contentType), url: url, final: resp.FinalURL, err: not}
	case errors.As(err, &not):
		return nil, nil, &NoFeedsError{URL: fetch.Public(url), Err: not}
	case err != nil:
		return nil, nil, prefixed(fetch.Public(url), err)
	}
	return resp, feed, nil
}
