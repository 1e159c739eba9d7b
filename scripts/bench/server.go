package main

import (
	"bytes"
	"context"
	"fmt"
	"html"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/lektordir/lektor/internal/testkit/must"
)

// origin serves generated feeds, each at an address of its own where the
// system has enough of them, and counts the answers.
type origin struct {
	urls []string

	documents map[string]*document // by address and port
	listeners []net.Listener
	mu        sync.Mutex
	responses map[int]int
}

// document is a feed, made in advance: what is measured is the reader.
type document struct {
	contentType     string
	etag            string
	ok, notModified []byte // answers
}

// modified is the Last-Modified of every document.
var modified = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func serve(feeds, entries, size int) *origin {
	s := &origin{responses: map[int]int{}, documents: map[string]*document{}}
	listen := func(config *net.ListenConfig, address string) (port int, err error) {
		config.KeepAlive = -1
		listener, err := config.Listen(context.Background(), "tcp", address)
		if err != nil {
			return 0, err
		}
		s.listeners = append(s.listeners, listener)
		return listener.Addr().(*net.TCPAddr).Port, nil
	}
	// One listener for all addresses costs the server least.
	common, err := listen(&net.ListenConfig{Control: loopbackOnly}, "0.0.0.0:0")
	for i := range feeds {
		ip, port := "127.0.0.1", common
		if manyAddresses {
			ip = fmt.Sprintf("127.7.%d.%d", i/250, i%250+1)
		}
		if err != nil {
			port = must.Get(listen(&net.ListenConfig{}, ip+":0"))
		}
		host := net.JoinHostPort(ip, strconv.Itoa(port))
		s.documents[host] = generate(i, entries, size)
		s.urls = append(s.urls, "http://"+host+"/feed.xml")
	}
	for _, l := range s.listeners {
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				go s.answer(c)
			}
		}()
	}
	return s
}

func (s *origin) close() {
	for _, l := range s.listeners {
		l.Close()
	}
}

func (s *origin) reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.responses)
}

// requests lists the answers given since the last reset: "500 × 200".
func (s *origin) requests() string {
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
			unchanged = err == nil && !modified.After(t)
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
	random := rand.New(rand.NewPCG(uint64(i), 1))
	var b strings.Builder
	doc := &document{etag: fmt.Sprintf(`"bench-%d"`, i)}
	home := fmt.Sprintf("http://feed%d.example/", i)
	atom := i%2 == 1
	if atom {
		doc.contentType = "application/atom+xml"
		fmt.Fprintf(&b, "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<feed xmlns=\"http://www.w3.org/2005/Atom\"><title>Feed %d</title><id>%s</id><link href=\"%s\"/><updated>%s</updated>\n",
			i, home, home, modified.Format(time.RFC3339))
	} else {
		doc.contentType = "application/rss+xml"
		fmt.Fprintf(&b, "<?xml version=\"1.0\"?>\n<rss version=\"2.0\"><channel><title>Feed %d</title><link>%s</link><description>Number %d</description>\n", i, home, i)
	}
	for n := range entries {
		link := fmt.Sprintf("%s%d", home, n)
		title := html.EscapeString(words(random, 40))
		content := html.EscapeString(markup(random, size))
		published := modified.Add(-time.Duration(n*entries+i) * time.Minute)
		if atom {
			fmt.Fprintf(&b, "<entry><title>%s</title><id>%s</id><link href=\"%s\"/><author><name>Author %d</name></author><published>%s</published><updated>%s</updated><content type=\"html\">%s</content></entry>\n",
				title, link, link, i, published.Format(time.RFC3339), published.Format(time.RFC3339), content)
		} else {
			fmt.Fprintf(&b, "<item><title>%s</title><link>%s</link><guid>%s</guid><pubDate>%s</pubDate><description>%s</description></item>\n",
				title, link, link, published.Format(time.RFC1123Z), content)
		}
	}
	if atom {
		b.WriteString("</feed>\n")
	} else {
		b.WriteString("</channel></rss>\n")
	}
	validators := fmt.Sprintf("ETag: %s\r\nLast-Modified: %s\r\n", doc.etag, modified.Format(http.TimeFormat))
	doc.notModified = []byte("HTTP/1.1 304 Not Modified\r\n" + validators + "\r\n")
	doc.ok = fmt.Appendf(nil, "HTTP/1.1 200 OK\r\n%sContent-Type: %s\r\nContent-Length: %d\r\n\r\n%s", validators, doc.contentType, b.Len(), b.String())
	return doc
}

// markup returns about size bytes of HTML such as people write.
func markup(random *rand.Rand, size int) string {
	var b strings.Builder
	for b.Len() < size {
		fmt.Fprintf(&b, "<p>%s <a href=\"http://other.example/%d\">%s</a> %s.</p>\n",
			words(random, 150), random.IntN(1e6), words(random, 15), words(random, 150))
	}
	return b.String()
}

var vocabulary = strings.Fields(`a the of in and to for with from into under over between
	feed entry directory rename maildir reader writer tide bridge garden leek frost bread
	morning evening harbour lantern ledger quiet brisk narrow señor naïve Größe 日本 coöperate
	reads writes moves keeps finds delivers & < —`)

// words returns about size bytes of words.
func words(random *rand.Rand, size int) string {
	var b strings.Builder
	for b.Len() < size {
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(vocabulary[random.IntN(len(vocabulary))])
	}
	return html.EscapeString(b.String())
}
