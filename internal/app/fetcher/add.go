package fetcher

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/lektordir/lektor/internal/command"
	"github.com/lektordir/lektor/internal/discover"
	"github.com/lektordir/lektor/internal/entries"
	"github.com/lektordir/lektor/internal/feeddir"
	"github.com/lektordir/lektor/internal/fetch"
	"github.com/lektordir/lektor/internal/fulltext"
	"github.com/lektordir/lektor/internal/units"
	"github.com/lektordir/lektor/internal/workers"
	"github.com/lektordir/lektor/lektordir"
)

// AddOptions are those of [Add].
type AddOptions struct {
	Common
	Sources []string // what to subscribe to, see [source]; "-" reads them
	Nul     bool     // what "-" reads ends with NUL
	Look    Look
	First   bool                               // of several feeds that a page links to, take the first
	choose  func([]discover.Link) (int, error) // of several feeds; nil for an error
	Settings
	History bool // deliver what is in the feed's archives, too
	NoFetch bool // deliver nothing
	DryRun  bool // change nothing
}

// Settings are those of a feed that is added.
type Settings struct {
	Alias, Interval   string
	Force             bool // an interval of less than [feeddir.MinInterval] too
	Categories        []string
	Headers           []string // lines, see [fetch.ParseHeaders]
	Private, FullText bool
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

func (o Settings) headers() string { return strings.Join(o.Headers, "\n") }

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

// Add subscribes to the feed at a URL, or to the one that the page there links
// to, and delivers its entries. The document that told that it is a feed is the
// one that is delivered; the server is not asked twice. When the document
// cannot be had or is no feed, there is no subscription.
func (r *Runner) Add(ctx context.Context, url string, o AddOptions) (Added, error) {
	header, err := fetch.ParseHeaders(o.headers())
	if err != nil {
		return Added{}, err
	}
	f := &search{r: r, o: o, header: header, url: lektordir.NormalizeID(url)}
	switch err := f.find(ctx); {
	case err != nil:
		return Added{}, err
	case f.before == nil:
	case f.page == nil || o.DryRun:
		return *f.before, nil
	default:
		return *f.before, recordPageESS(r.Dir, f.before.Hash, &f.page.Result, f.page.chosen)
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
		err = recordPageESS(r.Dir, a.Hash, &f.page.Result, f.page.chosen)
	}
	a.Already = err == nil && !added
	if err != nil || !added || o.NoFetch {
		return a, err
	}
	err = r.first(ctx, &a, f.resp, o.History)
	return a, err
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
