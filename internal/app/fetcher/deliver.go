package fetcher

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/mail"
	"net/textproto"
	"strconv"
	"strings"
	"time"

	"github.com/lektordir/lektor/feedconv"
	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/dir/stage"
	"github.com/lektordir/lektor/internal/feeds/feedfiles"
	"github.com/lektordir/lektor/internal/feeds/feedstage"
	"github.com/lektordir/lektor/internal/feeds/subscriptions"
	"github.com/lektordir/lektor/internal/http/httpmsg"
	"github.com/lektordir/lektor/internal/read/entrystore"
	"github.com/lektordir/lektor/internal/text/feedurl"
	"github.com/lektordir/lektor/internal/text/humanize"
	"github.com/lektordir/lektor/internal/text/termsafe"
	"github.com/lektordir/lektor/lektordir"
)

// DeliverOptions are the options of [Deliver].
type DeliverOptions struct {
	Common
	Document        // without Body
	Format   string // format in which delivered entries are printed
}

// Deliver delivers the feed document on standard input.
func Deliver(ctx context.Context, o DeliverOptions, s *cmdline.Streams) error {
	doc := o.Document
	var err error
	if doc.ID, err = identifier("--id", lektordir.NormalizeID(doc.ID)); err != nil {
		return err
	}
	p, err := newPrinter(s, o.Format)
	if err != nil {
		return err
	}
	if doc.Body, err = s.ReadFile(ctx, "-", o.Fetch.MaxDecoded); err != nil {
		if large := (*cmdline.SizeError)(nil); errors.As(err, &large) {
			return cmdline.Hint(err, "--%s raises the limit", httpmsg.FlagMaxDecoded)
		}
		return err
	}
	r, end, err := o.begin(ctx, s, doc.DryRun, p)
	if err != nil {
		return err
	}
	defer end()
	_, err = r.Deliver(ctx, doc)
	if _, ok := errors.AsType[*feedconv.NotFeedError](err); ok {
		return fmt.Errorf("standard input: %w", err)
	}
	return entrystore.FeedHint(err)
}

// identifier returns the id of a feed or entry without surrounding space. It returns an error if
// the id is empty or has a line break.
func identifier(flag, id string) (string, error) {
	id = strings.TrimSpace(id)
	if id == "" || strings.ContainsAny(id, "\n\r\x00") {
		return "", cmdline.Usagef("%s: %q is not a URI", flag, id)
	}
	return id, nil
}

// PutOptions are the options of [Put].
type PutOptions struct {
	Common
	FeedID, FeedName        string
	ID, Title, Link, Author string
	Date                    string // as [humanize.ParseTime] reads it; "" if the entry has no date
	Type                    string // MIME type of the content; "" means text/plain
	Summary                 string
	Categories              []string
	Enclosures              []string // each is a URL, optionally followed by a space, a type, a space and a length
	DryRun                  bool
}

// maxPut is the maximum size of the content that Put reads, in bytes: feedconv's limit for a
// document.
const maxPut = feedconv.DefaultMaxBytes

// Put delivers one entry with its content from standard input, and prints the path of the entry.
func Put(ctx context.Context, o PutOptions, s *cmdline.Streams) error {
	feed, err := identifier("--feed-id", lektordir.NormalizeID(o.FeedID))
	if err != nil {
		return err
	}
	e, err := o.entry()
	if err != nil {
		return err
	}
	body, err := s.ReadFile(ctx, "-", maxPut)
	if err != nil || o.DryRun {
		return err
	}
	e.Content = string(body)
	r, end, err := o.begin(ctx, s, false, nil)
	if err != nil {
		return err
	}
	defer end()
	path, _, err := r.Put(ctx, feed, o.FeedName, e)
	if path != "" && err == nil {
		fmt.Fprintln(s.Out, r.Dir.Join(path))
	}
	return entrystore.FeedHint(err)
}

// entry returns the entry without its content.
func (o PutOptions) entry() (e feedconv.Entry, err error) {
	e = feedconv.Entry{
		Link: strings.TrimSpace(o.Link), Title: strings.Join(strings.Fields(o.Title), " "),
		Type: cmp.Or(strings.TrimSpace(o.Type), "text/plain"), Summary: o.Summary, Categories: o.Categories,
	}
	if e.ID, err = identifier("--id", o.ID); err != nil {
		return e, err
	}
	e.GUID = e.ID
	if e.Link != "" && !feedconv.IsLink(e.Link) {
		return e, cmdline.Usagef("--link %s: viewers do not follow this link; use a URL such as https://example.org/",
			termsafe.Brief(e.Link))
	}
	if o.Date != "" {
		date, err := humanize.ParseTime(o.Date, time.Local)
		if err != nil {
			return e, cmdline.Usagef("--date: %w", err)
		}
		e.PubDate = date.UTC()
	}
	if o.Author != "" {
		e.Authors = []feedconv.Person{{Name: o.Author}}
		if a, err := mail.ParseAddress(o.Author); err == nil {
			e.Authors = []feedconv.Person{{Name: a.Name, Email: a.Address}}
		}
	}
	for _, v := range o.Enclosures {
		f := strings.Fields(v)
		if len(f) == 0 || len(f) > 3 {
			return e, cmdline.Usagef("--enclosure %q: write a URL, a type and a length", v)
		}
		enc := feedconv.Enclosure{URL: f[0], Length: -1}
		if len(f) > 1 {
			enc.Type = f[1]
		}
		if len(f) > 2 {
			if enc.Length, err = strconv.ParseInt(f[2], 10, 64); err != nil || enc.Length < 0 {
				return e, cmdline.Usagef("--enclosure %q: %q is not a length", v, f[2])
			}
		}
		e.Enclosures = append(e.Enclosures, enc)
	}
	return e, nil
}

// Document is a feed document that was not fetched by a Runner.
type Document struct {
	ID          string // id of the feed
	Name        string // name of the feed; "": the title in the document
	URL         string // base of relative references; "": ID
	ContentType string
	Body        []byte
	DryRun      bool
}

// Deliver delivers the new and updated entries of a document. The feed need not be subscribed to;
// Deliver does not subscribe.
func (r *Runner) Deliver(ctx context.Context, doc Document) (out stage.Result, err error) {
	feed, err := r.parse(doc.Body, cmp.Or(doc.URL, doc.ID), doc.ContentType, textproto.MIMEHeader{})
	if err != nil {
		return out, err
	}
	r.warn(feedurl.Public(doc.ID), feed)
	if doc.DryRun {
		r.report.Info("%s: a feed of %s; nothing was delivered", doc.ID, humanize.Count(len(feed.Entries), "entry"))
		return out, nil
	}
	s, err := r.open(ctx, lektordir.FeedHash(doc.ID), true)
	if err != nil {
		return out, err
	}
	defer s.Close()
	if err := s.describe(feed, doc.ID, doc.Name); err != nil {
		return out, err
	}
	return s.deliver(s.stage(ctx, feed, nil))
}

// Put delivers one entry, which is identified by its id alone. It returns the path, relative to the
// lektor-dir, of the delivered version, or of the version that exists already. The path is empty if
// that version was removed.
func (r *Runner) Put(ctx context.Context, feedID, feedName string, e feedconv.Entry) (path string, out stage.Result,
	err error) {
	s, err := r.open(ctx, lektordir.FeedHash(feedID), true)
	if err != nil {
		return "", out, err
	}
	defer s.Close()
	policy := s.st.Settings.OnUpdate()
	old, _ := r.Dir.ReadFeed(s.hash)
	if old == nil {
		old = &lektordir.Feed{}
	}
	old.ID = feedID
	name := subscriptions.DefaultName(feedID)
	// A power cut may have truncated the name that an earlier put wrote.
	if oldName := feedfiles.OneField(old.Name); !strings.HasPrefix(name, oldName) {
		name = oldName
	}
	old.Name = cmp.Or(feedfiles.OneField(feedName), name)
	if err := s.txn.PutFeed(old.Files()); err != nil {
		return "", out, err
	}
	out, err = s.deliver(feedstage.Put(ctx, s.txn, e, policy))
	if err != nil {
		return "", out, err
	}
	if uniques := append(out.New, out.Updated...); len(uniques) > 0 {
		return lektordir.Ref{Feed: s.hash, Unique: uniques[len(uniques)-1]}.Path(), out, nil
	}
	return s.txn.Find(ctx, e.GUID), out, nil
}

// deliver commits the staged entries at once, unless err is not nil, and returns the entries that
// were delivered.
func (s *lockedFeed) deliver(staged stage.Result, err error) (stage.Result, error) {
	if err != nil {
		return staged, err
	}
	s.r.hook("staged")
	if err := s.commit(s.r.Writer.Flush); err != nil {
		return staged, err
	}
	return s.txn.Outcome(staged), nil
}
