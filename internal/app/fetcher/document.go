package fetcher

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/url"
	"runtime"
	"slices"

	"golang.org/x/sync/semaphore"

	"github.com/lektordir/lektor/feedconv"
	"github.com/lektordir/lektor/internal/feeddir"
	"github.com/lektordir/lektor/internal/fetch"
	"github.com/lektordir/lektor/internal/history"
	"github.com/lektordir/lektor/internal/units"
	"github.com/lektordir/lektor/internal/websub"
)

// bigDocument is the size from which a document is parsed alone.
const bigDocument = 1 << 20

var gzipMagic = []byte{0x1f, 0x8b}

// parser parses documents, some at a time: the trees that they become are the greater part
// of the memory, and more at once than there are processors gain nothing.
type parser struct {
	places     *semaphore.Weighted
	all        int64 // number of places
	maxDecoded int64 // bytes
	maxEntries int
	report     Reporter
}

func newParser(o Options, report Reporter) parser {
	all := int64(max(2, runtime.GOMAXPROCS(0)) + 1)
	return parser{semaphore.NewWeighted(all), all, o.Fetch.MaxDecoded, o.MaxEntries, report}
}

// room waits until a document could be parsed. No request begins before, so documents that
// wait to be parsed do not pile up: each request under way brings one at most.
func (p *parser) room(ctx context.Context) error {
	if err := p.places.Acquire(ctx, 1); err != nil {
		return context.Cause(ctx)
	}
	p.places.Release(1)
	return nil
}

// reading calls read, which parses a document, when there is room for what the document
// grows to.
func (p *parser) reading(ctx context.Context, doc []byte, read func() error) error {
	weight := int64(1)
	// The size of a compressed document is not known before it is read.
	if len(doc) > bigDocument || bytes.HasPrefix(doc, gzipMagic) {
		weight = p.all
	}
	if err := p.places.Acquire(ctx, weight); err != nil {
		return context.Cause(ctx)
	}
	defer p.places.Release(weight)
	return read()
}

// ask asks for a document that another one of the feed names. The headers of
// the request own, for the feed's own document, go to its server alone.
func (s *session) ask(ctx context.Context, own, req *fetch.Request) (*fetch.Response, error) {
	if history.SameOrigin(own.URL, req.URL) {
		req.Header = own.Header
		req.URL = as(own.URL, req.URL)
	}
	if err := s.r.parser.room(ctx); err != nil {
		return nil, err
	}
	resp, err := s.r.Client.Get(ctx, req)
	if err == nil && resp.Truncated {
		return nil, errTruncated
	}
	return resp, err
}

var errTruncated = errors.New("the document was cut off, or its end is missing")

// as returns a URL with the user and password of another one of its origin.
func as(owner, raw string) string {
	o, oerr := url.Parse(owner)
	u, err := url.Parse(raw)
	if oerr != nil || err != nil || o.User == nil {
		return raw
	}
	u.User = o.User
	return u.String()
}

// document parses doc, which filtered returned for the answer to a request for the feed.
func (s *session) document(doc []byte, req *fetch.Request, resp *fetch.Response) (*feedconv.Feed, error) {
	feed, err := s.parse(doc, resp.FinalURL, resp.Header)
	if err != nil {
		return nil, err
	}
	// The end of the document is missing. If the server did not say how long
	// it is, that may have happened on the way: the entries that came are delivered,
	// and the rest must come by the next request.
	if feed.Truncated && resp.Header.Get("Content-Length") == "" {
		resp.Truncated = true
	}
	resp.Short = limited(feed) >= 0
	s.r.parser.warn(fetch.Public(req.URL), feed)
	return feed, nil
}

// filtered returns what the filter of the feed at feedURL makes of a document, and the
// document if the feed has no filter. A filter is not run in [parser.reading] of its
// document: it may be slow, and write more than it reads.
func (s *session) filtered(ctx context.Context, feedURL string, doc []byte) (out []byte, err error) {
	filter := s.st.Filter()
	if filter == "" {
		return doc, nil
	}
	err = s.r.parser.reading(ctx, nil, func() error {
		out, err = s.r.Client.Filter(ctx, filter, doc, s.env(feedURL)...)
		return err
	})
	return out, err
}

// parse parses a document that filtered returned. It is from url, with the header h.
func (s *session) parse(doc []byte, url string, h http.Header) (*feedconv.Feed, error) {
	contentType := h.Get("Content-Type")
	if s.st.Filter() != "" {
		contentType = ""
	}
	return s.r.parser.read(doc, url, contentType, h)
}

// trusted is the error for a filter of the feed that others may have written.
func (s *session) trusted() error {
	if s.st.Filter() == "" {
		return nil
	}
	return feeddir.Trusted(s.r.Dir, s.hash, "filter")
}

// env is what the commands of a feed find in their environment: its URL, without a
// password, its name below src/, and the lektor-dir.
func (s *session) env(url string) []string {
	return []string{"LEKTOR_URL=" + fetch.Public(url), "LEKTOR_FEED=" + s.hash, "LEKTOR_DIR=" + s.r.Dir.Path()}
}

// read reads a document.
func (p *parser) read(doc []byte, url, contentType string, h http.Header) (*feedconv.Feed, error) {
	feed, err := feedconv.ParseBytes(doc, feedconv.Options{
		URL: url, ContentType: contentType,
		ContentLocation: h.Get("Content-Location"), ContentLanguage: h.Get("Content-Language"),
		MaxBytes: p.maxDecoded, MaxEntries: p.maxEntries,
	})
	if limit, ok := errors.AsType[*feedconv.LimitError](err); ok {
		err = &fetch.LimitError{URL: fetch.Public(url), Limit: limit.Limit, Max: limit.Max, Flag: fetch.FlagMaxDecoded}
	}
	if feed != nil {
		// WebSub has subscribers look for hubs in the header first.
		feed.Links = websub.Links(h, url, feed.Links)
	}
	return feed, err
}

// limited returns the index of the first warning of a limit that can be raised, -1 for
// none.
func limited(feed *feedconv.Feed) int {
	return slices.IndexFunc(feed.Warnings, func(w feedconv.Warning) bool { return w.Limit != "" })
}

// warn says what was wrong with a document, in one line. If there are several
// defects, it names the one that the user can do something about.
func (p *parser) warn(name string, feed *feedconv.Feed) {
	if len(feed.Warnings) == 0 {
		return
	}
	i := limited(feed)
	text := feed.Warnings[max(0, i)].String()
	if i >= 0 {
		text += "; --" + FlagMaxEntries + " raises the limit"
	}
	if n := len(feed.Warnings); n > 1 {
		text += " (and " + units.Count(n-1, "more defect") + ")"
	}
	p.report.Warn("%s: %s", name, text)
}
