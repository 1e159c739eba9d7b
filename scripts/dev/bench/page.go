//go:build linux

package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lektordir/lektor/internal/testkit/must"
)

// page measures the page of lektor-serve, as a browser asks for it, beside that of Miniflux with PostgreSQL, if these
// are installed.
func (b *bench) page() {
	n := sizes["served"]
	if n == 0 {
		return
	}
	ways := append(b.ours("lektor-serve"), b.other("Miniflux", "miniflux", "initdb", "postgres", "psql")...)
	visitors := map[*way]*visitor{}
	for _, w := range ways {
		dir := filepath.Join(w.dir, "feeds")
		var r *reader
		if w.name == "Miniflux" {
			r = w.miniflux(filepath.Join(ways[0].dir, "feeds"))
		} else {
			served(dir, n)
			take(command(w.dir, filepath.Join(w.bin, "lektor-view"), "index", "--dir", dir))
			r = w.reader(dir)
		}
		defer r.stop()
		visitors[w] = visit(r)
	}
	row := func(what string, do func(v *visitor, k int) []byte) {
		b.compare(group{what: what, unit: "requests", n: 1, warm: true}, ways, func(w *way, _ int) measurement {
			v := visitors[w]
			var took []time.Duration
			var sent int
			for k := range 20 {
				began := time.Now()
				sent = len(do(v, k))
				took = append(took, time.Since(began))
			}
			slices.Sort(took)
			return measurement{time: took[len(took)/2], slowest: took[len(took)-1], memory: v.memory(),
				note: fmt.Sprintf("%d bytes sent", sent)}
		})
	}
	row("a page of 50 unread", func(v *visitor, _ int) []byte { return v.get("/unread") })
	row("a page of an entry", func(v *visitor, k int) []byte { return v.get(v.entries[k]) })
	row("a mark on the page", func(v *visitor, k int) []byte { return v.mark(v.entries[k]) })
	row("a search of a rare word", func(v *visitor, _ int) []byte { return v.get("/search?q=" + rareWord) })
	row("a search of a frequent word", func(v *visitor, _ int) []byte { return v.get("/search?q=" + frequentWord) })
}

// visitor is a browser that is logged in.
type visitor struct {
	*reader
	browser *http.Client
	csrf    string   // a field of each form of Miniflux
	entries []string // paths
	read    map[string]bool
}

// visit logs in, and reads which entries a list has.
func visit(r *reader) *visitor {
	v := &visitor{reader: r, browser: &http.Client{Jar: must.Get(cookiejar.New(nil))},
		read: map[string]bool{}}
	form := url.Values{"name": {readerName}, "username": {readerName}, "password": {readerPassword}}
	if r.w.name == "Miniflux" {
		form.Set("csrf", find(unzip(v.get("/")), `name="csrf" value="([^"]*)"`))
	}
	v.ask("POST", "/login", form.Encode(), "application/x-www-form-urlencoded")
	list := unzip(v.get("/unread"))
	link := regexp.MustCompile(`href="/?((?:unread/)?entry[^"/]*/?[0-9a-z]*)"`)
	for _, m := range link.FindAllSubmatch(list, -1) {
		if path := "/" + strings.ReplaceAll(string(m[1]), "&amp;", "&"); !slices.Contains(v.entries, path) {
			v.entries = append(v.entries, path)
		}
	}
	if len(v.entries) < 50 {
		must.Fail("a list of %s has %d entries\n%.2000s", r.w.name, len(v.entries), list)
	}
	v.csrf = find(list, `data-csrf-token="([^"]*)"`)
	return v
}

func (v *visitor) ask(method, target, body, kind string) []byte {
	req := must.Get(http.NewRequest(method, v.url+target, strings.NewReader(body)))
	req.Header.Set("Content-Type", kind)
	req.Header.Set("Accept", "text/html")
	if method == http.MethodPost && kind != "application/json" && target == "/mark" {
		req.Header.Set("Accept", "text/x-message")
	}
	req.Header.Set("Accept-Encoding", "gzip")
	req.Header.Set("X-Csrf-Token", v.csrf)
	resp := must.Get(v.browser.Do(req))
	defer resp.Body.Close()
	b := must.Get(io.ReadAll(resp.Body))
	if resp.StatusCode >= http.StatusBadRequest {
		must.Fail("%s %s: %s\n%.500s", method, target, resp.Status, unzip(b))
	}
	return b
}

func (v *visitor) get(target string) []byte { return v.ask(http.MethodGet, target, "", "") }

// mark marks the entry with a path as read, and the next time as unread.
func (v *visitor) mark(path string) []byte {
	state := "read"
	if v.read[path] {
		state = "unread"
	}
	v.read[path] = !v.read[path]
	if v.w.name == "Miniflux" {
		id := must.Get(strconv.Atoi(path[strings.LastIndexByte(path, '/')+1:]))
		return v.ask(http.MethodPost, "/entry/status", fmt.Sprintf(`{"entry_ids":[%d],"status":%q}`, id, state),
			"application/json")
	}
	id := find([]byte(path), `[?&]id=([0-9a-z]*)`)
	return v.ask(http.MethodPost, "/mark", "do="+state+"&back=unread&e="+id, "application/x-www-form-urlencoded")
}

// memory returns the memory of all processes of a server, of which shared pages count once.
func (v *visitor) memory() (sum int64) {
	pids := []int{v.Process.Pid}
	if v.beside != 0 {
		pids = append(pids, v.beside)
		for _, child := range strings.Fields(string(must.Get(os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children",
			v.beside))))) {
			pids = append(pids, must.Get(strconv.Atoi(child)))
		}
	}
	for _, pid := range pids {
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid)) // a worker of PostgreSQL may have ended
		if kB := find(text, `Pss: +([0-9]+) kB`); kB != "" {
			sum += int64(must.Get(strconv.Atoi(kB))) << 10
		}
	}
	return sum
}

// find returns the first group of the first match of an expression, "" if there is none.
func find(text []byte, expr string) string {
	if m := regexp.MustCompile(expr).FindSubmatch(text); m != nil {
		return string(m[1])
	}
	return ""
}

// unzip returns a text that may be compressed.
func unzip(text []byte) []byte {
	z, err := gzip.NewReader(bytes.NewReader(text))
	if err != nil {
		return text
	}
	return must.Get(io.ReadAll(z))
}
