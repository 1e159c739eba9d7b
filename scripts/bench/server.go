package main

import (
	"fmt"
	"html"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// server serves generated feeds, each at an address of its own where the
// system has enough of them, and counts the answers.
type server struct {
	urls  []string
	bytes int

	docs      map[string]document // by host:port
	servers   []*http.Server
	mu        sync.Mutex
	responses map[int]int
}

// document is a feed, made in advance: what is measured is the reader.
type document struct {
	body        []byte
	contentType string
	etag        string
}

// modified is the Last-Modified of every document.
var modified = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func serve(feeds, entries, size int) (*server, error) {
	s := &server{docs: map[string]document{}, responses: map[int]int{}}
	for i := range feeds {
		address := "127.0.0.1"
		if manyAddresses {
			address = fmt.Sprintf("127.7.%d.%d", i/250, i%250+1)
		}
		listener, err := net.Listen("tcp", address+":0")
		if err != nil {
			s.close()
			return nil, err
		}
		host := listener.Addr().String()
		doc := generate(i, entries, size)
		s.docs[host] = doc
		s.bytes += len(doc.body)
		s.urls = append(s.urls, "http://"+host+"/feed.xml")
		h := &http.Server{Handler: s}
		s.servers = append(s.servers, h)
		go h.Serve(listener)
	}
	return s, nil
}

func (s *server) close() {
	for _, h := range s.servers {
		h.Close()
	}
}

func (s *server) reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.responses)
}

// requests lists the answers given since the last reset: "500 × 200".
func (s *server) requests() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	for status, n := range s.responses {
		out = append(out, fmt.Sprintf("%d × %d", n, status))
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

func (s *server) count(status int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.responses[status]++
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	doc, ok := s.docs[r.Host]
	if !ok || r.URL.Path != "/feed.xml" {
		s.count(http.StatusNotFound)
		http.NotFound(w, r)
		return
	}
	h := w.Header()
	h.Set("ETag", doc.etag)
	h.Set("Last-Modified", modified.Format(http.TimeFormat))
	unchanged := r.Header.Get("If-None-Match") == doc.etag
	if r.Header.Get("If-None-Match") == "" {
		since, err := http.ParseTime(r.Header.Get("If-Modified-Since"))
		unchanged = err == nil && !modified.After(since)
	}
	if unchanged {
		s.count(http.StatusNotModified)
		w.WriteHeader(http.StatusNotModified)
		return
	}
	s.count(http.StatusOK)
	h.Set("Content-Type", doc.contentType)
	h.Set("Content-Length", fmt.Sprint(len(doc.body)))
	w.Write(doc.body)
}

// generate makes feed number i: RSS 2.0 and Atom in turn, from a fixed seed.
func generate(i, entries, size int) document {
	random := rand.New(rand.NewPCG(uint64(i), 1))
	var b strings.Builder
	doc := document{etag: fmt.Sprintf(`"bench-%d"`, i)}
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
	doc.body = []byte(b.String())
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
