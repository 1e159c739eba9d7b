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

	"github.com/lektordir/lektor/internal/atomicfile"
	"github.com/lektordir/lektor/internal/command"
	"github.com/lektordir/lektor/internal/ess"
	"github.com/lektordir/lektor/internal/fetch"
	"github.com/lektordir/lektor/internal/lazy"
	"github.com/lektordir/lektor/internal/redact"
	"github.com/lektordir/lektor/internal/termsafe"
	"github.com/lektordir/lektor/internal/units"
	"github.com/lektordir/lektor/lektordir"
)

// The icons of the formats, of our own design: square, and on the grid of 16
// pixels. ESS are lines that get ever shorter, and a comma; NNO is an outline.
var (
	//go:embed icons/ess.svg
	essIcon []byte
	//go:embed icons/nno.svg
	nnoIcon []byte
)

// The files of a published directory, beside $feed.ess for each feed.
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
	To      string // directory to write to; made if need be
	BaseURL string // its URL, for absolute links; "" for relative ones
	N       int    // entries in an ESS; 0 for all
	Newest  int    // entries in the NNO; 0 for all
	Title   string // of the index page
	DryRun  bool   // only tell what would be written
}

// essFile is the name of a feed's document.
var essFile = lazy.Regexp(`^[0-9a-f]{40}\.ess$`)

// publisher is a run of Publish.
type publisher struct {
	*store
	o                      PublishOptions
	written, same, removed int
}

// Publish writes static files for a web server: an ESS document for each feed,
// the NNO, their icons, and an index page with autodiscovery links (section
// "ESS and NNO autodiscovery"). Each file is replaced whole, and only where
// what it says has changed; a document with the same entries keeps its old
// build time. Documents of feeds that are gone are removed.
func Publish(ctx context.Context, o PublishOptions, s *command.Streams) error {
	var base *url.URL
	if o.BaseURL != "" {
		var err error
		if base, err = url.Parse(o.BaseURL); err != nil || !fetch.IsHTTP(o.BaseURL) || base.Host == "" {
			return command.Usagef("--base-url %s: it is no http URL", fetch.Public(o.BaseURL))
		}
		base.User = nil // everybody reads the documents
		if !strings.HasSuffix(base.Path, "/") {
			base = base.JoinPath("/")
		}
	}
	st, err := o.open(s)
	if err != nil {
		return err
	}
	p := &publisher{store: st, o: o}
	if !o.DryRun {
		if err := os.MkdirAll(o.To, 0o777); err != nil {
			return err
		}
	}
	selected, failed, err := st.feeds(ctx, o.Selection)
	if failed || err != nil {
		return cmp.Or[error](err, said)
	}
	var items []*item
	if len(selected) > 0 { // of none, list would list all
		if items, err = st.list(ctx, lektordir.ListOptions{Feeds: selected, SkipTrashed: true, Strict: true}, itemFields); err != nil {
			return err
		}
	}
	byFeed := map[string][]ess.Entry{}
	for _, it := range items {
		byFeed[it.Ref.Feed] = append(byFeed[it.Ref.Feed], it.ess())
	}
	if !o.DryRun {
		p.sweep(selected)
	}
	page := indexPage{Title: cmp.Or(o.Title, "Feeds"), NNO: link(base, nnoFile), ESSIcon: link(base, essIconFile), NNOIcon: link(base, nnoIconFile)}
	keep := map[string]bool{}
	for _, hash := range selected {
		name := hash + ".ess"
		f, err := st.Dir.ReadFeed(hash)
		if err != nil {
			// A feed that cannot be read now is not gone.
			st.Report(err)
			keep[name] = !errors.Is(err, fs.ErrNotExist)
			continue
		}
		feedURL := documentURL(f)
		if feedURL == "" {
			continue
		}
		keep[name] = true
		entries := newest(byFeed[f.Hash], o.N, time.Time{})
		if err := p.document(name, ess.AppendESS(nil, o.build(), feedURL, entries)); err != nil {
			return err
		}
		page.Feeds = append(page.Feeds, indexFeed{
			Title: cmp.Or(strings.TrimSpace(termsafe.Line(redact.Text(f.Name))), feedURL), URL: feedURL, Link: safeLink(fetch.Public(f.Link)), ESS: link(base, name), Type: feedType(feedURL),
		})
	}
	slices.SortStableFunc(page.Feeds, func(a, b indexFeed) int {
		return cmp.Or(strings.Compare(strings.ToLower(a.Title), strings.ToLower(b.Title)), strings.Compare(a.URL, b.URL))
	})
	if err := p.document(nnoFile, ess.AppendNNO(nil, o.build(), st.top(items, o.Newest))); err != nil {
		return err
	}
	var html bytes.Buffer
	if err := indexTemplate().Execute(&html, page); err != nil {
		return err
	}
	// The index goes last: all that it links to is there.
	if err := errors.Join(p.file(essIconFile, essIcon), p.file(nnoIconFile, nnoIcon), p.file(indexFile, html.Bytes())); err != nil {
		return err
	}
	if err := p.remove(keep); err != nil {
		return err
	}
	s.Report.Info("%s: %s written, %d unchanged, %d removed", units.Count(len(page.Feeds), "feed"), units.Count(p.written, "file"), p.same, p.removed)
	return nil
}

// document writes a document unless the one there has the same entries.
func (p *publisher) document(name string, data []byte) error {
	old, err := atomicfile.Read(filepath.Join(p.o.To, name), maxDocument)
	if err == nil {
		a, aerr := ess.Decode(old, nil)
		b, berr := ess.Decode(data, nil)
		if aerr == nil && berr == nil && a.URL == b.URL && slices.Equal(a.Entries, b.Entries) && !a.Build.After(b.Build) {
			p.same++
			return nil
		}
	}
	return p.file(name, data)
}

// file writes a file unless it is there already.
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

// sweep removes what kills have left of the files that are written.
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

// remove removes the documents of feeds that are gone, or not published any more.
func (p *publisher) remove(keep map[string]bool) error {
	names, err := os.ReadDir(p.o.To)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, n := range names {
		if !essFile().MatchString(n.Name()) || keep[n.Name()] {
			continue
		}
		p.removed++
		if !p.o.DryRun {
			err = errors.Join(err, os.Remove(filepath.Join(p.o.To, n.Name())))
		}
	}
	return err
}

// link gives the link to a file of the directory.
func link(base *url.URL, name string) string {
	if base == nil {
		return name
	}
	return base.JoinPath(name).String()
}

// safeLink passes on a stranger's link if a browser may follow it.
func safeLink(s string) string {
	if fetch.IsHTTP(s) {
		return s
	}
	return ""
}

// feedType guesses the MIME type of a feed, which the lektor-dir does not keep,
// for the autodiscovery link. What reads the link looks at the feed itself.
func feedType(url string) string {
	path := strings.ToLower(pathOf(url))
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
