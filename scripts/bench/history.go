package main

import (
	"bytes"
	"fmt"
	"html"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// pastEntries is how many entries an archive has.
const pastEntries = 100

// history measures how long it takes to bring a feed from its archives, against the
// same entries in one document.
func (o options) history(tmp string, t *table) error {
	if o.archives < 1 {
		return nil
	}
	fetch := filepath.Join(o.bin, "lektor-fetch")
	if _, err := os.Stat(fetch); err != nil {
		return fmt.Errorf("%w (run make first)", err)
	}
	documents, n := past(o.archives, o.size)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		doc := documents[r.URL.Path]
		if doc == nil {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/atom+xml")
		_, _ = w.Write(doc)
	})}
	defer server.Close()
	go func() { _ = server.Serve(listener) }()
	g := t.group(fmt.Sprintf("history, %d × %d × %.1f kB", o.archives, pastEntries, float64(o.size)/1000), "entries")
	for _, way := range []struct{ name, path string }{{"lektor-fetch history", "/feed"}, {"one document", "/all"}} {
		var best measurement
		for round := range o.rounds {
			dir := filepath.Join(tmp, fmt.Sprintf("%d%s", round, strings.ReplaceAll(way.path, "/", "-")))
			if err := os.MkdirAll(dir, 0o700); err != nil {
				return err
			}
			feeds, url := filepath.Join(dir, "feeds"), "http://"+listener.Addr().String()+way.path
			run := func(m *measurement, args ...string) error {
				cmd := exec.Command(fetch, append([]string{"--dir", feeds}, args...)...)
				cmd.Env = environment(dir)
				said, err := m.run(cmd)
				if err != nil {
					return fmt.Errorf("%s: %w\n%s", way.name, err, said)
				}
				return nil
			}
			if err := run(new(measurement), "add", "--no-fetch", "--as-is", url); err != nil {
				return err
			}
			large := fmt.Sprint(len(documents["/all"]) + 1)
			var m measurement
			if err := run(&m, "history", "--gap", "0", "--limit-documents", fmt.Sprint(o.archives+1), "--limit-entries", fmt.Sprint(n+1),
				"--limit-bytes", "100G", "--max-bytes", large, "--max-decoded", large, "--max-entries", fmt.Sprint(n), url); err != nil {
				return err
			}
			if found, err := filepath.Glob(filepath.Join(feeds, "new/*/*")); err != nil || len(found) != n {
				return fmt.Errorf("%s has %d entries, not %d", way.name, len(found), n)
			}
			best.keep(m)
		}
		g.add(&contestant{name: way.name}, float64(n), best)
	}
	return nil
}

// past makes a feed with archives, the newest linked from /feed, which has none of its
// entries, and /all with all of them.
func past(archives, size int) (documents map[string][]byte, entries int) {
	random := rand.New(rand.NewPCG(1, 2))
	const head = `<?xml version="1.0" encoding="utf-8"?><feed xmlns="http://www.w3.org/2005/Atom" xmlns:fh="http://purl.org/syndication/history/1.0"><title>Past</title><id>urn:x:past</id>`
	documents = map[string][]byte{}
	var all [][]byte // newest first
	link := ""
	for i := range archives {
		var b bytes.Buffer
		for k := range pastEntries {
			at := modified.Add(time.Duration(-(archives-i)*pastEntries+pastEntries-k) * time.Minute).Format(time.RFC3339)
			fmt.Fprintf(&b, "<entry><title>%s</title><id>urn:x:%d:%d</id><updated>%s</updated><content type=\"html\">%s</content></entry>\n",
				html.EscapeString(words(random, 40)), i, k, at, html.EscapeString(markup(random, size)))
		}
		all = append(all, nil)
		copy(all[1:], all)
		all[0] = b.Bytes()
		documents[fmt.Sprint("/", i)] = fmt.Appendf(nil, "%s<fh:archive/><link rel=\"current\" href=\"/feed\"/>%s\n%s</feed>\n", head, link, b.Bytes())
		link = fmt.Sprintf(`<link rel="prev-archive" href="/%d"/>`, i)
	}
	documents["/feed"] = []byte(head + link + "</feed>\n")
	documents["/all"] = fmt.Appendf(nil, "%s\n%s</feed>\n", head, bytes.Join(all, nil))
	return documents, archives * pastEntries
}
