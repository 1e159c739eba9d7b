package publish

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io/fs"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/lektordir/lektor/feedconv"
	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/protocol/archive"
	"github.com/lektordir/lektor/internal/read/entrystore"
	"github.com/lektordir/lektor/lektordir"
)

// archiver is a run that publishes an archived feed.
type archiver struct {
	*publisher
	*documents
	ledger *archive.Ledger
	there  map[int]bool // numbers of the archives in the directory
	pages  map[int]bool // numbers of pages from an earlier run with --paged
	list   []candidate  // oldest first
}

// archive publishes an archived feed. Documents are written in an order in which
// no link ever points to a missing document: archives, the subscription document, and then the
// link from each archive to the next. The next run completes an interrupted one.
func (p *publisher) archive(ctx context.Context, d *documents) error {
	a := &archiver{publisher: p, documents: d}
	if err := a.open(); err != nil {
		return err
	}
	return p.untilStable(ctx, func() error { return a.publish(ctx) })
}

// open reads the ledger and the names of the published documents.
func (a *archiver) open() (err error) {
	if a.there, err = a.found(archives); err != nil {
		return err
	}
	if a.pages, err = a.ownPages(); err != nil {
		return err
	}
	newest := 0
	for n := range a.there {
		newest = max(newest, n)
	}
	text, err := a.read(ledgerName)
	if err == nil {
		a.ledger, err = archive.Parse(text)
	}
	if lost := err; lost != nil {
		a.ledger = &archive.Ledger{Self: a.self.String(), Format: a.ext}
		if !errors.Is(lost, fs.ErrNotExist) {
			a.S.Report.Warn("%s: %v; it is rebuilt from the archives", a.documents.path(ledgerName), lost)
		}
		if err := a.recoverAll(); err != nil {
			return err
		}
	}
	if a.ledger.Format != a.ext || a.ledger.Self != a.self.String() {
		return cmdline.Hint(fmt.Errorf("%s has the archives of %s, in %s", a.dir, a.ledger.Self, a.ledger.Format),
			"publish with that --self and --format, or to another directory: subscribers know archives by their URLs")
	}
	// A run was killed after it wrote these archives, and before it wrote the ledger.
	for n := a.ledger.Count + 1; n <= newest; n++ {
		if err := a.recover(n); err != nil {
			return err
		}
	}
	var lost []string
	for n := 1; n <= a.ledger.Count; n++ {
		if !a.there[n] {
			lost = append(lost, a.numbered(archives, n))
		}
	}
	if len(lost) > 0 {
		gone := "archive is"
		if len(lost) > 1 {
			gone = "archives are"
		}
		a.S.Report.Warn("%s: %d %s gone (%s): new subscribers get neither the entries in there nor those before them; put back what was removed", a.dir, len(lost), gone, brief(lost))
	}
	return nil
}

// brief returns the first three names.
func brief(names []string) string {
	if len(names) > 3 {
		return strings.Join(names[:3], ", ") + ", …"
	}
	return strings.Join(names, ", ")
}

// recoverAll rebuilds the ledger from the documents.
func (a *archiver) recoverAll() error {
	for _, n := range slices.Sorted(maps.Keys(a.there)) {
		if err := a.recover(n); err != nil {
			return err
		}
	}
	data, err := a.read(a.name)
	if err != nil {
		return nil // this run writes it
	}
	doc, err := archive.Read(data)
	if err != nil {
		return nil
	}
	a.ledger.RecoverSubscription(a.number(doc.Links["prev-archive"]), doc.Entries)
	return nil
}

// number returns the number of the archive at a URL, 0 if it is not an archive of this feed.
func (a *archiver) number(link string) int {
	u, err := url.Parse(link)
	if err != nil {
		return 0
	}
	name := u.Path[strings.LastIndexByte(u.Path, '/')+1:]
	n := 0
	if _, err := fmt.Sscanf(name, archives+"-%d.", &n); err != nil || a.numbered(archives, n) != name {
		return 0
	}
	return n
}

// recover adds the entries of an archive to the ledger.
func (a *archiver) recover(n int) error {
	if !a.there[n] {
		return nil
	}
	name := a.numbered(archives, n)
	data, err := a.read(name)
	if err != nil {
		return err
	}
	doc, err := archive.Read(data)
	if err == nil && !doc.Archive {
		err = errors.New("it is not an archive")
	}
	if err != nil {
		return cmdline.Hint(fmt.Errorf("%s: %w", a.documents.path(name), err),
			"remove it if it was not published here, else put it back from a copy")
	}
	if current := doc.Links["current"]; current != a.ledger.Self {
		return cmdline.Hint(fmt.Errorf("%s is an archive of %s", a.documents.path(name),
			cmp.Or(current, "another feed")),
			"publish with that --self, or to another directory: subscribers know archives by their URLs")
	}
	a.ledger.Recover(n, doc.Entries)
	return nil
}

// publish writes the documents that changed.
func (a *archiver) publish(ctx context.Context) error {
	if err := a.prepare(ctx); err != nil {
		return err
	}
	list := make([]archive.Entry, len(a.list))
	for i, c := range a.list {
		list[i] = c.Entry
	}
	plan := a.ledger.Plan(list, a.o.PerPage)
	a.sweep()
	for _, of := range plan.Archives {
		if err := a.writeArchive(ctx, of); err != nil {
			return err
		}
		in := make([]archive.Entry, len(of))
		for k, i := range of {
			in[k] = list[i]
		}
		a.there[a.ledger.Archive(in)] = true
	}
	feed, err := a.subscription(ctx, plan.Subscription)
	if err != nil {
		return err
	}
	data, err := a.encode(feed, nil)
	if err != nil {
		return err
	}
	a.ledger.Subscribe(list, plan.Subscription)
	if err := a.put(ledgerName, a.ledger.Bytes()); err != nil {
		return err
	}
	if err := a.put(a.name, data); err != nil {
		return err
	}
	if err := a.linkNext(); err != nil {
		return err
	}
	return a.removePages(a.pages, 1)
}

// prepare reads the entries to publish, and sets their ids and dates of update.
func (a *archiver) prepare(ctx context.Context) (err error) {
	if a.list, err = a.candidates(ctx, a.ledger.Anew()); err != nil {
		return err
	}
	if err := a.whole(a.dir); err != nil {
		return err
	}
	want := make([]archive.Candidate, len(a.list))
	for i := range a.list {
		c := &a.list[i]
		u, err := url.Parse(c.ID)
		want[i] = archive.Candidate{
			Entry: c.Entry, Global: err == nil && u.Scheme != "",
			Else: func(id string) string { return a.otherID(c, id) },
		}
	}
	for i, id := range a.ledger.IDs(want) {
		a.list[i].ID = id
		a.list[i].Updated = a.ledger.Updated(a.list[i].Entry)
	}
	return nil
}

// origin returns the identity of an entry in its feed, which all its versions share.
func origin(r *entrystore.Record) archive.Origin {
	short := func(s string) string {
		return fmt.Sprintf("%.8x", sha256.Sum256([]byte(s)))
	}
	identity := r.Ref.Identity()
	if identity == "" {
		e := r.Get(lektordir.FieldID | lektordir.FieldLink)
		identity = short(e.ID + "\x00" + e.Link)
	}
	return archive.Origin{Feed: short(r.Ref.Feed), Entry: identity}
}

// digest returns a hash, in hexadecimal, of an entry's own fields, in which versions of it
// differ. Fields from its feed do not count: renaming a feed changes no entry.
func digest(r *entrystore.Record, e *feedconv.Entry) string {
	h := sha256.New()
	own := r.Get(lektordir.FieldAuthor | lektordir.FieldPubDate | lektordir.FieldLanguage)
	add := func(name string, values ...string) { addTo(h, name, values) }
	add("title", e.Title)
	add("link", e.Link)
	add("content", e.Type, e.Content)
	add("summary", e.Summary)
	add("author", own.Author)
	add("contributors", people(e.Contributors)...)
	add("categories", e.Categories...)
	for _, c := range e.Terms {
		add("category", c.Name, c.Scheme, c.Label, c.Term)
	}
	for _, c := range e.Enclosures {
		add("enclosure", c.URL, c.Type, fmt.Sprint(c.Length))
	}
	for _, l := range e.Links {
		add("link "+l.Rel, l.URL, l.Type, l.Title)
	}
	for _, c := range e.InReplyTo {
		add("in-reply-to", c.Ref, c.URL, c.Type, c.Source)
	}
	add("rights", e.Rights)
	add("comments", e.Comments)
	add("image", e.Image)
	add("language", own.Language)
	if e.Duration != 0 || e.Episode != 0 || e.Season != 0 {
		add("podcast", e.Duration.String(), fmt.Sprint(e.Episode), fmt.Sprint(e.Season))
	}
	for _, c := range entrystore.Public(r.Get(lektordir.FieldElements)).Elements {
		add("element", c.Name, c.Text, fmt.Sprint(c.Attributes))
	}
	if !own.PubDate.IsZero() { // else it is that of the delivery
		add("dates", e.PubDate.UTC().Format(time.RFC3339Nano), e.Updated.UTC().Format(time.RFC3339Nano))
	}
	return fmt.Sprintf("%.16x", h.Sum(nil))
}

// addTo adds a field to a digest. An empty field adds nothing, so that fields
// of later versions do not change the digests of entries without them.
func addTo(h hash.Hash, name string, values []string) {
	if strings.Join(values, "") == "" {
		return
	}
	fmt.Fprintf(h, "%s %d\n", name, len(values))
	for _, v := range values {
		fmt.Fprintf(h, "%d %s\n", len(v), v)
	}
}

func people(list []feedconv.Person) []string {
	var out []string
	for _, p := range list {
		out = append(out, p.String())
	}
	return out
}

// printed returns the digest of the element of an entry, for a rebuilt ledger.
func (p *publisher) printed(e feedconv.Entry) string {
	doc, err := p.encode(&feedconv.Feed{Entries: []feedconv.Entry{e}}, nil)
	if err != nil {
		return ""
	}
	return archive.Printed(doc)
}

// gather reads the entries of a document again, newest first.
func (a *archiver) gather(ctx context.Context, of []int) ([]feedconv.Entry, error) {
	list := make([]candidate, len(of))
	// Sort them by date.
	for k, i := range slices.Sorted(slices.Values(of)) {
		list[k] = a.list[i]
	}
	return a.publisher.gather(ctx, list)
}

// writeArchive writes the next archive.
func (a *archiver) writeArchive(ctx context.Context, of []int) error {
	list, err := a.gather(ctx, of)
	if err != nil {
		return err
	}
	number := a.ledger.Count + 1
	name := a.numbered(archives, number)
	feed := &feedconv.Feed{
		ID: a.feed.ID, Title: a.feed.Title, Link: a.publisher.page(), Archive: true, Updated: newestOf(list),
		Entries: list,
		Links:   []feedconv.Link{{Rel: "self", URL: a.url(name)}, {Rel: "current", URL: a.feed.ID}},
	}
	a.elements(feed, a.list)
	a.linkPrevious(feed, number-1)
	data, err := a.encode(feed, nil)
	if err != nil {
		return err
	}
	// An archive never changes, so make sure that it can be read back.
	doc, err := archive.Read(data)
	if err != nil || !slices.EqualFunc(doc.Entries, list,
		func(a archive.Entry, b feedconv.Entry) bool { return a.ID == b.ID }) {
		return errors.Join(fmt.Errorf("%s: the new archive does not contain its entries", a.documents.path(name)), err)
	}
	return a.disk.write(a.documents.path(name), data)
}

// page returns the URL of the feed's page. RSS requires one, so its default is the feed's URL.
func (p *publisher) page() string {
	if p.format == feedconv.RSS20 {
		return cmp.Or(p.feed.Link, p.feed.ID)
	}
	return p.feed.Link
}

func (a *archiver) linkPrevious(feed *feedconv.Feed, number int) {
	if number > 0 {
		feed.Links = append(feed.Links, feedconv.Link{Rel: "prev-archive", URL: a.url(a.numbered(archives, number))})
	}
}

// subscription returns the subscription document.
func (a *archiver) subscription(ctx context.Context, of []int) (*feedconv.Feed, error) {
	list, err := a.gather(ctx, of)
	if err != nil {
		return nil, err
	}
	feed := a.feed
	a.elements(&feed, a.list)
	feed.Links = slices.Clone(feed.Links)
	feed.Entries, feed.Updated = list, newestOf(list)
	if len(list) == 0 {
		feed.Updated = a.ledger.Newest()
	}
	a.linkPrevious(&feed, a.ledger.Count)
	return &feed, nil
}

// linkNext adds to each archive the link to the next one. It begins with the oldest archive without
// that link, as it writes them in that order.
func (a *archiver) linkNext() error {
	var unlinked []int
	for n := a.ledger.Count - 1; n > 0; n-- {
		if !a.there[n] || !a.there[n+1] {
			continue
		}
		data, err := a.withNext(n)
		if err != nil {
			return err
		}
		if data == nil {
			break
		}
		unlinked = append(unlinked, n)
	}
	for _, n := range slices.Backward(unlinked) {
		data, err := a.withNext(n)
		if err == nil {
			err = a.disk.write(a.documents.path(a.numbered(archives, n)), data)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// withNext returns an archive with the link to the next one, nil if it has the link already.
func (a *archiver) withNext(n int) ([]byte, error) {
	name := a.numbered(archives, n)
	data, err := a.read(name)
	if err != nil {
		return nil, err
	}
	doc, err := archive.Read(data)
	if err == nil && doc.Links["next-archive"] != "" {
		return nil, nil
	}
	if err == nil {
		data, err = archive.WithNext(data, a.url(a.numbered(archives, n+1)))
	}
	if err != nil {
		return nil, cmdline.Hint(fmt.Errorf("%s: %w", a.documents.path(name), err),
			"put it back from a copy: an archive never changes")
	}
	return data, nil
}
