package publish

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// reader is a subscriber as RFC 5005, section 4.2, has it, and written after it: it
// polls the subscription document, follows prev-archive to the first archive that
// it has processed, and of several versions of an entry keeps the one that was
// updated last, else the one from the newer document. It shares no code with what
// is tested.
type reader struct {
	t        testing.TB
	url      string
	client   *http.Client
	done     map[string]bool // archives
	have     map[string]version
	requests int
}

// version is a version of an entry, and the document that it was found in.
type version struct {
	title         string
	updated, page time.Time
	url           string
}

func newReader(t testing.TB, server *httptest.Server, path string) *reader {
	return &reader{t: t, url: server.URL + path, client: server.Client(), done: map[string]bool{}, have: map[string]version{}}
}

// page is a document as the reader sees it.
type page struct {
	url     string
	updated time.Time
	links   map[string][]string // of the head
	marks   map[string]int      // of RFC 5005, in the head
	entries []pageEntry         // in the order of the document
}

type pageEntry struct {
	id, title string
	updated   time.Time
}

// get fetches and reads a document.
func (r *reader) get(url string) *page {
	r.t.Helper()
	r.requests++
	resp, err := r.client.Get(url)
	if err != nil {
		r.t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != 200 {
		r.t.Fatalf("%s: %s, %v", url, resp.Status, err)
	}
	p, err := readPage(data)
	if err != nil {
		r.t.Fatalf("%s: %v\n%s", url, err, data)
	}
	p.url = url
	return p
}

// readPage reads Atom and RSS 2.0, by the letter.
func readPage(data []byte) (*page, error) {
	type link struct {
		Rel  string `xml:"rel,attr"`
		Href string `xml:"href,attr"`
		Type string `xml:"type,attr"`
	}
	const (
		atom = "http://www.w3.org/2005/Atom"
		fh   = "http://purl.org/syndication/history/1.0"
	)
	p := &page{links: map[string][]string{}, marks: map[string]int{}}
	take := func(links []link, marks []xml.Name) {
		for _, l := range links {
			p.links[l.Rel] = append(p.links[l.Rel], l.Href)
		}
		for _, n := range marks {
			if n.Space == fh {
				p.marks[n.Local]++
			}
		}
	}
	type mark struct{ XMLName xml.Name }
	if bytes.Contains(data, []byte("<rss")) {
		var doc struct {
			Links   []link `xml:"http://www.w3.org/2005/Atom channel>link"`
			Marks   []mark `xml:"http://purl.org/syndication/history/1.0 channel>archive"`
			Built   string `xml:"channel>lastBuildDate"`
			Entries []struct {
				ID       string `xml:"guid"`
				Title    string `xml:"title"`
				Date     string `xml:"pubDate"`
				Modified string `xml:"http://purl.org/dc/terms/ modified"`
			} `xml:"channel>item"`
		}
		if err := xml.Unmarshal(data, &doc); err != nil {
			return nil, err
		}
		var names []xml.Name
		for _, m := range doc.Marks {
			names = append(names, m.XMLName)
		}
		take(doc.Links, names)
		if doc.Built != "" {
			t, err := time.Parse(time.RFC1123, doc.Built)
			if err != nil {
				return nil, err
			}
			p.updated = t
		}
		for _, e := range doc.Entries {
			// RSS itself does not say when an entry was updated (appendix B); this
			// module does, and else that is when it was published.
			updated, err := time.Parse(time.RFC3339, e.Modified)
			if e.Modified == "" {
				updated, err = time.Parse(time.RFC1123, e.Date)
			}
			if err != nil {
				return nil, err
			}
			p.entries = append(p.entries, pageEntry{e.ID, e.Title, updated.UTC()})
		}
		return p, nil
	}
	var doc struct {
		XMLName xml.Name `xml:"http://www.w3.org/2005/Atom feed"`
		Links   []link   `xml:"http://www.w3.org/2005/Atom link"`
		Marks   []mark   `xml:"http://purl.org/syndication/history/1.0 archive"`
		Whole   []mark   `xml:"http://purl.org/syndication/history/1.0 complete"`
		Updated string   `xml:"http://www.w3.org/2005/Atom updated"`
		Entries []struct {
			ID      string `xml:"http://www.w3.org/2005/Atom id"`
			Title   string `xml:"http://www.w3.org/2005/Atom title"`
			Updated string `xml:"http://www.w3.org/2005/Atom updated"`
		} `xml:"http://www.w3.org/2005/Atom entry"`
	}
	if err := xml.Unmarshal(data, &doc); err != nil {
		return nil, err
	}
	var names []xml.Name
	for _, m := range append(doc.Marks, doc.Whole...) {
		names = append(names, m.XMLName)
	}
	take(doc.Links, names)
	var err error
	if p.updated, err = time.Parse(time.RFC3339, doc.Updated); err != nil {
		return nil, err
	}
	for _, e := range doc.Entries {
		updated, err := time.Parse(time.RFC3339, e.Updated)
		if err != nil {
			return nil, err
		}
		p.entries = append(p.entries, pageEntry{e.ID, e.Title, updated})
	}
	return p, nil
}

// link is the only link of a relation in the head, "" for none.
func (p *page) link(t testing.TB, rel string) string {
	t.Helper()
	switch l := p.links[rel]; len(l) {
	case 0:
		return ""
	case 1:
		return l[0]
	default:
		t.Fatalf("%s: links to %s: %q", p.url, rel, l)
		return ""
	}
}

// look updates the reader, and returns the documents that it read, the subscription document
// first.
func (r *reader) look() []*page {
	r.t.Helper()
	pages := []*page{r.get(r.url)}
	for {
		prev := pages[len(pages)-1].link(r.t, "prev-archive")
		if prev == "" || r.done[prev] {
			break
		}
		pages = append(pages, r.get(prev))
		if len(pages) > 1000 {
			r.t.Fatal("the archives have no end")
		}
	}
	for i := len(pages) - 1; i >= 0; i-- {
		p := pages[i]
		for _, e := range p.entries {
			old, ok := r.have[e.id]
			newer := e.updated.After(old.updated) ||
				e.updated.Equal(old.updated) && (p.url == old.url || p.updated.After(old.page))
			if !ok || newer {
				r.have[e.id] = version{e.title, e.updated, p.updated, p.url}
			}
		}
		if i > 0 {
			r.done[p.url] = true
		}
	}
	return pages
}

// titles returns the titles of the reader's entries, by id.
func (r *reader) titles() map[string]string {
	out := map[string]string{}
	for id, v := range r.have {
		out[id] = v.title
	}
	return out
}

// serve serves a directory, and counts requests by path.
func serve(t testing.TB, dir string) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/") {
			http.NotFound(w, r)
			return
		}
		http.ServeFile(w, r, dir+r.URL.Path)
	}))
	t.Cleanup(s.Close)
	return s
}

// The reader is as good as the examples of the standard.
func TestOracle(t *testing.T) {
	p, err := readPage([]byte(`<rss version="2.0" xmlns:atom="http://www.w3.org/2005/Atom" xmlns:fh="http://purl.org/syndication/history/1.0"><channel>
		<lastBuildDate>Fri, 30 May 2003 11:06:42 GMT</lastBuildDate><fh:archive/><atom:link rel="current" href="http://e/c"/><link>http://e/</link>
		<item><title>T</title><guid>g</guid><pubDate>Fri, 30 May 2003 11:06:42 GMT</pubDate></item></channel></rss>`))
	if err != nil || fmt.Sprint(p.links, p.marks, p.entries[0].id) != "map[current:[http://e/c]] map[archive:1]g" || p.updated.Unix() != 1054292802 {
		t.Errorf("%+v, %v", p, err)
	}
}
