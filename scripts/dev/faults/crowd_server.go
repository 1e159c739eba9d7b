//go:build linux && (amd64 || arm64)

package main

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"html"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/lektordir/lektor/internal/testkit/testdir"
)

// These are the settings on-update of feeds.
const unread, deliver, ignore = "unread", "deliver", "ignore"

// version is a version of an entry of a feed.
type version struct{ entry, number int }

// feed is a feed whose document gains and changes entries, with a record of the versions that
// fetchers got.
type feed struct {
	name, id, hash, policy string
	pulled                 bool // served, and subscribed to

	mu     sync.Mutex
	change int         // number of changes so far; the validator of the document
	doc    []*item     // in the document, oldest first
	latest map[int]int // by entry, its newest version
	served map[int][]version
	may    map[version]bool // versions offered to a fetcher
	must   map[version]bool // versions that a fetcher reported as delivered
}

// item is an entry in the document.
type item struct {
	version
	acked int // newest version that a fetcher reported as delivered
}

// mostItems is the number of entries in a document after which old ones leave it.
const mostItems = 30

func newFeed(name, id, policy string, pulled bool) *feed {
	return &feed{
		name: name, id: id, hash: testdir.Hash(id), policy: policy, pulled: pulled,
		latest: map[int]int{}, served: map[int][]version{}, may: map[version]bool{}, must: map[version]bool{},
	}
}

// grow changes the document: it adds an entry, or changes one. An entry leaves the document after
// a fetcher reported the delivery of its last version. Otherwise it would be unknown whether that
// version must be delivered.
func (f *feed) grow(rnd *rand.Rand) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.change++
	if len(f.doc) == 0 || rnd.IntN(2) == 0 {
		n := len(f.latest) + 1
		f.latest[n] = 1
		f.doc = append(f.doc, &item{version: version{n, 1}})
	} else {
		// Prefer the newest entries, which are still unread.
		it := f.doc[len(f.doc)-1-min(rnd.IntN(len(f.doc)), rnd.IntN(len(f.doc)))]
		it.number++
		f.latest[it.entry] = it.number
	}
	if len(f.doc) > mostItems && f.doc[0].acked == f.doc[0].number {
		f.doc = f.doc[1:]
	}
}

// document returns the document for a fetcher, and records its versions as offered.
func (f *feed) document() (text string, change int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var b strings.Builder
	fmt.Fprintf(&b,
		`<?xml version="1.0"?><rss version="2.0"><channel><title>Feed %s</title><link>http://feed.example/%s</link><description>A crowded feed</description>`, f.name, f.name)
	vs := make([]version, 0, len(f.doc))
	for _, it := range slices.Backward(f.doc) {
		v := it.version
		vs = append(vs, v)
		f.may[v] = true
		fmt.Fprintf(&b,
			"\n<item><title>%s</title><guid isPermaLink=\"false\">%s</guid><link>%s</link><pubDate>%s</pubDate><author>ann@example.com (Ann)</author>"+
				"<category>crowd</category><category>naïve</category><enclosure url=\"%s\" type=\"audio/mpeg\" length=\"%d\"/><description>%s</description></item>",
			f.title(v), f.guid(v), f.link(v), date(v).Format(time.RFC1123Z), f.enclosure(v), v.number,
			html.EscapeString(f.content(v)))
	}
	b.WriteString("</channel></rss>\n")
	f.served[f.change] = vs
	return b.String(), f.change
}

// delivered records that a fetcher reported the delivery of the document that it got after this
// number of changes.
func (f *feed) delivered(change int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	acked := map[int]int{}
	for _, v := range f.served[change] {
		f.must[v] = true
		acked[v.entry] = v.number
	}
	for _, it := range f.doc {
		it.acked = max(it.acked, acked[it.entry])
	}
}

// changed returns the number of changes so far.
func (f *feed) changed() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.change
}

// offer records that a fetcher gets a version of an entry outside of the document. take records
// its delivery.
func (f *feed) offer(v version) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.may[v] = true
}

func (f *feed) take(v version) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.must[v] = true
	f.latest[v.entry] = max(f.latest[v.entry], v.number)
}

// ServeHTTP serves the document. A request with a validator proves that its document was
// delivered, since a fetcher saves the validator only then.
func (f *feed) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if tag, err := strconv.Unquote(r.Header.Get("If-None-Match")); err == nil {
		if n, err := strconv.Atoi(tag); err == nil {
			f.delivered(n)
			if n == f.changed() {
				w.WriteHeader(http.StatusNotModified)
				return
			}
		}
	}
	text, change := f.document()
	w.Header().Set("Content-Type", "application/rss+xml")
	w.Header().Set("ETag", strconv.Quote(strconv.Itoa(change)))
	w.Write([]byte(text))
}

func (f *feed) title(v version) string {
	return fmt.Sprintf("Entry %d of %s, version %d", v.entry, f.name, v.number)
}
func (f *feed) guid(v version) string { return fmt.Sprintf("urn:crowd:%s:%d", f.name, v.entry) }
func (f *feed) link(v version) string {
	return fmt.Sprintf("http://feed.example/%s/%d", f.name, v.entry)
}
func (f *feed) enclosure(v version) string { return f.link(v) + ".mp3" }

// content has a different length in every version, so that a truncated one never equals another.
func (f *feed) content(v version) string {
	return fmt.Sprintf("<p>%s — 文</p><p>%send</p>", f.title(v), strings.Repeat("text &amp; more ", f.repeats(v)))
}

func (f *feed) repeats(v version) int { return (v.entry*37 + v.number*11) % 300 }

func date(v version) time.Time {
	return time.Date(2026, 1, 1, 0, v.entry, 0, 0, time.UTC)
}

// files returns the files that an entry must have in the lektor-dir.
func (f *feed) files(v version) map[string]string {
	return map[string]string{
		"title":   f.title(v) + "\n",
		"id":      f.guid(v) + "\n",
		"content": f.content(v),
		"author":  "Ann <ann@example.com>\n",
		"pubdate": date(v).Format(time.RFC3339) + "\n",
		"type":    "text/html\n",
		"feed":    "../../../src/" + f.hash,
		"extras": fmt.Sprintf("link\t%s\ncategory\tcrowd\ncategory\tnaïve\nenclosure\t%s\taudio/mpeg\t%d\n",
			f.link(v), f.enclosure(v), v.number),
	}
}

// digests returns the identity and the content digest of a version, as in a journal.
func (f *feed) digests(v version) (identity, content string) {
	text := fmt.Sprintf("%s — 文 %send", f.title(v), strings.Repeat("text & more ", f.repeats(v)))
	// The scheme of an enclosure does not count.
	return digest("guid", f.guid(v)), digest("content", f.title(v), f.link(v), text,
		strings.Replace(f.enclosure(v), "http://", "https://", 1))
}

// digest returns the first 64 bits of the SHA-256 of texts, each preceded by its length.
func digest(texts ...string) string {
	var b []byte
	for _, t := range texts {
		b = append(binary.BigEndian.AppendUint64(b, uint64(len(t))), t...)
	}
	return fmt.Sprintf("%.8x", sha256.Sum256(b))
}

// feeds are all feeds of a run. Pulled ones are served.
type feeds struct {
	server *httptest.Server
	all    []*feed
	put    *feed
}

// serveFeeds starts the server.
func serveFeeds() *feeds {
	mux := http.NewServeMux()
	fs := &feeds{server: httptest.NewServer(mux)}
	for i, policy := range []string{unread, unread, unread, deliver, deliver, ignore} {
		name := fmt.Sprintf("%s%d", policy, i)
		f := newFeed(name, fs.server.URL+"/"+name, policy, true)
		mux.Handle("/"+name, f)
		fs.all = append(fs.all, f)
	}
	for _, policy := range []string{unread, deliver, ignore} {
		fs.all = append(fs.all, newFeed("piped-"+policy, "urn:crowd:piped-"+policy, policy, false))
	}
	fs.put = newFeed("put", "urn:crowd:put", unread, false)
	fs.all = append(fs.all, fs.put)
	return fs
}
