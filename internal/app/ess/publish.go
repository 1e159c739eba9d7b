package ess

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/dir/entryname"
	"github.com/lektordir/lektor/internal/files/atomicfile"
	"github.com/lektordir/lektor/internal/protocol/ess"
	"github.com/lektordir/lektor/internal/read/entrystore"
	"github.com/lektordir/lektor/internal/text/feedurl"
	"github.com/lektordir/lektor/internal/text/humanize"
	"github.com/lektordir/lektor/internal/text/termsafe"
	"github.com/lektordir/lektor/lektordir"
)

// The icons of the formats, of our own design: square, on a grid of 16 pixels. The one of
// ESS shows lines of decreasing length and a comma, the one of NNO an outline.
var (
	//go:embed icons/ess.svg
	essIcon []byte
	//go:embed icons/nno.svg
	nnoIcon []byte
)

// The files of a published directory. Each feed also has a file $feed.ess.
const (
	indexFile   = "index.html"
	nnoFile     = "feeds.nno"
	essIconFile = "ess.svg"
	nnoIconFile = "nno.svg"
)

// PublishOptions are the options of [Publish].
type PublishOptions struct {
	Common
	Selection
	To      string // directory to write to, created if missing
	BaseURL string // URL of the directory, for absolute links; "" for relative ones
	N       int    // maximum of entries in an ESS; 0 for all
	Newest  int    // maximum of entries in the NNO; 0 for all
	Title   string // title of the index page
	DryRun  bool   // only print a summary
}

// publisher is a run of Publish.
type publisher struct {
	*store
	o                      PublishOptions
	base                   *url.URL // base of absolute links; empty for relative ones
	page                   indexPage
	keep                   map[string]bool // documents that are not removed
	written, same, removed int
}

// Publish writes static files for a web server: an ESS document for each feed, the NNO,
// their icons, and an index page with autodiscovery links (section "ESS and NNO
// autodiscovery"). Each file is replaced atomically if its content has changed. A document
// with the same entries keeps its build time. Documents of other feeds are removed.
func Publish(ctx context.Context, o PublishOptions, s *cmdline.Streams) error {
	base, err := baseURL(o.BaseURL)
	if err != nil {
		return err
	}
	st, err := o.open(s)
	if err != nil {
		return err
	}
	p := &publisher{store: st, o: o, base: base, keep: map[string]bool{}}
	if !o.DryRun {
		if err := os.MkdirAll(o.To, 0o777); err != nil {
			return err
		}
	}
	selected, failed, err := st.feeds(ctx, o.Selection)
	if failed || err != nil {
		return cmp.Or[error](err, errReported)
	}
	var items []*entrystore.Record
	if len(selected) > 0 { // without feeds, list would list all
		if items, err = st.list(ctx, lektordir.ListOptions{Feeds: selected, SkipTrashed: true, Strict: true},
			itemFields); err != nil {
			return err
		}
	}
	byFeed := map[string][]ess.Entry{}
	for _, it := range items {
		byFeed[it.Ref.Feed] = append(byFeed[it.Ref.Feed], entryOf(it))
	}
	if !o.DryRun {
		p.sweep(selected)
	}
	for _, hash := range selected {
		if err := p.feed(hash, byFeed[hash]); err != nil {
			return err
		}
	}
	if err := p.document(nnoFile, ess.AppendNNO(nil, o.build(), st.newestEntries(items, o.Newest))); err != nil {
		return err
	}
	// The index comes last, when all linked files exist.
	if err := errors.Join(p.file(essIconFile, essIcon), p.file(nnoIconFile, nnoIcon), p.index()); err != nil {
		return err
	}
	if err := p.remove(); err != nil {
		return err
	}
	s.Report.Info("%s: %s written, %d unchanged, %d removed", humanize.Count(len(p.page.Feeds), "feed"),
		humanize.Count(p.written, "file"), p.same, p.removed)
	return nil
}

// baseURL parses the URL of the directory. For "" it returns an empty one, so that links are relative.
func baseURL(text string) (*url.URL, error) {
	base, err := url.Parse(text)
	if text == "" {
		return base, nil
	}
	if err != nil || !feedurl.IsHTTP(text) || base.Host == "" {
		return nil, cmdline.Usagef("--base-url %s: not an http URL", feedurl.Public(text))
	}
	base.User = nil // the documents are public
	if !strings.HasSuffix(base.Path, "/") {
		base = base.JoinPath("/")
	}
	return base, nil
}

// feed writes the document of a feed, and adds it to the index.
func (p *publisher) feed(hash string, entries []ess.Entry) error {
	name := hash + ".ess"
	f, err := p.Dir.ReadFeed(hash)
	if err != nil {
		// A feed that cannot be read now still exists.
		p.Report(err)
		p.keep[name] = !errors.Is(err, fs.ErrNotExist)
		return nil
	}
	feedURL := documentURL(f)
	if feedURL == "" {
		return nil
	}
	p.keep[name] = true
	p.page.Feeds = append(p.page.Feeds, indexFeed{
		Title: cmp.Or(strings.TrimSpace(termsafe.Line(feedurl.RedactText(f.Name))), feedURL), URL: feedURL,
		Link: feedurl.Web(feedurl.Public(f.Link)), ESS: p.link(name), Type: feedType(feedURL),
	})
	return p.document(name, ess.AppendESS(nil, p.o.build(), feedURL, newest(entries, p.o.N, time.Time{})))
}

// index writes the index page.
func (p *publisher) index() error {
	p.page.Title, p.page.NNO = cmp.Or(p.o.Title, "Feeds"), p.link(nnoFile)
	p.page.ESSIcon, p.page.NNOIcon = p.link(essIconFile), p.link(nnoIconFile)
	slices.SortStableFunc(p.page.Feeds, func(a, b indexFeed) int {
		return cmp.Or(strings.Compare(strings.ToLower(a.Title), strings.ToLower(b.Title)),
			strings.Compare(a.URL, b.URL))
	})
	var html bytes.Buffer
	if err := indexTemplate().Execute(&html, p.page); err != nil {
		return err
	}
	return p.file(indexFile, html.Bytes())
}

// document writes a document, unless the existing one has the same entries.
func (p *publisher) document(name string, data []byte) error {
	old, err := atomicfile.Read(filepath.Join(p.o.To, name), maxDocument)
	if err == nil {
		a, aerr := ess.Decode(old, nil)
		b, berr := ess.Decode(data, nil)
		if aerr == nil && berr == nil && a.URL == b.URL && slices.Equal(a.Entries, b.Entries) &&
			!a.Build.After(b.Build) {
			p.same++
			return nil
		}
	}
	return p.file(name, data)
}

// file writes a file, unless it exists with the same content.
func (p *publisher) file(name string, data []byte) error {
	path := filepath.Join(p.o.To, name)
	if old, err := atomicfile.Read(path, maxDocument); err == nil && bytes.Equal(old, data) {
		p.same++
		return nil
	}
	p.written++
	if p.o.DryRun {
		_, err := fmt.Fprintln(p.S.Out, path)
		return err
	}
	return atomicfile.WriteUnsynced(path, data)
}

// sweep removes temporary files of killed runs.
func (p *publisher) sweep(selected []string) {
	var paths []string
	for _, name := range []string{indexFile, nnoFile, essIconFile, nnoIconFile} {
		paths = append(paths, filepath.Join(p.o.To, name))
	}
	for _, hash := range selected {
		paths = append(paths, filepath.Join(p.o.To, hash+".ess"))
	}
	atomicfile.Sweep(paths...)
}

// remove removes the documents of feeds that are no longer published.
func (p *publisher) remove() error {
	names, err := atomicfile.Optional(os.ReadDir(p.o.To))
	for _, n := range names {
		hash, isESS := strings.CutSuffix(n.Name(), ".ess")
		if !isESS || !entryname.IsFeedHash(hash) || p.keep[n.Name()] {
			continue
		}
		p.removed++
		if !p.o.DryRun {
			err = errors.Join(err, os.Remove(filepath.Join(p.o.To, n.Name())))
		}
	}
	return err
}

// link returns a link to a file of the directory.
func (p *publisher) link(name string) string { return p.base.JoinPath(name).String() }

// feedType guesses the MIME type of a feed for the autodiscovery link. The lektor-dir does
// not store it, and feed readers do not rely on it.
func feedType(url string) string {
	path, _, _ := strings.Cut(strings.ToLower(url), "?")
	switch {
	case strings.HasSuffix(path, ".json"):
		return "application/feed+json"
	case strings.Contains(path, "atom"):
		return "application/atom+xml"
	}
	return "application/rss+xml"
}

type indexPage struct {
	Title, NNO, ESSIcon, NNOIcon string
	Feeds                        []indexFeed
}

type indexFeed struct {
	Title, URL, Link, ESS, Type string
}

//go:embed index.html.tmpl
var indexSource string

var indexTemplate = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("index").Parse(indexSource))
})
