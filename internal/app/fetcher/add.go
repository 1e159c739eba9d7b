package fetcher

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/cli/fulltext"
	"github.com/lektordir/lektor/internal/feeds/feedfiles"
	"github.com/lektordir/lektor/internal/feeds/history"
	"github.com/lektordir/lektor/internal/feeds/subscriptions"
	"github.com/lektordir/lektor/internal/files/workers"
	"github.com/lektordir/lektor/internal/http/httpmsg"
	"github.com/lektordir/lektor/internal/protocol/discover"
	"github.com/lektordir/lektor/internal/read/entrystore"
	"github.com/lektordir/lektor/internal/text/feedurl"
	"github.com/lektordir/lektor/internal/text/humanize"
	"github.com/lektordir/lektor/internal/text/termsafe"
	"github.com/lektordir/lektor/lektordir"
)

// AddOptions are the options of [Add].
type AddOptions struct {
	Common
	Sources  []string // URLs, files or hosts, see [source]; "-" reads a list of them from standard input
	Nul      bool     // the items that "-" reads end with NUL
	Look     Look
	First    bool                               // if a page links to several feeds, add the first
	choose   func([]discover.Link) (int, error) // chooses one of several feeds; nil: several feeds are an error
	Feed     subscriptions.Subscription         // alias, interval, categories, private and paused of the new feed
	Force    bool                               // allow an interval shorter than [settings.MinInterval]
	Headers  []string                           // lines, see [httpmsg.ParseHeaders]
	FullText bool
	History  bool // also deliver the entries of the feed's archives
	NoFetch  bool // subscribe only, deliver nothing
	DryRun   bool // change nothing
}

// Look selects where [Add] looks for a feed.
type Look int

const (
	LookAtPage  Look = iota // at the URL; if a page is there, at the feeds that it links to
	LookAround              // as LookAtPage, and at the usual paths if the page links to no feed
	LookNowhere             // the URL is taken as the URL of a feed
)

// maxAdding is the number of feeds added at the same time. It is smaller than the number of
// concurrent fetches of an update, as each addition holds a whole document in memory.
const maxAdding = 8

// warnFullText warns if the program that extracts articles is not installed.
func warnFullText(s *cmdline.Streams) {
	if err := fulltext.Installed(); err != nil {
		s.Report.Warn("%v", err)
	}
}

// Add subscribes to feeds, and delivers their entries.
func Add(ctx context.Context, o AddOptions, s *cmdline.Streams) error {
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
	defer r.recording(s, "add")()
	if s.InIsTerminal() && s.ErrIsTerminal() && !slices.Contains(o.Sources, "-") {
		o.choose = chooser(s)
	}
	adding := workers.Limited(maxAdding)
	var mu sync.Mutex
	var walks []VisitResult // added feeds to walk; they are walked after all are added
	for arg, err := range cmdline.ReadArgs(o.Sources, s.In, o.Nul) {
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
	_ = adding.Wait() // the functions return no error
	if sum := r.walks(ctx, walks); sum.Requested > 0 {
		s.Report.Info("history: %s requested; %s", humanize.Count(sum.Requested, "document"),
			humanize.Count(sum.New+sum.Updated, "entry"))
	}
	r.disk.report(r.Dir.Path(), r.report)
	return context.Cause(ctx)
}

// subscribe adds one feed and reports the result to the user.
func (r *Runner) subscribe(ctx context.Context, url string, o AddOptions, s *cmdline.Streams) Added {
	a, err := r.Add(ctx, url, o)
	if err == nil && a.Already && o.History && !o.DryRun {
		err = r.first(ctx, &a, nil, true)
	}
	if ctx.Err() != nil {
		return a
	}
	// A new subscription stays even if its first fetch has failed.
	made := a.Hash != "" && !a.Already && feedfiles.Subscribed(r.Dir, a.Hash)
	if o.Steps && made {
		fmt.Fprintf(s.Out, "subscribed\t%s\n", a.Hash)
	}
	did := ""
	switch {
	case err != nil && made:
		s.Report.Print(cmdline.Hint(err, "the feed is subscribed all the same, and is fetched again when it is due"))
		return Added{Hash: a.Hash}
	case err != nil && a.Hash != "" && !a.Already:
		err = fmt.Errorf("%s: not subscribed: %w", feedurl.Public(a.URL), err)
		fallthrough
	case err != nil:
		if o.Steps {
			printChoices(s, err)
		}
		s.Report.Print(addHint(err))
		return Added{}
	case a.Already:
		did = "already subscribed"
	case o.DryRun:
		did = "would be subscribed to"
	default:
		did = "subscribed"
	}
	line := fmt.Sprintf("%s: %s (%s)", feedurl.Public(a.URL), did, a.Title)
	fetched := !a.Already && !o.DryRun && !o.NoFetch
	if fetched {
		line += ", " + humanize.Count(a.outcome.New+a.outcome.Updated, "entry")
	}
	o.done(s, line)
	if fetched && !o.History && history.Of(r.Dir, a.Hash).Linked().Prev != "" {
		s.Report.Info("%s: it has archives; lektor-fetch history fetches them", feedurl.Public(a.URL))
	}
	return a
}

// done says what was done.
func (o AddOptions) done(s *cmdline.Streams, line string) {
	if o.Steps {
		fmt.Fprintf(s.Out, "done\t%s\n", termsafe.Line(line))
	} else {
		s.Report.Info("%s", line)
	}
}

// printChoices prints the feeds of a page, if an error says that it has several.
func printChoices(s *cmdline.Streams, err error) {
	if page, ok := errors.AsType[*pageError](err); ok && page.hasFeeds() {
		for _, l := range page.Feeds {
			fmt.Fprintf(s.Out, "feed\t%s\t%s\n", termsafe.Line(l.URL), termsafe.Line(l.Title))
		}
	}
}

// check checks the options before any request is made.
func (o AddOptions) check() error {
	if o.History && o.NoFetch {
		return cmdline.Usagef("--history delivers old entries, and --no-fetch none at all")
	}
	if o.Feed.Alias != "" && len(o.Sources) > 1 {
		return cmdline.Usagef("--alias names one feed, and several URLs were given")
	}
	if o.Feed.Interval != "" {
		if err := checkSetting("interval", o.Feed.Interval, o.Force); err != nil {
			return usage(fmt.Errorf("--interval: %w", err))
		}
	}
	if err := checkSetting("headers", o.headers(), false); err != nil {
		return usage(fmt.Errorf("--header: %w", err))
	}
	return nil
}

func (o AddOptions) headers() string { return strings.Join(o.Headers, "\n") }

// source returns the URL for an argument of the user: a URL, a file or a host name.
func source(arg string) (string, error) {
	arg = strings.TrimSpace(arg)
	scheme, _, ok := strings.Cut(arg, ":")
	switch scheme = strings.ToLower(scheme); {
	case arg == "":
		return "", errors.New("an empty URL")
	case ok && slices.Contains([]string{"http", "https", "file", "exec", "feed"}, scheme):
		return subscriptions.FeedURL(arg), nil
	case strings.Contains(arg, "://"):
		return "", cmdline.Hint(fmt.Errorf("%s: lektor does not fetch %s URLs", feedurl.Public(arg), scheme),
			"use http, https, file or exec; for others, fetch the feed yourself and use lektor-fetch deliver")
	}
	if _, err := os.Stat(arg); err == nil || strings.HasPrefix(arg, "/") || strings.HasPrefix(arg, "./") ||
		strings.HasPrefix(arg, "../") {
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

// maxListed is the number of feeds of a page that are listed for a choice.
const maxListed = 50

// addHint adds a hint to an error of [Runner.Add].
func addHint(err error) error {
	var page *pageError
	var status *httpmsg.StatusError
	switch {
	case errors.As(err, &page) && page.hasFeeds():
		errs := []error{errors.New(err.Error() + ":")}
		for _, l := range page.Feeds[:min(len(page.Feeds), maxListed)] {
			errs = append(errs, errors.New(linkText(l)))
		}
		if more := len(page.Feeds) - maxListed; more > 0 {
			errs = append(errs, fmt.Errorf("and %d more", more))
		}
		last := &errs[len(errs)-1]
		*last = cmdline.Hint(*last, "add the one you want, or take the first with --first")
		return errors.Join(errs...)
	case errors.As(err, &page) && page.instead:
		return cmdline.Hint(err,
			"open the address in a browser to see what the server wants; some let only browsers in")
	case errors.As(err, &page) && page.isPage:
		return cmdline.Hint(err, "if you know the address of its feed, add that")
	case errors.As(err, &page):
		return cmdline.Hint(err, "give the address of a feed, or of a page that links to one")
	case errors.As(err, &status):
		return cmdline.Hint(err, "%s", statusHint(status.Status))
	case errors.As(err, new(*httpmsg.HostDelayError)):
		return cmdline.Hint(err, "try again later")
	case errors.As(err, new(*httpmsg.NetError)):
		return cmdline.Hint(err, "add --no-fetch --as-is subscribes to a URL without looking at it")
	}
	return entrystore.FeedHint(err)
}

// statusHint returns what the user can do about the status of a URL that is not subscribed to.
func statusHint(status int) string {
	switch {
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return "if the server needs a password or token, add the header for it with --header"
	case status == http.StatusGone:
		return "the feed has ended; if it has moved, add its new address"
	case status == http.StatusTooManyRequests, status >= 500:
		return "try again later"
	}
	return "check the address, or give that of a page that links to the feed"
}

// Added is the result of [Runner.Add].
type Added struct {
	ID, URL, Hash, Title string
	Already              bool // the subscription existed before
	Summary              Summary

	outcome VisitResult // result of its first visit
}

// Add subscribes to the feed at url, or to the one that the page at url links to, and delivers its
// entries. It delivers the document that it looked at, without a second request. If the document
// cannot be fetched or is not a feed, Add does not subscribe.
func (r *Runner) Add(ctx context.Context, url string, o AddOptions) (Added, error) {
	header, err := httpmsg.ParseHeaders(o.headers())
	if err != nil {
		return Added{}, err
	}
	f := &search{r: r, o: o, header: header, url: lektordir.NormalizeID(url)}
	switch err := f.find(ctx); {
	case err != nil:
		return Added{}, err
	case f.existing == nil:
	case f.page == nil || o.DryRun:
		return *f.existing, nil
	default:
		return *f.existing, recordPageESS(r.Dir, f.existing.Hash, &f.page.Result, f.page.chosen)
	}
	return f.subscribe(ctx)
}

// subscribe subscribes to the feed that was found, and delivers its entries.
func (f *search) subscribe(ctx context.Context) (Added, error) {
	r, o := f.r, f.o
	a := Added{ID: f.url, URL: f.url, Hash: lektordir.FeedHash(f.url),
		Title: cmp.Or(feedfiles.OneField(f.title), subscriptions.DefaultName(f.url))}
	if o.DryRun {
		return a, nil
	}
	if strings.HasPrefix(strings.ToLower(f.url), "exec:") {
		// Fail now, not at every fetch.
		if err := feedfiles.Trusted(r.Dir, "", ""); err != nil {
			return a, err
		}
	}
	o.Feed.ID, o.Feed.Name, o.Feed.Origin = f.url, a.Title, f.origin
	added, err := subscriptions.Add(r.Writer, r.Dir, &o.Feed, subscriptions.AddOptions{Headers: o.headers(),
		Record: r.record})
	if err == nil && added && o.FullText {
		err = subscriptions.Set(r.Writer, r.Dir, a.Hash, "fulltext", "on", nil)
	}
	if err == nil && f.page != nil {
		err = recordPageESS(r.Dir, a.Hash, &f.page.Result, f.page.chosen)
	}
	a.Already = err == nil && !added
	if err != nil || !added || o.NoFetch {
		return a, err
	}
	err = r.first(ctx, &a, f.resp, o.History)
	return a, err
}

// first delivers the entries of a feed for the first time: from resp, or from a new request if resp
// is nil. If whole is set, it asks for the archives too.
func (r *Runner) first(ctx context.Context, a *Added, resp *httpmsg.Response, whole bool) error {
	t := r.task(a.Hash, Named)
	t.want.Archives = whole
	a.outcome = r.visit(ctx, t, &slot{staged: r.Writer.Flush}, resp)
	a.Summary = a.outcome.Summary
	return cmp.Or(a.outcome.Err, context.Cause(ctx))
}

// subscribed returns the subscription with an id or URL, and reports whether there is one.
func (r *Runner) subscribed(id string) (Added, bool) {
	hash := lektordir.FeedHash(id)
	if !feedfiles.Subscribed(r.Dir, hash) {
		// The URLs are read once; feeds added since then are found by their ids.
		if hash = r.byURL()[id]; hash == "" {
			return Added{}, false
		}
	}
	s, err := subscriptions.Read(r.Dir, hash)
	if err != nil {
		return Added{}, false
	}
	return Added{ID: s.ID, URL: s.URL, Hash: hash, Title: s.Title(), Already: true}, true
}
