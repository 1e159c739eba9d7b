package ess

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/feeds/feedfiles"
	"github.com/lektordir/lektor/internal/feeds/schedule"
	"github.com/lektordir/lektor/internal/feeds/settings"
	"github.com/lektordir/lektor/internal/files/workers"
	"github.com/lektordir/lektor/internal/http/fetch"
	"github.com/lektordir/lektor/internal/http/httpmsg"
	"github.com/lektordir/lektor/internal/http/limiter"
	"github.com/lektordir/lektor/internal/protocol/ess"
	"github.com/lektordir/lektor/internal/read/entrystore"
	"github.com/lektordir/lektor/internal/text/feedurl"
	"github.com/lektordir/lektor/internal/text/humanize"
	"github.com/lektordir/lektor/lektordir"
)

// DefaultJobs is the default number of documents that are fetched at once.
const DefaultJobs = 48

// PollOptions are the options of [Poll].
type PollOptions struct {
	Common
	Feeds []string // feeds, or URLs of ESS documents; "-" reads them from stdin; none for all feeds with ESS
	Nul   bool
	N     int // an entry causes a fetch if it would be among the N newest of the lektor-dir
	Jobs  int // documents fetched at once; 0 for DefaultJobs
	// DryRun makes the requests and prints the due feeds, but records nothing.
	DryRun bool
	Quiet  bool // print no summary
	// Print, if it has a format, prints the due feeds instead of marking them.
	Print cmdline.PrinterOptions
}

// target is a document to poll.
type target struct {
	hash    string // feed of the subscription; "" for a document without one
	link    string // URL of the document
	named   bool
	userURL bool // the user named the URL of the document
}

// due is a feed with new entries.
type due struct {
	hash, url, title string
	entries          int
	newest           int64
}

var dueColumns = []cmdline.Column[due]{
	{Name: "url", Get: func(d due) any { return d.url }},
	{Name: "feed", Get: func(d due) any { return d.title }},
	{Name: "date", Get: func(d due) any { return ess.Time(d.newest) }},
	{Name: "entries", Get: func(d due) any { return d.entries }},
	{Name: "feedhash", Extra: true, Verbatim: true, Get: func(d due) any { return d.hash }},
}

// poller is a run of Poll.
type poller struct {
	*store
	o       PollOptions
	client  *fetch.Client
	printer *cmdline.Printer[due]

	mu                             sync.Mutex
	requests, same, due            int
	failed, failedNamed, postponed int
	bytes, size                    int64
	sized                          int

	oldest func() (int64, error) // result of threshold
}

// Poll requests the ESS documents of subscriptions, conditionally, and makes no other
// requests. A feed gets a due marker if its document has an entry that is not in the
// lektor-dir, is newer than the oldest of the N newest there, and was not in an earlier
// poll.
func Poll(ctx context.Context, o PollOptions, s *cmdline.Streams) error {
	st, err := o.open(s)
	if err != nil {
		return err
	}
	p := &poller{store: st, o: o, client: fetch.NewClient(o.Fetch)}
	defer p.client.Close()
	if o.Print.Format != "" {
		if p.printer, err = cmdline.NewPrinter(s.Out, o.Print, dueColumns); err != nil {
			return err
		}
	}
	p.oldest = sync.OnceValues(func() (int64, error) { return p.threshold(ctx) })
	targets, err := p.targets(ctx)
	if err != nil {
		return err
	}
	bar := s.Report.Progress(len(targets), "polling")
	p.each(ctx, targets, func(t target) {
		p.poll(ctx, t)
		bar.Add(1)
	})
	bar.Done()
	if p.printer != nil {
		if err := p.printer.Flush(); err != nil {
			return err
		}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if !o.Quiet && (len(targets) > 0 || len(o.Feeds) == 0) {
		p.summary(len(targets))
	}
	switch {
	case p.failedNamed > 0:
		return errReported
	case p.failed > 0:
		return &cmdline.ExitError{Status: cmdline.StatusRemote}
	}
	return nil
}

// targets returns the documents to poll.
func (p *poller) targets(ctx context.Context) ([]target, error) {
	var targets []target
	seen := map[string]bool{}
	add := func(t target) {
		if !seen[t.link] {
			seen[t.link] = true
			targets = append(targets, t)
		}
	}
	if len(p.o.Feeds) == 0 {
		err := p.linked(func(hash, link string) {
			if !settings.Paused(p.Dir, hash) {
				add(target{hash: hash, link: link})
			}
		})
		return targets, err
	}
	links := sync.OnceValue(p.links)
	for name, err := range cmdline.ReadArgs(p.o.Feeds, p.S.In, p.o.Nul) {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if err != nil {
			p.S.Report.Print(err)
			continue
		}
		hash, err := p.find(name)
		switch link := p.ess(hash).Link(); {
		case err == nil && link == "":
			p.S.Report.Print(cmdline.Hint(fmt.Errorf("%s: no ESS document is known for the feed", name),
				"look for one in its page with lektor-ess discover, and write its URL into %s/link",
				p.ess(hash).Path()))
		case err == nil && !feedfiles.Subscribed(p.Dir, hash):
			p.S.Report.Print(cmdline.Hint(fmt.Errorf("not subscribed to %s", name), "lektor-fetch add subscribes"))
		case err == nil:
			add(target{hash: hash, link: link, named: true})
		case feedurl.IsHTTP(name):
			// The URL of a document of a subscription, or of another.
			add(target{hash: links()[name], link: name, named: true, userURL: true})
		default:
			p.S.Report.Print(err)
		}
	}
	return targets, nil
}

// ess returns the stored state of a feed's ESS document.
func (st *store) ess(hash string) schedule.ESS { return schedule.ESSOf(st.Dir, hash) }

// links maps the URLs of ESS documents to subscriptions.
func (p *poller) links() map[string]string {
	m := map[string]string{}
	_ = p.linked(func(hash, link string) { m[link] = hash })
	return m
}

// linked calls f for each subscription with an ESS document.
func (p *poller) linked(f func(hash, link string)) error {
	hashes, err := p.Dir.FeedHashes()
	for _, h := range hashes {
		if link := p.ess(h).Link(); link != "" && feedfiles.Subscribed(p.Dir, h) {
			f(h, link)
		}
	}
	return err
}

// each calls f for all targets, at most Jobs at once, and at most PerHost at once for a
// host, so that a slow host does not delay others.
func (p *poller) each(ctx context.Context, targets []target, f func(target)) {
	hosts := limiter.New(limiter.Options{
		All:  cmp.Or(max(p.o.Jobs, 0), DefaultJobs),
		Each: cmp.Or(max(p.o.Fetch.PerHost, 0), fetch.DefaultPerHost),
	})
	var all workers.Group
	for _, t := range targets {
		all.Go(func() error {
			place, err := hosts.Acquire(ctx, fetch.HostKey(t.link))
			if err != nil {
				return nil // the caller checks the context
			}
			defer place.Release()
			f(t)
			return nil
		})
	}
	_ = all.Wait() // f never fails
}

// poll polls one document, and reports errors.
func (p *poller) poll(ctx context.Context, t target) {
	err := p.ask(ctx, t)
	if err == nil || ctx.Err() != nil {
		return
	}
	_, notESS := errors.AsType[*documentError](err)
	tell, count := p.S.Report.Error, &p.failedNamed
	if (httpmsg.Remote(err) || notESS) && !t.named {
		tell, count = p.S.Report.Info, &p.failed
	}
	p.mu.Lock()
	*count++
	p.mu.Unlock()
	tell("%v", inDocument(feedurl.Public(t.link), err))
}

// documentError is the error for a document that is not ESS.
type documentError struct{ err error }

func (e *documentError) Error() string { return "not an ESS document: " + e.err.Error() }
func (e *documentError) Unwrap() error { return e.err }

func (p *poller) ask(ctx context.Context, t target) error {
	if t.hash == "" {
		return p.foreign(ctx, t)
	}
	kept := p.ess(t.hash)
	state, err := kept.State(t.link, p.o.DryRun)
	if err != nil {
		return err
	}
	if state.Schedule.Failures() > 0 && !state.Schedule.Due(p.common.now()) && !t.named {
		p.mu.Lock()
		p.postponed++
		p.mu.Unlock()
		return nil
	}
	req, err := state.Request()
	if err != nil || req.URL != t.link {
		req = &httpmsg.Request{URL: t.link}
	}
	if !t.userURL {
		// The feed or its page names the URL of the document.
		if req.Origin, err = feedfiles.URL(p.Dir, t.hash); err != nil {
			return err
		}
	}
	fail := func(err error) error {
		if ctx.Err() != nil || p.o.DryRun {
			return err
		}
		return errors.Join(err, state.Fail(p.common.now(), err))
	}
	resp, err := p.client.Get(ctx, req)
	if resp != nil || ctx.Err() == nil {
		p.request(t, resp)
	}
	if err != nil {
		return fail(err)
	}
	for _, w := range resp.Warnings {
		p.warnings.Warn("%s: %s", feedurl.Public(t.link), w)
	}
	if !state.Known(p.common.now(), resp) {
		doc, err := p.decode(resp, t)
		if err != nil {
			return fail(&documentError{err})
		}
		// Save the validators last, when all entries are handled.
		if err := p.compare(ctx, t.hash, doc); err != nil {
			return err
		}
		state.Succeeded(p.common.now(), resp, schedule.Hints{})
	}
	if p.o.DryRun {
		return nil
	}
	return kept.Save(state)
}

// request counts a request for the summary.
func (p *poller) request(t target, resp *httpmsg.Response) {
	size := int64(0)
	if t.hash != "" {
		size = p.ess(t.hash).Size()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.requests++
	if size > 0 {
		p.sized++
		p.size += size
	}
	if resp != nil {
		p.bytes += resp.WireBytes
		if resp.NotModified {
			p.same++
		}
	}
}

// decode decodes a document. All entries of an ESS belong to the feed that links to it,
// whatever its URL. In an NNO, only those with the feed's URL do.
func (p *poller) decode(resp *httpmsg.Response, t target) (*ess.Document, error) {
	name := feedurl.Public(t.link)
	doc, err := ess.Decode(resp.Body, func(w ess.Warning) { p.warnings.Warn("%s: %v", name, w) })
	if err != nil {
		return nil, err
	}
	if doc.Kind == ess.NNO && t.hash != "" {
		doc.Entries = slices.DeleteFunc(doc.Entries, func(e ess.FeedEntry) bool { return p.feedAt(e.Feed) != t.hash })
	}
	return doc, nil
}

// compare looks for new entries in a feed's document, and leaves a due marker.
func (p *poller) compare(ctx context.Context, hash string, doc *ess.Document) error {
	if err := feedfiles.Guard(p.Dir, hash, "ess"); err != nil && !p.o.DryRun {
		return err
	}
	items, err := p.list(ctx, lektordir.ListOptions{Feeds: []string{hash}, AllVersions: true, Withdrawn: true,
		Strict: true}, itemFields)
	if err != nil {
		return err
	}
	held := map[int64][]*entrystore.Record{}
	for _, it := range items {
		held[minuteOf(it)] = append(held[minuteOf(it)], it)
	}
	handled := map[ess.Entry]int{} // number of each in the last document
	if b, err := p.ess(hash).Handled(maxDocument); err == nil {
		if old, err := ess.Decode(b, nil); err == nil {
			for _, e := range old.Entries {
				handled[e.Entry]++
			}
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	oldest, err := p.oldest()
	if err != nil {
		return err
	}
	now := ess.Minute(p.Now)
	d := due{hash: hash, newest: math.MinInt64}
	var seen, all []ess.Entry
	inDoc := map[ess.Entry]int{}
	for _, e := range doc.Entries {
		all = append(all, e.Entry)
		inDoc[e.Entry]++
		switch {
		case inDoc[e.Entry] <= max(handled[e.Entry], matching(held[e.Minute], e.Sum)):
			seen = append(seen, e.Entry)
		case min(e.Minute, now) > oldest:
			d.entries++
			d.newest = max(d.newest, e.Minute)
		}
	}
	if d.entries == 0 {
		all = seen
	}
	f := p.Dir.FeedOf(lektordir.Ref{Feed: hash})
	if d.entries > 0 {
		d.url, d.title = f.ID, f.Title()
		if err := p.found(d); err != nil {
			return err
		}
	}
	if p.o.DryRun {
		return nil
	}
	return p.ess(hash).SetHandled(ess.AppendESS(nil, doc.Build, cmp.Or(f.ID, "urn:lektor:"+hash), all))
}

// matching counts the entries with a checksum. Versions of an entry count once.
func matching(items []*entrystore.Record, sum uint8) int {
	n := 0
	ids := map[string]bool{}
	for _, it := range items {
		id := it.Ref.Identity()
		if !ess.Matches(it.Get(lektordir.FieldTitle).Title, int(sum)) || id != "" && ids[id] {
			continue
		}
		ids[id] = true
		n++
	}
	return n
}

// found prints or marks a due feed.
func (p *poller) found(d due) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.due++
	switch {
	case p.printer != nil:
		return p.printer.Print(d)
	case p.o.DryRun:
		p.S.Report.Info("%s would be due", d.url)
		return nil
	case d.hash == "":
		p.S.Report.Print(cmdline.Hint(fmt.Errorf("not subscribed to %s", d.url),
			"lektor-fetch add subscribes; -o url only prints it"))
		return nil
	}
	return schedule.AddMarker(p.Dir, d.hash)
}

// foreign polls a document that no subscription links to.
func (p *poller) foreign(ctx context.Context, t target) error {
	resp, err := p.client.Get(ctx, &httpmsg.Request{URL: t.link})
	if err != nil {
		return err
	}
	p.request(t, resp)
	doc, err := p.decode(resp, t)
	if err != nil {
		return &documentError{err}
	}
	byFeed := map[string]*ess.Document{}
	var order []string
	for _, e := range doc.Entries {
		if byFeed[e.Feed] == nil {
			byFeed[e.Feed] = &ess.Document{Build: doc.Build, Kind: ess.ESS, URL: e.Feed}
			order = append(order, e.Feed)
		}
		byFeed[e.Feed].Entries = append(byFeed[e.Feed].Entries, e)
	}
	oldest, err := p.oldest()
	if err != nil {
		return err
	}
	var bad error
	for _, feed := range order {
		if ctx.Err() != nil {
			return errors.Join(bad, context.Cause(ctx))
		}
		if hash := p.feedAt(feed); hash != "" && feedfiles.Subscribed(p.Dir, hash) {
			bad = errors.Join(bad, p.compare(ctx, hash, byFeed[feed]))
			continue
		}
		d := due{url: feed, title: feed, newest: math.MinInt64}
		for _, e := range byFeed[feed].Entries {
			if e.Minute > oldest {
				d.entries++
				d.newest = max(d.newest, e.Minute)
			}
		}
		if d.entries > 0 {
			bad = errors.Join(bad, p.found(d))
		}
	}
	return bad
}

// threshold returns the minute of the N-th newest entry. If there are fewer entries, all
// times are newer.
func (p *poller) threshold(ctx context.Context) (int64, error) {
	items, err := p.list(ctx, lektordir.ListOptions{}, lektordir.FieldPubDate)
	if err != nil || len(items) < p.o.N {
		return math.MinInt64, err
	}
	minutes := make([]int64, len(items))
	for i, it := range items {
		minutes[i] = ess.Minute(it.Date())
	}
	slices.Sort(minutes)
	return minutes[len(minutes)-p.o.N], nil
}

// summary prints the cost of the poll, and the estimated cost of fetching the feeds
// instead.
func (p *poller) summary(targets int) {
	if targets == 0 {
		p.S.Report.Info("no ESS document is known for any subscription")
		return
	}
	line := fmt.Sprintf("%s: %s, %s; %s due", humanize.Count(targets, "feed"), humanize.Count(p.requests, "request"),
		humanize.Bytes(p.bytes), humanize.Group(int64(p.due)))
	if p.same > 0 {
		line += fmt.Sprintf(", %s not modified", humanize.Group(int64(p.same)))
	}
	if n := p.failed + p.failedNamed; n > 0 {
		line += fmt.Sprintf(", %s failed", humanize.Group(int64(n)))
	}
	if p.postponed > 0 {
		line += fmt.Sprintf(", %s postponed after failures", humanize.Group(int64(p.postponed)))
	}
	if p.sized > 0 {
		// Feeds of unknown size count with the average of the others.
		full := p.size / int64(p.sized) * int64(p.requests)
		line += fmt.Sprintf(". Fetching the feeds in full: %s, %s", humanize.Count(p.requests, "request"),
			humanize.Bytes(full))
		if p.bytes > 0 {
			line += fmt.Sprintf(" (%d times as much)", full/p.bytes)
		}
	}
	p.S.Report.Info("%s", line)
}

// askedSince reports whether a feed was requested after a time, and whether the last
// request succeeded.
func (st *store) askedSince(hash string, t time.Time) (asked, succeeded bool) {
	checked := schedule.Checked(st.Dir, hash)
	// A time in the future means that the feed is due.
	asked = checked.After(t) && !checked.After(st.Now)
	return asked, asked && schedule.LastError(st.Dir, hash) == ""
}
