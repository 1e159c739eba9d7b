package main

import (
	"fmt"
	"html"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/lektordir/lektor/internal/testkit/must"
	"github.com/lektordir/lektor/internal/testkit/server"
)

// pastEntries is how many entries an archive has.
const pastEntries = 100

// history measures how long it takes to bring a feed from its archives, against the
// same entries in one document.
func (o options) history(tmp string, t *table) {
	if o.archives < 1 {
		return
	}
	fetch := o.built("lektor-fetch")
	documents, n := past(o.archives, o.size)
	s := must.Get(server.New("127.0.0.1"))
	defer s.Close()
	for path, doc := range documents {
		s.Handle(path, server.Doc("application/atom+xml", doc))
	}
	g := t.group(fmt.Sprintf("history, %d × %d × %.1f kB", o.archives, pastEntries, float64(o.size)/1000), "entries")
	for _, way := range []struct{ name, path string }{{"lektor-fetch history", "/feed"}, {"one document", "/all"}} {
		var best measurement
		for round := range o.rounds {
			dir := filepath.Join(tmp, fmt.Sprintf("%d%s", round, strings.ReplaceAll(way.path, "/", "-")))
			must.Do(os.MkdirAll(dir, 0o700))
			feeds, url := filepath.Join(dir, "feeds"), s.URL(way.path)
			run := func(args ...string) (m measurement) {
				m.run(way.name, command(dir, fetch, append([]string{"--dir", feeds}, args...)...))
				return m
			}
			run("add", "--no-fetch", "--as-is", url)
			large := fmt.Sprint(len(documents["/all"]) + 1)
			m := run("history", "--gap", "0", "--limit-documents", fmt.Sprint(o.archives+1), "--limit-entries", fmt.Sprint(n+1),
				"--limit-bytes", "100G", "--max-bytes", large, "--max-decoded", large, "--max-entries", fmt.Sprint(n), url)
			if found, err := filepath.Glob(filepath.Join(feeds, "new/*/*")); err != nil || len(found) != n {
				must.Fail("%s has %d entries, not %d", way.name, len(found), n)
			}
			best.keep(m)
		}
		g.add(&contestant{name: way.name}, float64(n), best)
	}
}

// past makes a feed with archives, the newest linked from /feed, which has none of its
// entries, and /all with all of them.
func past(archives, size int) (documents map[string]string, entries int) {
	random := rand.New(rand.NewPCG(1, 2))
	const head = `<?xml version="1.0" encoding="utf-8"?><feed xmlns="http://www.w3.org/2005/Atom" xmlns:fh="http://purl.org/syndication/history/1.0"><title>Past</title><id>urn:x:past</id>`
	documents = map[string]string{}
	var all []string // newest first
	link := ""
	for i := range archives {
		var b strings.Builder
		for k := range pastEntries {
			at := modified.Add(time.Duration(-(archives-i)*pastEntries+pastEntries-k) * time.Minute).Format(time.RFC3339)
			fmt.Fprintf(&b, "<entry><title>%s</title><id>urn:x:%d:%d</id><updated>%s</updated><content type=\"html\">%s</content></entry>\n",
				html.EscapeString(words(random, 40)), i, k, at, html.EscapeString(markup(random, size)))
		}
		all = slices.Insert(all, 0, b.String())
		documents[fmt.Sprint("/", i)] = fmt.Sprintf("%s<fh:archive/><link rel=\"current\" href=\"/feed\"/>%s\n%s</feed>\n", head, link, b.String())
		link = fmt.Sprintf(`<link rel="prev-archive" href="/%d"/>`, i)
	}
	documents["/feed"] = head + link + "</feed>\n"
	documents["/all"] = fmt.Sprintf("%s\n%s</feed>\n", head, strings.Join(all, ""))
	return documents, archives * pastEntries
}
