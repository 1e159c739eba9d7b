//go:build linux

package main

import (
	"bytes"
	"context"
	"fmt"
	"html"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lektordir/lektor/internal/testkit/must"
)

// origin serves generated feeds, each at an address of its own, and counts the answers.
type origin struct {
	urls []string

	documents map[string]*document // by address and port
	listener  net.Listener
	mu        sync.Mutex
	responses map[int]int
}

// document is a feed, made in advance: the reader is measured.
type document struct {
	etag            string
	ok, notModified []byte // answers
}

func serve(feeds, entries, size int) *origin {
	s := &origin{responses: map[int]int{}, documents: map[string]*document{}}
	// One listener for all addresses costs the server least.
	config := net.ListenConfig{KeepAlive: -1, Control: loopbackOnly}
	s.listener = must.Get(config.Listen(context.Background(), "tcp", "0.0.0.0:0"))
	port := s.listener.Addr().(*net.TCPAddr).Port
	for i := range feeds {
		host := fmt.Sprintf("127.7.%d.%d:%d", i/250, i%250+1, port)
		s.documents[host] = generate(i, entries, size)
		s.urls = append(s.urls, "http://"+host+"/feed.xml")
	}
	go func() {
		for {
			c, err := s.listener.Accept()
			if err != nil {
				return
			}
			go s.answer(c)
		}
	}()
	return s
}

// loopbackOnly lets a socket for all addresses hear of this machine alone, and of a
// connection when there is a request.
func loopbackOnly(_, _ string, c syscall.RawConn) error {
	var err error
	if cerr := c.Control(func(fd uintptr) {
		if err = unix.BindToDevice(int(fd), "lo"); err == nil {
			err = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_DEFER_ACCEPT, 5)
		}
	}); cerr != nil {
		return cerr
	}
	return err
}

func (s *origin) close() { s.listener.Close() }

func (s *origin) reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.responses)
}

// answers lists those given since the last reset: "500 × 200".
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

// answer answers the requests of a connection. The server has the processors in
// common with those who are measured, so it does no more than is asked for:
// net/http would take a quarter of the time in which lektor-fetch finds out that
// nothing is new.
func (s *origin) answer(c net.Conn) {
	defer c.Close()
	doc := s.documents[c.LocalAddr().String()]
	if doc == nil {
		return // a guest
	}
	in := make([]byte, 0, 2048)
	for {
		end := bytes.Index(in, []byte("\r\n\r\n"))
		if end < 0 {
			if len(in) == cap(in) {
				return
			}
			n, err := c.Read(in[len(in):cap(in)])
			if err != nil {
				return
			}
			in = in[:len(in)+n]
			continue
		}
		request, fields, _ := strings.Cut(string(in[:end]), "\r\n")
		in = in[:copy(in, in[end+4:])]
		var noneMatch, since string
		last := strings.HasSuffix(request, "HTTP/1.0")
		for line := range strings.SplitSeq(fields, "\r\n") {
			name, value, _ := strings.Cut(line, ":")
			value = strings.TrimSpace(value)
			switch {
			case strings.EqualFold(name, "If-None-Match"):
				noneMatch = value
			case strings.EqualFold(name, "If-Modified-Since"):
				since = value
			case strings.EqualFold(name, "Connection"):
				last = last || strings.EqualFold(value, "close")
			}
		}
		unchanged := noneMatch == doc.etag
		if noneMatch == "" && since != "" {
			t, err := http.ParseTime(since)
			unchanged = err == nil && !newest.After(t)
		}
		status, answer := http.StatusOK, doc.ok
		switch {
		case !strings.HasPrefix(request, "GET /feed.xml "):
			status, answer, last = http.StatusNotFound, []byte("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"), true
		case unchanged:
			status, answer = http.StatusNotModified, doc.notModified
		}
		s.count(status)
		if _, err := c.Write(answer); err != nil || last {
			return
		}
	}
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
		doc = fmt.Appendf(doc, item, html.EscapeString(c.title(n)), fmt.Sprint(feedID(i), n), date.Format(layout), html.EscapeString(c.body(n, size)))
	}
	doc = append(doc, tail...)
	etag := fmt.Sprintf(`"bench-%d"`, i)
	validators := fmt.Sprintf("ETag: %s\r\nLast-Modified: %s\r\n", etag, newest.Format(http.TimeFormat))
	return &document{
		etag:        etag,
		notModified: []byte("HTTP/1.1 304 Not Modified\r\n" + validators + "\r\n"),
		ok:          fmt.Appendf(nil, "HTTP/1.1 200 OK\r\n%sContent-Type: %s\r\nContent-Length: %d\r\n\r\n%s", validators, contentType, len(doc), doc),
	}
}
