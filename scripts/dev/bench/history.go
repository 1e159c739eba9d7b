//go:build linux

package main

import (
	"fmt"
	"html"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/lektordir/lektor/internal/testkit/must"
	"github.com/lektordir/lektor/internal/testkit/server"
)

// pastEntries is the number of entries in an archive.
const pastEntries = 100

// history measures the delivery of a feed from its archives, and of the same entries in one
// document.
func (b *bench) history() {
	archives := sizes["archives"]
	if archives == 0 {
		return
	}
	documents, n := past(archives)
	s := must.Get(server.New("127.0.0.1"))
	defer s.Close()
	for path, doc := range documents {
		s.Handle(path, server.Doc("application/atom+xml", doc))
	}
	var ways []*way
	for _, kind := range []struct{ name, path string }{{"lektor-fetch history", "/feed"},
		{"lektor-fetch history of one document", "/all"}} {
		for _, w := range b.ours(kind.name) {
			ways = append(ways, w)
			w.once = func(w *way, _ int) measurement {
				feeds, url := filepath.Join(b.place(), "feeds"), s.URL(kind.path)
				take(w.lektor(feeds, "lektor-fetch", "add", "--no-fetch", "--as-is", url))
				large := fmt.Sprint(len(documents["/all"]) + 1)
				m, _ := take(w.lektor(feeds, "lektor-fetch", "history", "--gap", "0", "--limit-documents",
					fmt.Sprint(archives+1), "--limit-entries", fmt.Sprint(n+1),
					"--limit-bytes", "100G", "--max-bytes", large, "--max-decoded", large, "--max-entries",
					fmt.Sprint(n), url))
				if found := must.Get(filepath.Glob(filepath.Join(feeds, "new/*/*"))); len(found) != n {
					must.Fail("%s has %d entries, want %d", w.name, len(found), n)
				}
				return m
			}
		}
	}
	b.compare(group{what: fmt.Sprintf("history, %d × %d × %.1f kB", archives, pastEntries,
		float64(sizes["bytes"])/1000), unit: "entries", n: n}, ways, nil)
}

// past makes a feed with archives, and a document /all with all their entries. /feed links to the
// newest archive, and has none of its entries.
func past(archives int) (documents map[string]string, entries int) {
	c := newCorpus(1)
	const head = `<?xml version="1.0" encoding="utf-8"?><feed xmlns="http://www.w3.org/2005/Atom" xmlns:fh="http://purl.org/syndication/history/1.0"><title>Past</title><id>urn:x:past</id>`
	documents = map[string]string{}
	var all []string // the newest archive first
	link := ""
	for i := range archives {
		var b strings.Builder
		for k := range pastEntries {
			at := newest.Add(time.Duration(-(archives-i)*pastEntries+pastEntries-k) * time.Minute).Format(time.RFC3339)
			fmt.Fprintf(&b,
				"<entry><title>%s</title><id>urn:x:%d:%d</id><updated>%s</updated><content type=\"html\">%s</content></entry>\n",
				html.EscapeString(c.title(k)), i, k, at, html.EscapeString(c.body(k, sizes["bytes"])))
		}
		all = slices.Insert(all, 0, b.String())
		documents[fmt.Sprint("/",
			i)] = fmt.Sprintf("%s<fh:archive/><link rel=\"current\" href=\"/feed\"/>%s\n%s</feed>\n", head, link,
			b.String())
		link = fmt.Sprintf(`<link rel="prev-archive" href="/%d"/>`, i)
	}
	documents["/feed"] = head + link + "</feed>\n"
	documents["/all"] = fmt.Sprintf("%s\n%s</feed>\n", head, strings.Join(all, ""))
	return documents, archives * pastEntries
}
