//go:build linux

package main

import (
	"bytes"
	"fmt"
	"html"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/lektordir/lektor/internal/testkit/must"
)

// origin serves generated feeds, each at a separate address, and counts the answers.
type origin struct {
	*http.Server
	urls      []string
	documents map[string]*document // by address and port
	mu        sync.Mutex
	responses map[int]int
}

// document is a feed. It is made in advance, since the server must not slow down the measurement.
type document struct {
	etag, contentType string
	text              []byte
}

func serve(feeds, entries, size int) *origin {
	s := &origin{responses: map[int]int{}, documents: map[string]*document{}}
	s.Server = &http.Server{Handler: s}
	// One listener for all addresses is the cheapest for the server.
	l := must.Get(net.Listen("tcp4", ":0"))
	for i := range feeds {
		host := fmt.Sprintf("127.7.%d.%d:%d", i/250, i%250+1, l.Addr().(*net.TCPAddr).Port)
		s.documents[host] = generate(i, entries, size)
		s.urls = append(s.urls, "http://"+host+"/feed.xml")
	}
	go s.Serve(l)
	return s
}

func (s *origin) reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.responses)
}

// answers lists the answers since the last reset: "500 × 200".
func (s *origin) answers() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	for status, n := range s.responses {
		out = append(out, fmt.Sprintf("%d × %d", n, status))
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

func (s *origin) count(status int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.responses[status]++
}

// counted counts the status of an answer.
type counted struct {
	http.ResponseWriter
	origin *origin
}

func (c counted) WriteHeader(status int) {
	c.origin.count(status)
	c.ResponseWriter.WriteHeader(status)
}

// ServeHTTP serves the feed of the address, conditionally.
func (s *origin) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	doc := s.documents[r.Host]
	if doc == nil || r.URL.Path != "/feed.xml" {
		http.NotFound(counted{w, s}, r)
		return
	}
	w.Header()["Date"] = nil // a fetcher would store the server's time
	w.Header().Set("ETag", doc.etag)
	w.Header().Set("Content-Type", doc.contentType)
	http.ServeContent(counted{w, s}, r, "", newest, bytes.NewReader(doc.text))
}

// generate makes feed number i: RSS 2.0 and Atom in turn, from a fixed seed.
func generate(i, entries, size int) *document {
	c := newCorpus(uint64(i))
	head, item, tail := `<?xml version="1.0"?>
<rss version="2.0"><channel><title>Feed %d</title><link>%s</link><description>Number</description>`+"\n",
		"<item><title>%s</title><link>%s</link><guid>%[2]s</guid><pubDate>%s</pubDate><description>%s</description></item>\n", "</channel></rss>\n"
	contentType, layout := "application/rss+xml", time.RFC1123Z
	if i%2 == 1 {
		head, item, tail = `<?xml version="1.0" encoding="utf-8"?>
<feed xmlns="http://www.w3.org/2005/Atom"><title>Feed %d</title><id>%s</id><updated>2026-01-01T12:00:00Z</updated>`+"\n",
			"<entry><title>%s</title><id>%s</id><link href=\"%[2]s\"/><author><name>An author</name></author><updated>%s</updated><content type=\"html\">%s</content></entry>\n", "</feed>\n"
		contentType, layout = "application/atom+xml", time.RFC3339
	}
	doc := fmt.Appendf(nil, head, i, feedID(i))
	for n := range entries {
		date := newest.Add(-time.Duration(n*entries+i) * time.Minute)
		doc = fmt.Appendf(doc, item, html.EscapeString(c.title(n)), fmt.Sprint(feedID(i), n), date.Format(layout),
			html.EscapeString(c.body(n, size)))
	}
	return &document{fmt.Sprintf(`"bench-%d"`, i), contentType, append(doc, tail...)}
}
