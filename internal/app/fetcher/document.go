package fetcher

import (
	"bytes"
	"context"
	"errors"
	"net/textproto"
	"net/url"
	"runtime"
	"slices"

	"golang.org/x/sync/semaphore"

	"github.com/lektordir/lektor/feedconv"
	"github.com/lektordir/lektor/internal/feeds/feedfiles"
	"github.com/lektordir/lektor/internal/http/httpmsg"
	"github.com/lektordir/lektor/internal/protocol/rfc5005"
	"github.com/lektordir/lektor/internal/protocol/websub"
	"github.com/lektordir/lektor/internal/text/feedurl"
	"github.com/lektordir/lektor/internal/text/humanize"
)

// bigDocument is the size in bytes from which a document is parsed alone.
const bigDocument = 1 << 20

var gzipMagic = []byte{0x1f, 0x8b}

// parser limits how many documents are parsed at the same time. Their parsed trees take most of the
// memory, and more parsers than processors would not be faster.
type parser struct {
	places *semaphore.Weighted
	total  int64 // number of places
}

func newParser() parser {
	all := int64(max(2, runtime.GOMAXPROCS(0)) + 1)
	return parser{semaphore.NewWeighted(all), all}
}

// waitForPlace waits until a document could be parsed. As requests wait for a place before they begin,
// unparsed documents do not pile up: each running request adds at most one.
func (p *parser) waitForPlace(ctx context.Context) error {
	if err := p.places.Acquire(ctx, 1); err != nil {
		return context.Cause(ctx)
	}
	p.places.Release(1)
	return nil
}

// withPlace calls read, which parses doc, when memory for the parsed document is available.
func (p *parser) withPlace(ctx context.Context, doc []byte, read func() error) error {
	weight := int64(1)
	// The decompressed size is unknown.
	if len(doc) > bigDocument || bytes.HasPrefix(doc, gzipMagic) {
		weight = p.total
	}
	if err := p.places.Acquire(ctx, weight); err != nil {
		return context.Cause(ctx)
	}
	defer p.places.Release(weight)
	return read()
}

// ask requests a document that another document of the feed names. own is the request for the
// feed's own document; its header is sent only if req has the same origin.
func (s *lockedFeed) ask(ctx context.Context, own, req *httpmsg.Request) (*httpmsg.Response, error) {
	if rfc5005.SameOrigin(own.URL, req.URL) {
		req.Header = own.Header
		req.URL = as(own.URL, req.URL)
	}
	if err := s.r.parser.waitForPlace(ctx); err != nil {
		return nil, err
	}
	resp, err := s.r.Client.Get(ctx, req)
	if err == nil && resp.Truncated {
		return nil, errTruncated
	}
	return resp, err
}

var errTruncated = errors.New("the document was cut off, or its end is missing")

// as returns raw with the user and password of owner, a URL of the same origin.
func as(owner, raw string) string {
	o, oerr := url.Parse(owner)
	u, err := url.Parse(raw)
	if oerr != nil || err != nil || o.User == nil {
		return raw
	}
	u.User = o.User
	return u.String()
}

// document parses doc, the filtered body of resp. req is the request for the feed.
func (s *lockedFeed) document(doc []byte, req *httpmsg.Request, resp *httpmsg.Response) (*feedconv.Feed, error) {
	feed, err := s.parse(doc, resp.FinalURL, resp.Header)
	if err != nil {
		return nil, err
	}
	// The end of the document is missing. Without a Content-Length, the transfer may have been cut
	// off: deliver the entries that arrived, and request the whole document again next time.
	if feed.Truncated && resp.Header.Get("Content-Length") == "" {
		resp.Truncated = true
	}
	resp.Short = limited(feed) >= 0
	s.r.warn(feedurl.Public(req.URL), feed)
	return feed, nil
}

// filtered returns the output of the feed's filter for doc, or doc if the feed has no filter. The
// filter does not run in the [parser.withPlace] of doc, as it may be slow, and its output may be
// larger than doc.
func (s *lockedFeed) filtered(ctx context.Context, feedURL string, doc []byte) (out []byte, err error) {
	filter := s.st.Settings.Filter()
	if filter == "" {
		return doc, nil
	}
	err = s.r.parser.withPlace(ctx, nil, func() error {
		out, err = s.r.Client.Filter(ctx, filter, doc, s.env(feedURL)...)
		return err
	})
	return out, err
}

// parse parses doc, which filtered returned. url and h are its URL and response header.
func (s *lockedFeed) parse(doc []byte, url string, h textproto.MIMEHeader) (*feedconv.Feed, error) {
	contentType := h.Get("Content-Type")
	if s.st.Settings.Filter() != "" {
		contentType = ""
	}
	return s.r.parse(doc, url, contentType, h)
}

// trusted returns an error if the feed has a filter that other users may have written.
func (s *lockedFeed) trusted() error {
	if s.st.Settings.Filter() == "" {
		return nil
	}
	return feedfiles.Trusted(s.r.Dir, s.hash, "filter")
}

// env returns environment variables for the commands of a feed: its URL without a password, its
// name below src/, and the lektor-dir.
func (s *lockedFeed) env(url string) []string {
	return []string{"LEKTOR_URL=" + feedurl.Public(url), "LEKTOR_FEED=" + s.hash, "LEKTOR_DIR=" + s.r.Dir.Path()}
}

// parse parses a document.
func (r *Runner) parse(doc []byte, url, contentType string, h textproto.MIMEHeader) (*feedconv.Feed, error) {
	feed, err := feedconv.ParseBytes(doc, feedconv.Options{
		URL: url, ContentType: contentType,
		ContentLocation: h.Get("Content-Location"), ContentLanguage: h.Get("Content-Language"),
		MaxBytes: r.opts.Fetch.MaxDecoded, MaxEntries: r.opts.MaxEntries,
	})
	if limit, ok := errors.AsType[*feedconv.LimitError](err); ok {
		err = &httpmsg.LimitError{URL: feedurl.Public(url), Limit: limit.Limit, Max: limit.Max,
			Flag: httpmsg.FlagMaxDecoded}
	}
	if feed != nil {
		// WebSub subscribers look for hubs in the header first.
		feed.Links = websub.Links(h, url, feed.Links)
	}
	return feed, err
}

// limited returns the index of the first warning about a limit that can be raised, or -1.
func limited(feed *feedconv.Feed) int {
	return slices.IndexFunc(feed.Warnings, func(w feedconv.Warning) bool { return w.Limit != "" })
}

// warn reports the defects of a document in one line. If there are several, it names the one that
// the user can mend with a flag.
func (r *Runner) warn(name string, feed *feedconv.Feed) {
	if len(feed.Warnings) == 0 {
		return
	}
	i := limited(feed)
	text := feed.Warnings[max(0, i)].String()
	if i >= 0 {
		text += "; --" + FlagMaxEntries + " raises the limit"
	}
	if n := len(feed.Warnings); n > 1 {
		text += " (and " + humanize.Count(n-1, "more defect") + ")"
	}
	r.report.Warn("%s: %s", name, text)
}
