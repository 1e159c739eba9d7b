package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/mail"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/lektordir/lektor/feedconv"
	"github.com/lektordir/lektor/internal/app/fetcher"
	"github.com/lektordir/lektor/internal/atomicfile"
	"github.com/lektordir/lektor/internal/command"
	"github.com/lektordir/lektor/internal/feeddir"
	"github.com/lektordir/lektor/internal/fetch"
	"github.com/lektordir/lektor/internal/opml"
	"github.com/lektordir/lektor/internal/termsafe"
	"github.com/lektordir/lektor/lektordir"
)

// options are what all commands have in common.
type options struct {
	dir        string
	jobs       int
	maxEntries int
	interval   time.Duration
	fetch      fetch.Config
}

// open opens the lektor-dir, and makes it where create is set.
func (o options) open(create bool) (*lektordir.Dir, error) {
	if o.dir == "" {
		return nil, command.Hint(errors.New("there is no home directory to keep feeds in"), "give --dir or set $LEKTORDIR")
	}
	lo := &lektordir.Options{Now: o.fetch.Now}
	if create {
		if fi, err := os.Stat(o.dir); err == nil && fi.IsDir() {
			// Nobody wants four directories strewn among other files because
			// of a mistyped path.
			if _, err := lektordir.Open(o.dir, lo); err != nil {
				if names, _ := os.ReadDir(o.dir); len(names) > 0 && !partial(names) {
					return nil, command.Hint(fmt.Errorf("%s holds other files and is no lektor-dir", o.dir), "choose another with --dir or $LEKTORDIR, or: mkdir %s/tmp %s/new %s/cur %s/src", o.dir, o.dir, o.dir, o.dir)
				}
			}
		}
		return lektordir.Create(o.dir, lo)
	}
	d, err := lektordir.Open(o.dir, lo)
	var none *lektordir.NotLektorDirError
	if errors.As(err, &none) {
		return nil, command.Hint(err, "lektor-fetch add URL makes one; another is chosen by --dir or $LEKTORDIR")
	}
	return d, err
}

// make opens the lektor-dir, and makes it if it is not there. In a dry run an
// empty one elsewhere stands for it; done removes that.
func (o options) make(dryRun bool) (d *lektordir.Dir, done func(), err error) {
	done = func() {}
	if _, missing := os.Lstat(o.dir); dryRun && o.dir != "" && errors.Is(missing, fs.ErrNotExist) {
		if o.dir, err = os.MkdirTemp("", "lektor-dry-run-"); err != nil {
			return nil, done, err
		}
		done = func() { os.RemoveAll(o.dir) }
	}
	d, err = o.open(true)
	return d, done, err
}

// partial reports whether a directory has a part of a lektor-dir, or only
// hidden files.
func partial(names []fs.DirEntry) bool {
	hidden := true
	for _, n := range names {
		switch n.Name() {
		case "tmp", "new", "cur", "src", "etc":
			return true
		}
		hidden = hidden && strings.HasPrefix(n.Name(), ".")
	}
	return hidden
}

// runner makes a runner on the lektor-dir.
func (o options) runner(s *command.Streams, deliver func([]lektordir.Ref), d *lektordir.Dir) (*fetcher.Runner, error) {
	// Markers are moved and removed without a look at who left them.
	if err := d.Inside("etc/fetch", "etc/fetch/due", "etc/fetch/taken"); err != nil {
		return nil, err
	}
	return fetcher.New(d, s.Report, fetcher.Options{
		Jobs: o.jobs, Fetch: o.fetch, MaxEntries: o.maxEntries, Interval: o.interval, Delivered: deliver,
		Progress: func(total int) (func(), func()) {
			p := s.Report.Progress(total, "fetching")
			return func() { p.Add(1) }, p.Done
		},
	})
}

// record is an entry that was delivered.
type record struct {
	d   *lektordir.Dir
	ref lektordir.Ref
	e   *lektordir.Entry
}

var columns = []command.Column[*record]{
	{Name: "path", Verbatim: true, Get: func(r *record) any { return r.d.Abs(r.ref) }},
	{Name: "date", Get: func(r *record) any { return cmp.Or(r.e.PubDate, r.ref.Delivered()) }},
	{Name: "feed", Get: func(r *record) any { return r.d.FeedOf(r.ref).Title() }},
	{Name: "title", Get: func(r *record) any { return r.e.Title }},
	{Name: "url", Get: func(r *record) any { return r.e.URL() }},
	{Name: "id", Get: func(r *record) any { return r.e.ID }},
	{Name: "author", Get: func(r *record) any { return r.e.Author }},
}

// deliveries gives a function that prints entries, or nil for no format.
func deliveries(s *command.Streams, d *lektordir.Dir, format string) (func([]lektordir.Ref), error) {
	if format == "" {
		return nil, nil
	}
	p, err := command.NewPrinter(s.Out, command.PrinterOptions{Format: format}, columns)
	if err != nil {
		return nil, err
	}
	return func(refs []lektordir.Ref) {
		for _, ref := range refs {
			r := &record{d: d, ref: ref, e: &lektordir.Entry{}}
			if format != "path" {
				if e, _ := d.ReadEntry(ref, lektordir.AllFields&^lektordir.FieldContent); e != nil {
					r.e = e
				}
			}
			if err := p.Print(r); err != nil {
				s.Report.Error("%v", err)
				return
			}
		}
		// What cannot be written is noticed, and reported, by command.Main.
		_ = p.Flush()
	}, nil
}

// feeds finds the feeds that the user names, each once. Those that are not
// there are reported; the others are returned.
func feeds(d *lektordir.Dir, args []string, nul bool, s *command.Streams) (hashes []string, failed bool) {
	for name, err := range command.ReadArgs(args, s.In, nul) {
		var h string
		if err == nil {
			h, err = feeddir.Find(d, name)
		}
		if err != nil {
			failed = true
			s.Report.Print(noFeed(err))
			continue
		}
		if !slices.Contains(hashes, h) {
			hashes = append(hashes, h)
		}
	}
	return hashes, failed
}

// noFeed adds to an error about a feed what can be done.
func noFeed(err error) error {
	var none *lektordir.NoFeedError
	var not *feeddir.NotSubscribedError
	var inUse *lektordir.BusyError
	switch {
	case errors.As(err, &none) && len(none.Matches) > 1:
		return command.Hint(err, "give more of the hash, or the feed's URL")
	case errors.As(err, &none), errors.As(err, &not):
		return command.Hint(err, "lektor-fetch ls lists the feeds there are")
	case errors.As(err, &inUse):
		return command.Hint(err, "try again in a moment")
	}
	return err
}

// said is the error of a command that has reported what failed.
var said = &command.ExitError{Status: command.StatusFailed}

type updateOptions struct {
	options
	args               []string
	nul                bool
	all, quiet, dryRun bool
	format             string
}

func runUpdate(ctx context.Context, o updateOptions, s *command.Streams) error {
	d, err := o.open(false)
	if err != nil {
		return err
	}
	print, err := deliveries(s, d, o.format)
	if err != nil {
		return err
	}
	if o.all && len(o.args) > 0 {
		return command.Usagef("either feeds are named, or all of them are fetched with -a")
	}
	sel := fetcher.Selection{All: o.all}
	missing := false
	if len(o.args) > 0 {
		if sel.Feeds, missing = feeds(d, o.args, o.nul, s); len(sel.Feeds) == 0 {
			if missing {
				return said
			}
			return nil // a list on standard input with nothing on it
		}
	}
	r, err := o.runner(s, print, d)
	if err != nil {
		return err
	}
	defer r.Close()
	if o.dryRun {
		urls, err := r.Due(sel)
		for _, u := range urls {
			fmt.Fprintln(s.Out, termsafe.Line(u))
		}
		return err
	}
	r.Recover(ctx)
	sum, err := r.Update(ctx, sel)
	if err != nil {
		return err
	}
	if err := r.Close(); err != nil {
		return err
	}
	summary(s, sum, o.quiet)
	return status(s, sum, len(sel.Feeds) > 0 || missing, missing)
}

func summary(s *command.Streams, sum fetcher.Summary, quiet bool) {
	switch {
	case quiet:
	case sum.Feeds > 0:
		s.Report.Info("%s", sum)
	case s.ErrIsTerminal():
		// A timer that runs every minute does not want to read this.
		s.Report.Info("nothing is due; -a fetches all feeds")
	}
}

// status is the error that gives a run its exit status; what failed was
// reported when it did.
func status(s *command.Streams, sum fetcher.Summary, named, missing bool) error {
	switch {
	case missing || sum.Broken > 0 || named && sum.Failed > 0 || s.Report.Errors() > 0:
		return said
	case sum.Failed > 0:
		return command.Remote(&command.ExitError{Status: command.StatusRemote})
	}
	return nil
}

type watchOptions struct {
	options
	format string
}

func watch(ctx context.Context, o watchOptions, s *command.Streams) error {
	d, err := o.open(true)
	if err != nil {
		return err
	}
	print, err := deliveries(s, d, o.format)
	if err != nil {
		return err
	}
	r, err := o.runner(s, print, d)
	if err != nil {
		return err
	}
	defer r.Close()
	r.Recover(ctx)
	if err := r.Watch(ctx, nil); err != nil {
		return err
	}
	if err := r.Close(); err != nil {
		return err
	}
	// Failures while watching were somebody else's or are mended by now;
	// being stopped is the normal end.
	return nil
}

type addOptions struct {
	options
	args []string
	nul  bool
	add  fetcher.AddOptions
}

func add(ctx context.Context, o addOptions, s *command.Streams) error {
	if o.add.Interval != "" {
		if err := feeddir.Check("interval", o.add.Interval); err != nil {
			return command.Usagef("--interval: %w", err)
		}
	}
	if o.add.Alias != "" && len(o.args) > 1 {
		return command.Usagef("--alias names one feed, and several URLs were given")
	}
	d, done, err := o.make(o.add.DryRun)
	defer done()
	if err != nil {
		return err
	}
	r, err := o.runner(s, nil, d)
	if err != nil {
		return err
	}
	defer r.Close()
	if !o.add.DryRun {
		r.Recover(ctx)
	}
	var mu sync.Mutex
	var wg sync.WaitGroup
	failed := false
	fail := func(err error) {
		mu.Lock()
		defer mu.Unlock()
		failed = true
		s.Report.Print(err)
	}
	// Fewer than an update: each holds a document until it knows what it is.
	slots := make(chan struct{}, 8)
	for arg, err := range command.ReadArgs(o.args, s.In, o.nul) {
		if err == nil {
			arg, err = source(arg)
		}
		if err != nil {
			fail(err)
			continue
		}
		slots <- struct{}{}
		if ctx.Err() != nil {
			break
		}
		wg.Go(func() {
			defer func() { <-slots }()
			a, err := r.Add(ctx, arg, o.add)
			if ctx.Err() != nil {
				return
			}
			if err != nil {
				fail(addHint(err))
				return
			}
			switch {
			case a.Already:
				s.Report.Info("%s: already subscribed (%s)", a.URL, a.Title)
			case o.add.DryRun:
				s.Report.Info("%s: would be subscribed to (%s)", a.URL, a.Title)
			case o.add.NoFetch:
				s.Report.Info("%s: subscribed (%s)", a.URL, a.Title)
			default:
				s.Report.Info("%s: subscribed (%s), %s", a.URL, a.Title, fetcher.Count(a.Summary.New+a.Summary.Updated, "entry"))
			}
		})
	}
	wg.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if failed {
		return said
	}
	return nil
}

// source makes a URL of what the user typed: a URL, a file, or a host.
func source(arg string) (string, error) {
	arg = strings.TrimSpace(arg)
	scheme, _, ok := strings.Cut(arg, ":")
	switch scheme = strings.ToLower(scheme); {
	case arg == "":
		return "", errors.New("an empty URL")
	case ok && slices.Contains([]string{"http", "https", "file", "exec", "feed"}, scheme):
		return fetcher.FeedURL(arg), nil
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

// addHint adds to an error of Add what can be done.
func addHint(err error) error {
	var several *fetcher.SeveralError
	var none *fetcher.NoFeedsError
	var network *fetch.NetError
	switch {
	case errors.As(err, &several):
		var b strings.Builder
		fmt.Fprintf(&b, "%v:", err)
		for _, l := range several.Feeds {
			fmt.Fprintf(&b, "\n%s", l.URL)
			if l.Title != "" {
				fmt.Fprintf(&b, " (%s)", l.Title)
			}
		}
		errs := []error{}
		for line := range strings.SplitSeq(b.String(), "\n") {
			errs = append(errs, errors.New(line))
		}
		errs[len(errs)-1] = command.Hint(errs[len(errs)-1], "add the one you want, or take the first with --first")
		return errors.Join(errs...)
	case errors.As(err, &none) && none.Page:
		return command.Hint(err, "if you know the address of its feed, add that")
	case errors.As(err, &none):
		return command.Hint(err, "give the address of a feed, or of a page that links to one")
	case errors.As(err, &network):
		return command.Hint(err, "add --no-fetch --as-is subscribes to a URL without looking at it")
	}
	return noFeed(err)
}

type rmOptions struct {
	options
	args          []string
	nul           bool
	purge, dryRun bool
}

func rm(ctx context.Context, o rmOptions, s *command.Streams) error {
	d, err := o.open(false)
	if err != nil {
		return err
	}
	r, err := o.runner(s, nil, d)
	if err != nil {
		return err
	}
	defer r.Close()
	if o.purge && !o.dryRun {
		r.Recover(ctx) // a purge that was interrupted
	}
	failed := false
	for name, err := range command.ReadArgs(o.args, s.In, o.nul) {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		var hash, title string
		if err == nil {
			hash, err = feeddir.Find(d, name)
			var not *feeddir.NotSubscribedError
			if o.purge && errors.As(err, &not) {
				// Of a feed that is not subscribed to any more its entries
				// may be purged.
				hash, err = d.FindFeed(name)
			}
		}
		if err == nil {
			title = hash
			if f, _ := d.ReadFeed(hash); f != nil {
				title = f.Title()
			}
			switch {
			case o.dryRun:
			case o.purge:
				err = feeddir.Purge(ctx, r.Writer, d, hash)
			default:
				err = feeddir.Remove(r.Writer, d, hash)
			}
		}
		switch {
		case err != nil:
			failed = true
			s.Report.Print(noFeed(err))
		case o.dryRun && o.purge:
			s.Report.Info("%s: would be removed with its entries (%s)", name, title)
		case o.dryRun:
			s.Report.Info("%s: would be unsubscribed from (%s)", name, title)
		case o.purge:
			s.Report.Info("%s: removed with its entries (%s)", name, title)
		default:
			s.Report.Info("%s: unsubscribed (%s)", name, title)
		}
	}
	if failed {
		return said
	}
	return nil
}

type lsOptions struct {
	options
	args             []string
	nul, raw, broken bool
	format, category string
}

// listed is a subscription in a list.
type listed struct {
	*feeddir.Subscription
	d      *lektordir.Dir
	unread map[string]int
}

func (l *listed) time(name string) any {
	fi, err := os.Lstat(filepath.Join(l.d.SrcEtc(l.Hash, "fetch"), name))
	if err != nil {
		return time.Time{}
	}
	return fi.ModTime()
}

var listColumns = []command.Column[*listed]{
	{Name: "path", Verbatim: true, Get: func(l *listed) any { return l.d.Join("src", l.Hash) }},
	{Name: "title", Get: func(l *listed) any { return l.Title() }},
	{Name: "url", Get: func(l *listed) any { return l.URL }},
	{Name: "unread", Get: func(l *listed) any { return l.unread[l.Hash] }},
	{Name: "categories", Get: func(l *listed) any { return l.Categories }},
	{Name: "error", Get: func(l *listed) any { return l.Error }},
	{Name: "hash", Extra: true, Get: func(l *listed) any { return l.Hash }},
	{Name: "id", Extra: true, Get: func(l *listed) any { return l.ID }},
	{Name: "name", Extra: true, Get: func(l *listed) any { return l.Name }},
	{Name: "alias", Extra: true, Get: func(l *listed) any { return l.Alias }},
	{Name: "link", Extra: true, Get: func(l *listed) any { return l.Link }},
	{Name: "interval", Extra: true, Get: func(l *listed) any { return l.Interval }},
	{Name: "checked", Extra: true, Get: func(l *listed) any { return l.time("checked") }},
	{Name: "next", Extra: true, Get: func(l *listed) any { return l.time("next") }},
}

// lsFormat is what ls prints unasked.
const lsFormat = `{{.unread | printf "%5d"}}  {{.title | pad 30}}  {{.url}}{{if .error}}  ! {{.error}}{{end}}`

func ls(ctx context.Context, o lsOptions, s *command.Streams) error {
	d, err := o.open(false)
	if err != nil {
		return err
	}
	p, err := command.NewPrinter(s.Out, command.PrinterOptions{Format: cmp.Or(o.format, lsFormat), Nul: o.nul, Raw: o.raw}, listColumns)
	if err != nil {
		return err
	}
	subs, bad := feeddir.List(d)
	missing := false
	if len(o.args) > 0 {
		var hashes []string
		hashes, missing = feeds(d, o.args, o.nul, s)
		subs = slices.DeleteFunc(subs, func(s *feeddir.Subscription) bool { return !slices.Contains(hashes, s.Hash) })
	}
	for _, err := range split(bad) {
		s.Report.Warn("%v", err)
	}
	refs, err := d.List(ctx, lektordir.ListOptions{})
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	for _, err := range split(err) {
		s.Report.Warn("%v", err)
	}
	unread := map[string]int{}
	for _, ref := range refs {
		if ref.Unread() {
			unread[ref.Feed]++
		}
	}
	slices.SortStableFunc(subs, func(a, b *feeddir.Subscription) int {
		return cmp.Or(strings.Compare(strings.ToLower(a.Title()), strings.ToLower(b.Title())), strings.Compare(a.URL, b.URL))
	})
	for _, sub := range subs {
		if o.broken && sub.Error == "" || !inCategory(sub, o.category) {
			continue
		}
		if err := p.Print(&listed{sub, d, unread}); err != nil {
			return err
		}
	}
	if err := p.Flush(); err != nil {
		return err
	}
	if missing {
		return said
	}
	return nil
}

func inCategory(s *feeddir.Subscription, category string) bool {
	return category == "" || slices.ContainsFunc(s.Categories, func(c string) bool {
		return strings.EqualFold(c, category) || len(c) > len(category) && c[len(category)] == '/' && strings.EqualFold(c[:len(category)], category)
	})
}

// split gives the errors that were joined.
func split(err error) []error {
	if j, ok := err.(interface{ Unwrap() []error }); ok {
		var out []error
		for _, e := range j.Unwrap() {
			out = append(out, split(e)...)
		}
		return out
	}
	if err == nil {
		return nil
	}
	return []error{err}
}

type setOptions struct {
	options
	feed          string
	args          []string
	unset, dryRun bool
}

func set(_ context.Context, o setOptions, s *command.Streams) error {
	d, err := o.open(false)
	if err != nil {
		return err
	}
	hash, err := feeddir.Find(d, o.feed)
	if err != nil {
		return noFeed(err)
	}
	switch {
	case o.unset && len(o.args) != 1:
		return command.Usagef("--unset takes a feed and one setting")
	case !o.unset && len(o.args) < 2:
		// Shown rather than changed.
		keys := feeddir.Settings
		if len(o.args) == 1 {
			keys = o.args
		}
		for _, key := range keys {
			v, err := feeddir.Get(d, hash, key)
			if err != nil {
				return settingError(err)
			}
			for line := range strings.SplitSeq(v, "\n") {
				switch {
				case len(o.args) == 1 && line != "":
					fmt.Fprintln(s.Out, termsafe.Line(line))
				case line != "":
					fmt.Fprintf(s.Out, "%s\t%s\n", key, termsafe.Line(line))
				}
			}
		}
		return nil
	}
	key, value := o.args[0], strings.Join(o.args[min(1, len(o.args)):], "\n")
	if !o.unset {
		if len(o.args) > 2 && key != "headers" && key != "categories" {
			return command.Usagef("%s has one value; quote it if it has spaces", key)
		}
		if key == "url" {
			if value, err = source(value); err != nil {
				return err
			}
		}
		if err := feeddir.Check(key, value); err != nil {
			return settingError(err)
		}
	}
	if o.dryRun {
		return nil
	}
	r, err := o.runner(s, nil, d)
	if err != nil {
		return err
	}
	defer r.Close()
	if o.unset {
		err = feeddir.Unset(r.Writer, d, hash, key)
	} else {
		err = feeddir.Set(r.Writer, d, hash, key, value)
	}
	return settingError(noFeed(err))
}

// settingError makes a mistyped setting a mistake in the command line.
func settingError(err error) error {
	var unknown *feeddir.UnknownSettingError
	if errors.As(err, &unknown) {
		return &command.UsageError{Message: err.Error(), Hint: "see lektor-fetch set --help"}
	}
	return err
}

type deliverOptions struct {
	options
	doc    fetcher.Document
	format string
}

func deliver(ctx context.Context, o deliverOptions, s *command.Streams) error {
	var err error
	if o.doc.ID, err = feedID("--id", o.doc.ID); err != nil {
		return err
	}
	d, done, err := o.make(o.doc.DryRun)
	defer done()
	if err != nil {
		return err
	}
	print, err := deliveries(s, d, o.format)
	if err != nil {
		return err
	}
	if o.doc.Body, err = readInput(s, o.fetch.MaxDecoded, fetch.FlagMaxDecoded); err != nil {
		return err
	}
	r, err := o.runner(s, print, d)
	if err != nil {
		return err
	}
	defer r.Close()
	if !o.doc.DryRun {
		r.Recover(ctx)
	}
	_, err = r.Deliver(ctx, o.doc)
	var not *feedconv.NotFeedError
	if errors.As(err, &not) {
		return fmt.Errorf("standard input: %w", err)
	}
	return noFeed(err)
}

// feedID checks the id of a feed on the command line.
func feedID(flag, id string) (string, error) {
	id = lektordir.NormalizeID(id)
	if id == "" || strings.ContainsAny(id, "\n\r\x00") {
		return "", command.Usagef("%s is a URI, and not %q", flag, id)
	}
	return id, nil
}

// readInput reads standard input up to a limit.
func readInput(s *command.Streams, limit int64, flag string) ([]byte, error) {
	if s.InIsTerminal() {
		s.Report.Info("reading standard input; end it with ^D")
	}
	body, err := io.ReadAll(io.LimitReader(s.In, limit+1))
	if err != nil {
		return nil, fmt.Errorf("standard input: %w", err)
	}
	if int64(len(body)) > limit {
		err := fmt.Errorf("standard input: more than %d bytes", limit)
		if flag != "" {
			err = command.Hint(err, "--%s raises the limit", flag)
		}
		return nil, err
	}
	return body, nil
}

type putOptions struct {
	options
	feedID, feedName, id, title string
	link, author, date, mime    string
	summary                     string
	categories, enclosures      []string
	dryRun                      bool
}

// maxPut is the largest content that put takes, as feedconv of a document.
const maxPut = feedconv.DefaultMaxBytes

func put(ctx context.Context, o putOptions, s *command.Streams) error {
	feed, err := feedID("--feed-id", o.feedID)
	if err != nil {
		return err
	}
	o.id = strings.TrimSpace(o.id)
	if o.id == "" || strings.ContainsAny(o.id, "\n\r\x00") {
		return command.Usagef("--id is a URI, and not %q", o.id)
	}
	e := feedconv.Entry{
		ID: o.id, GUID: o.id, Link: strings.TrimSpace(o.link), Title: strings.Join(strings.Fields(o.title), " "),
		ContentType: cmp.Or(strings.TrimSpace(o.mime), "text/plain"), Summary: o.summary, Categories: o.categories,
	}
	if o.date != "" {
		if e.Published, err = parseDate(o.date); err != nil {
			return err
		}
	}
	if o.author != "" {
		e.Authors = []feedconv.Person{{Name: o.author}}
		if a, err := mail.ParseAddress(o.author); err == nil {
			e.Authors = []feedconv.Person{{Name: a.Name, Email: a.Address}}
		}
	}
	for _, v := range o.enclosures {
		f := strings.Fields(v)
		if len(f) == 0 || len(f) > 3 {
			return command.Usagef("--enclosure %q: it is a URL, a type and a length", v)
		}
		enc := feedconv.Enclosure{URL: f[0], Length: -1}
		if len(f) > 1 {
			enc.Type = f[1]
		}
		if len(f) > 2 {
			if enc.Length, err = strconv.ParseInt(f[2], 10, 64); err != nil || enc.Length < 0 {
				return command.Usagef("--enclosure %q: %q is no length", v, f[2])
			}
		}
		e.Enclosures = append(e.Enclosures, enc)
	}
	body, err := readInput(s, maxPut, "")
	if err != nil {
		return err
	}
	e.Content = string(body)
	if o.dryRun {
		return nil
	}
	d, err := o.open(true)
	if err != nil {
		return err
	}
	r, err := o.runner(s, nil, d)
	if err != nil {
		return err
	}
	defer r.Close()
	r.Recover(ctx)
	path, _, err := r.Put(ctx, feed, o.feedName, e)
	if err != nil {
		return noFeed(err)
	}
	if path != "" {
		fmt.Fprintln(s.Out, d.Join(path))
	}
	return nil
}

// parseDate reads a date on the command line.
func parseDate(v string) (time.Time, error) {
	if secs, ok := strings.CutPrefix(v, "@"); ok {
		if n, err := strconv.ParseInt(secs, 10, 64); err == nil {
			return time.Unix(n, 0).UTC(), nil
		}
	}
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05", "2006-01-02 15:04:05", "2006-01-02 15:04", "2006-01-02", time.RFC1123Z, time.RFC1123} {
		if t, err := time.ParseInLocation(layout, v, time.Local); err == nil {
			return t.UTC(), nil
		}
	}
	return time.Time{}, command.Usagef("--date %q: it is a date such as 2026-01-31T12:00:00Z", v)
}

type importOptions struct {
	options
	file            string
	noFetch, dryRun bool
}

// readList reads a list as far as [opml.Parse] needs to see that it is too
// long: a file may be a device without an end.
func readList(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, opml.MaxBytes+1))
}

func importList(ctx context.Context, o importOptions, s *command.Streams) error {
	var data []byte
	var err error
	if o.file == "-" {
		data, err = readInput(s, opml.MaxBytes, "")
	} else {
		data, err = readList(o.file)
	}
	if err != nil {
		return err
	}
	name := o.file
	if name == "-" {
		name = "standard input"
	}
	doc, err := opml.Parse(data)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	d, done, err := o.make(o.dryRun)
	defer done()
	if err != nil {
		return err
	}
	r, err := o.runner(s, nil, d)
	if err != nil {
		return err
	}
	defer r.Close()
	if !o.dryRun {
		r.Recover(ctx)
	}
	imp, bad := fetcher.Import(r.Writer, r.Dir, doc, o.dryRun)
	for _, url := range imp.Refused {
		s.Report.Warn("%s: skipped; only http and https are taken from a list", url)
	}
	did := "subscribed"
	if o.dryRun {
		did = "would be subscribed to"
		for _, sub := range imp.Added {
			fmt.Fprintln(s.Out, termsafe.Line(sub.ID))
		}
	}
	s.Report.Info("%s: %s %s, %d already", name, fetcher.Count(len(imp.Added), "feed"), did, imp.Already)
	if bad != nil || o.dryRun || o.noFetch || len(imp.Added) == 0 {
		return bad
	}
	var sel fetcher.Selection
	for _, sub := range imp.Added {
		sel.Feeds = append(sel.Feeds, sub.Hash)
	}
	sel.Unnamed = true
	sum, err := r.Update(ctx, sel)
	if err != nil {
		return err
	}
	summary(s, sum, false)
	return status(s, sum, false, false)
}

type exportOptions struct {
	options
	output string
}

func export(_ context.Context, o exportOptions, s *command.Streams) error {
	d, err := o.open(false)
	if err != nil {
		return err
	}
	doc, bad := fetcher.Export(d)
	for _, err := range split(bad) {
		s.Report.Warn("%v", err)
	}
	if o.output == "" || o.output == "-" {
		_, err := s.Out.Write(doc.Bytes())
		return err
	}
	f, err := atomicfile.Create(o.output)
	if err != nil {
		return err
	}
	defer f.Abort()
	if _, err := f.Write(doc.Bytes()); err != nil {
		return err
	}
	return f.Commit()
}

type checkOptions struct {
	options
	repair bool
}

func check(ctx context.Context, o checkOptions, s *command.Streams) error {
	d, err := o.open(false)
	if err != nil {
		return err
	}
	problems, err := d.Check(ctx, o.repair)
	left := 0
	for _, p := range problems {
		fmt.Fprintln(s.Out, termsafe.Line(p.String()))
		if !p.Repaired {
			left++
		}
	}
	if err != nil {
		return err
	}
	if left > 0 {
		err := errors.New(fetcher.Count(left, "problem"))
		if !o.repair && slices.ContainsFunc(problems, func(p lektordir.Problem) bool { return p.Safe }) {
			return command.Hint(err, "lektor-fetch check --repair mends what is safe to mend")
		}
		return err
	}
	return nil
}
