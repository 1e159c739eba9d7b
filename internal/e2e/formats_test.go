package e2e

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lektordir/lektor/internal/testkit/must"
	"github.com/lektordir/lektor/internal/testkit/server"
	"github.com/lektordir/lektor/internal/testkit/terminal"
	"github.com/lektordir/lektor/internal/testkit/testdir"
)

// forged follows each hostile character. No line of any file may begin with it.
const forged = "FORGED"

// hostileChars are the characters that others write into each field, by the name of a variant.
var hostileChars = map[string]string{
	"newline": "\n", "return": "\r", "crlf": "\r\n", "tab": "\t", "nul": "\x00", "escape": "\x1b[2J", "c1": "\u009b2J", "bidi": "\u202e", "separator": "\u2028", "byte": "\x9b2J", "markup": "\"><x>",
	"all": "\\\n\r\t\x1b[2J\u0085\u009b2J\u202e\u2029",
}

// site serves the documents, pages and hubs of an attacker.
type site struct {
	*httptest.Server
	mu      sync.Mutex
	version int
	whole   bool         // files are whole, not cut off
	called  atomic.Int32 // callbacks
}

// at returns the URL of a document of a variant.
func (s *site) at(kind, variant string) string { return s.URL + "/" + kind + "/" + variant }

// evil returns a value with the characters of a variant inside.
func evil(variant, field string) string { return field + hostileChars[variant] + forged + " " + field }

// escape writes all characters of a text that are not plain as references of XML or HTML.
func escape(s string) string {
	var b strings.Builder
	for _, r := range s {
		if r < ' ' || r >= 0x7f || strings.ContainsRune(`<>&"'`, r) {
			fmt.Fprintf(&b, "&#%d;", r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// document returns a document of a kind with the characters of a variant in each field.
func (s *site) document(kind, variant string, version int) string {
	v := func(field string) string { return escape(evil(variant, field)) }
	u := func(path string) string { return escape(s.URL + "/" + evil(variant, path)) }
	date := "Sun, 01 Nov 2026 10:00:00 GMT"
	port := s.URL[strings.LastIndex(s.URL, ":")+1:]
	switch kind {
	case "rss", "moved", "header", "second":
		cloud := fmt.Sprintf(`<cloud domain="127.0.0.1" port="%s" path="/cloud/%s" registerProcedure="%s" protocol="http-post"/>`, port, v("path"), v("procedure"))
		if kind == "second" {
			cloud = fmt.Sprintf(`<cloud domain="%s" port="%s" path="/cloud" registerProcedure="%s" protocol="%[3]s"/>`, v("domain"), v("80"), v("http-post"))
		}
		return fmt.Sprintf(`<rss version="2.0" xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:itunes="http://www.itunes.com/dtds/podcast-1.0.dtd" xmlns:media="http://search.yahoo.com/mrss/"
 xmlns:atom="http://www.w3.org/2005/Atom" xmlns:thr="http://purl.org/syndication/thread/1.0" xmlns:content="http://purl.org/rss/1.0/modules/content/" xmlns:fh="http://purl.org/syndication/history/1.0"><channel>
<title>%[1]s</title><link>%[2]s</link><description>%[3]s</description><language>%[4]s</language><copyright>%[5]s</copyright><managingEditor>%[6]s</managingEditor><generator>%[7]s</generator><ttl>%[8]s</ttl>
<skipHours><hour>%[8]s</hour></skipHours><skipDays><day>%[9]s</day></skipDays><image><url>%[10]s</url></image>%[11]s<fh:complete/>
<atom:link rel="self" href="%[12]s"/><atom:link rel="hub" href="%[13]s"/><atom:link rel="alternate" type="application/ess" href="%[14]s"/><atom:link rel="alternate" type="application/nno" href="%[14]s"/>
<item><title>%[15]s %[16]d</title><link>%[17]s</link><guid isPermaLink="false">%[18]s</guid><pubDate>%[19]s</pubDate><description>%[20]s</description><author>%[21]s</author><category domain="%[22]s">%[23]s</category><comments>%[24]s</comments>
<enclosure url="%[25]s" type="%[26]s" length="5"/><source url="%[27]s">%[28]s</source><dc:creator>%[21]s</dc:creator><dc:language>%[4]s</dc:language><dc:rights>%[5]s</dc:rights><itunes:duration>%[29]s</itunes:duration><itunes:episode>%[29]s</itunes:episode><itunes:image href="%[10]s"/>
<thr:in-reply-to ref="%[18]s" href="%[24]s" type="%[26]s" source="%[27]s"/><atom:link rel="%[30]s" href="%[24]s" type="%[26]s" title="%[15]s"/><content:encoded>%[20]s</content:encoded></item>
<item><title>dated</title><pubDate>%[31]s</pubDate><guid>%[17]s</guid><description>x</description></item></channel></rss>`,
			v("name"), u("page"), v("about"), v("de"), v("rights"), "ann@x.example ("+v("Ann")+")", v("maker"), v("60"), v("Monday"), u("image"), cloud,
			u("self"), u("hub"), escape(s.at("ess", variant)+"?"+evil(variant, "ess")), v("title"), version, u("link"), v("urn:guid"), date, v("text"), "ann@x.example ("+v("Ann")+")", v("scheme"), v("tag"), u("comments"),
			u("file.mp3"), v("audio/mpeg"), u("source"), v("from"), v("1:00"), v("related"), v("yesterday"))
	case "atom", "archive", "gap":
		more := ""
		switch kind {
		case "archive":
			more = `<fh:archive/>`
		case "atom":
			more = `<link rel="prev-archive" href="` + s.URL + `/archive/` + variant + `?` + v("x") + `"/>`
		case "gap":
			more = `<link rel="prev-archive" href="` + u("missing") + `"/>`
		}
		return fmt.Sprintf(`<feed xmlns="http://www.w3.org/2005/Atom" xmlns:fh="http://purl.org/syndication/history/1.0" xmlns:thr="http://purl.org/syndication/thread/1.0">
<title>%[1]s</title><id>%[2]s</id><updated>2026-11-01T10:00:00Z</updated><link rel="hub" href="%[3]s"/><link rel="self" href="%[4]s"/><link href="%[4]s"/>%[5]s<author><name>%[6]s</name><email>%[6]s</email><uri>%[4]s</uri></author>
<entry><title>%[7]s %[8]d</title><id>%[2]s%[9]s</id><updated>2026-11-01T10:00:00Z</updated><published>%[10]s</published><link href="%[4]s"/><link rel="%[11]s" href="%[4]s" type="%[12]s" title="%[7]s"/><link rel="enclosure" href="%[4]s" type="%[12]s"/>
<author><name>%[6]s</name><email>%[6]s</email><uri>%[4]s</uri></author><contributor><name>%[6]s</name></contributor><category term="%[13]s" scheme="%[4]s" label="%[13]s"/><rights>%[7]s</rights><summary>%[7]s</summary>
<source><id>%[2]s</id><title>%[7]s</title><link href="%[4]s"/><author><name>%[6]s</name></author><rights>%[7]s</rights></source><thr:in-reply-to ref="%[2]s" href="%[4]s" type="%[12]s"/><content type="%[12]s">%[7]s</content></entry></feed>`,
			v("name"), v("urn:id"), escape(s.URL+"/hub"), u("self"), more, v("ann"), v("title"), version, kind, v("2026-11-01"), v("via"), v("text/plain"), v("tag"))
	case "json":
		f := func(field string) string { return evil(variant, field) }
		w := func(path string) string { return s.URL + "/" + f(path) }
		person := []any{map[string]string{"name": f("ann"), "url": w("ann"), "avatar": w("ann.png")}}
		return string(must.Get(json.Marshal(map[string]any{
			"version": "https://jsonfeed.org/version/1.1", "title": f("name"), "home_page_url": w("home"), "feed_url": w("feed"), "description": f("about"), "icon": w("icon"), "language": f("de"), "authors": person, "next_url": w("next"),
			"hubs": []any{map[string]string{"type": f("WebSub"), "url": w("hub")}, map[string]string{"type": "WebSub", "url": s.URL + "/hub"}},
			"items": []any{map[string]any{
				"id": f("id"), "url": w("url"), "external_url": w("external"), "title": fmt.Sprint(f("title "), version), "content_text": f("text"), "summary": f("summary"), "image": w("image"), "date_published": f("2026"), "date_modified": f("2026"),
				"authors": person, "tags": []string{f("tag")}, "language": f("de"), "attachments": []any{map[string]any{"url": w("file"), "mime_type": f("audio/mpeg"), "title": f("title"), "duration_in_seconds": 5}},
			}},
		})))
	case "rdf":
		return fmt.Sprintf(`<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://purl.org/rss/1.0/" xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:sy="http://purl.org/rss/1.0/modules/syndication/">
<channel rdf:about="%[1]s"><title>%[2]s</title><link>%[1]s</link><description>%[2]s</description><sy:updatePeriod>%[2]s</sy:updatePeriod></channel>
<item rdf:about="%[1]s"><title>%[2]s %[3]d</title><link>%[1]s</link><description>%[2]s</description><dc:creator>%[2]s</dc:creator><dc:date>%[2]s</dc:date><dc:subject>%[2]s</dc:subject></item></rdf:RDF>`, u("page"), v("text"), version)
	case "page":
		return fmt.Sprintf(`<!DOCTYPE html><html><head><title>%[1]s</title><link rel="alternate" type="application/rss+xml" title="%[1]s" href="%[2]s"><link rel="alternate" type="application/ess" href="%[3]s"><link rel="hub" href="%[3]s"></head><body><p>%[1]s</p></body></html>`,
			v("page"), escape(s.URL+"/rss/"+variant+"?"+evil(variant, "page")), u("ess"))
	case "ess":
		return fmt.Sprintf("%d,%s/rss/%s,\n1,%s,\n3,5", time.Now().Unix()/60*60, s.URL, variant, evil(variant, "92"))
	case "nno":
		return fmt.Sprintf("%d,%s,1,92,\n%s,3,%s", time.Now().Unix()/60*60, s.URL+"/"+evil(variant, "nno"), s.URL+"/rss/"+variant, evil(variant, "9"))
	}
	return ""
}

// newSite starts the server of the attacker.
func newSite(t *testing.T) *site {
	s := &site{version: 1}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
		kind, variant := parts[0], parts[len(parts)-1]
		_, known := hostileChars[variant]
		s.mu.Lock()
		version, whole := s.version, s.whole
		s.mu.Unlock()
		switch raw := hostileChars[variant]; {
		case kind == "hub", kind == "cloud":
			s.cloud(w, r)
		case kind == "cb": // a subscriber of the hub
			if c := r.FormValue("hub.challenge") + r.FormValue("challenge"); r.Method == http.MethodGet {
				io.WriteString(w, c)
				return
			}
			reply(w, "500 "+strings.ReplaceAll(evil("all", "no"), "\n", ""), "Retry-After: 1"+raw, evil("all", "no"))
		case strings.HasPrefix(kind, "file") && whole:
			io.WriteString(w, "audio")
		case strings.HasPrefix(kind, "file"):
			reply(w, "200 OK", "Content-Length: 100\r\nETag: \"e\u009b\u202e\t"+forged+"\"\r\nLast-Modified: \u009b\t"+forged, "cut off")
		case !known:
			http.NotFound(w, r)
		case kind == "moved" && version > 1:
			reply(w, "301 Moved", "Location: "+s.URL+"/rss/"+variant+"?"+strings.Trim(raw, "\r\n")+forged, "")
		case kind == "status":
			reply(w, "500 "+strings.NewReplacer("\n", "", "\r", "").Replace(evil(variant, "broken")), "X: x", evil(variant, "broken"))
		case kind == "header":
			raw := strings.NewReplacer("\n", "\r\n ", "\r", "\r\n ").Replace(raw)
			head := []string{"ETag: \"e" + raw + forged + "\"", "Last-Modified: Sun" + raw + forged, "Content-Type: application/rss+xml; charset=" + raw + forged, "Cache-Control: max-age=" + raw + forged, "Retry-After: " + raw + forged,
				"Link: <" + s.URL + "/hub?x" + raw + forged + ">; rel=hub, <" + s.URL + "/self" + raw + forged + ">; rel=self", "Date: " + raw + forged, "Content-Location: " + raw + forged}
			reply(w, "200 OK", strings.Join(head, "\r\n"), s.document(kind, variant, version))
		default:
			io.WriteString(w, s.document(kind, variant, version))
		}
	}))
	t.Cleanup(s.Close)
	return s
}

// reply answers with a status line and a header that net/http would refuse.
func reply(w http.ResponseWriter, status, header, body string) {
	conn, _, err := http.NewResponseController(w).Hijack()
	must.Do(err)
	if !strings.Contains(header, "Content-Length") {
		header += fmt.Sprintf("\r\nContent-Length: %d", len(body))
	}
	fmt.Fprintf(conn, "HTTP/1.1 %s\r\n%s\r\nConnection: close\r\n\r\n%s", status, header, body)
	conn.Close()
}

// cloud answers registrations with a cloud or a hub. A hub denies each with a hostile reason, or
// verifies it and delivers content.
func (s *site) cloud(w http.ResponseWriter, r *http.Request) {
	_ = r.ParseForm()
	text := evil("all", "because")
	callback := r.Form.Get("hub.callback")
	if callback == "" { // rssCloud: some registrations succeed
		fmt.Fprintf(w, `<?xml version="1.0"?><notifyResult success="%t" msg="%s"/>`, strings.Contains(r.URL.Path, "2J"), escape(text))
		callback = "http://127.0.0.1:" + r.Form.Get("port") + r.Form.Get("path")
		go s.call(callback, url.Values{"url": {r.Form.Get("url1")}, "challenge": {text}})
		go s.call(callback, url.Values{"url": {text}, "challenge": {text}})
		return
	}
	w.WriteHeader(http.StatusAccepted)
	go func() {
		for _, q := range []url.Values{
			{"hub.mode": {"subscribe"}, "hub.topic": {r.Form.Get("hub.topic")}, "hub.challenge": {text}, "hub.lease_seconds": {text}},
			{"hub.mode": {"denied"}, "hub.topic": {r.Form.Get("hub.topic")}, "hub.reason": {text}},
			{"hub.mode": {text}, "hub.topic": {text}, "hub.reason": {text}, "hub.challenge": {text}},
		} {
			s.call(callback, q)
		}
	}()
}

// call sends a query and a hostile delivery to a callback.
func (s *site) call(callback string, q url.Values) {
	post := must.Get(http.NewRequest(http.MethodPost, callback, strings.NewReader(q.Encode())))
	post.Header.Set("X-Hub-Signature", "sha1=\u009b\u202e\t"+forged)
	post.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	for _, req := range []*http.Request{must.Get(http.NewRequest(http.MethodGet, callback+"?"+q.Encode(), nil)), post} {
		if resp, err := http.DefaultClient.Do(req); err == nil {
			resp.Body.Close()
			s.called.Add(1)
		}
	}
}

// formatHouse is a directory in which all programs work on the documents of a site.
type formatHouse struct {
	t         *testing.T
	bin, root string
	site      *site
}

// cmd returns a program that works in a lektor-dir of the house.
func (h *formatHouse) cmd(dir, program string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(h.bin, program), args...)
	cmd.Dir = h.root
	cmd.Env = append(os.Environ(), "LEKTORDIR="+filepath.Join(h.root, dir), "LC_ALL=C.UTF-8", "TZ=UTC", "XDG_CACHE_HOME="+filepath.Join(h.root, "cache"), "HOME="+h.root, "no_proxy=*", "LEKTOR_CLOUD_PASSWORD=secret")
	return cmd
}

// run runs a program, and checks that all that it prints is harmless. The status is not checked, as
// some documents are refused.
func (h *formatHouse) run(dir, stdin, program string, args ...string) string {
	h.t.Helper()
	cmd := h.cmd(dir, program, args...)
	cmd.Stdin = strings.NewReader(stdin)
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	err := cmd.Run()
	what := program + " " + strings.Join(args, " ")
	if exit := cmd.ProcessState; exit == nil || exit.ExitCode() < 0 || exit.ExitCode() == 2 || strings.Contains(said.String(), "panic") {
		h.t.Errorf("%.200q: %v\n%.3000s", what, err, said.String())
	}
	harmless(h.t, "output of "+what, out.String())
	harmless(h.t, "messages of "+what, said.String())
	return out.String()
}

// start starts a server until the end of the test, or until stop is called.
func (h *formatHouse) start(program string, args ...string) (stop func()) {
	h.t.Helper()
	cmd := h.cmd("a", program, args...)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	must.Do(cmd.Start())
	stop = sync.OnceFunc(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait()
		harmless(h.t, program+" "+args[0], said.String())
	})
	h.t.Cleanup(stop)
	return stop
}

func (h *formatHouse) await(what string, is func() bool) {
	h.t.Helper()
	for end := time.Now().Add(30 * time.Second); !is(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			h.t.Fatalf("waited 30s for %s", what)
		}
	}
}

// variants returns the names of all variants, sorted.
func variants() []string { return slices.Sorted(maps.Keys(hostileChars)) }

var documentKinds = strings.Fields("rss atom gap json rdf moved header status second")

// feeds fetches documents of each kind, an OPML list, pages, archives and redirects.
func (h *formatHouse) feeds() {
	list := `<opml version="2.0"><head><title>` + escape(evil("all", "list")) + `</title></head><body>`
	for _, variant := range variants() {
		v := func(field string) string { return escape(evil(variant, field)) }
		list += fmt.Sprintf(`<outline text="%s">`, v("folder"))
		for _, kind := range documentKinds {
			list += fmt.Sprintf(`<outline type="%[1]s" text="%[2]s" title="%[3]s" xmlUrl="%[4]s" htmlUrl="%[3]s" category="/%[1]s/x,%[2]s" description="%[1]s" language="%[1]s" version="%[1]s"/>`, v("rss"), v("text"), v("title"), escape(h.site.at(kind, variant)))
		}
		list += fmt.Sprintf(`</outline><outline type="rss" text="x" xmlUrl="%s"/>`, escape(h.site.URL+"/"+evil(variant, "listed")))
	}
	list += `</body></opml>`
	h.run("a", list, "lektor-fetch", "import", "--gap", "0", "--per-host", "8", "-")
	for _, variant := range variants() {
		h.run("a", "", "lektor-fetch", "add", "--gap", "0", h.site.at("page", variant))
	}
	h.site.mu.Lock()
	h.site.version++
	h.site.mu.Unlock()
	for range 2 {
		h.run("a", "", "lektor-fetch", "update", "-a", "--gap", "0", "--per-host", "8", "-o", "path,title")
	}
	for _, variant := range variants() {
		h.run("a", "", "lektor-fetch", "history", "--gap", "0", h.site.at("atom", variant), h.site.at("gap", variant))
	}
	h.run("a", h.site.document("json", "all", 3), "lektor-fetch", "deliver", "--id", "urn:x:delivered")
	h.run("a", "text\x00\u202e\n", "lektor-fetch", "put", "--feed-id", "urn:x:put", "--feed-name", strings.ReplaceAll(evil("all", "put"), "\x00", ""), "--id", "urn:x:id", "--title", evil("all", "title"))
}

// entries delivers entries of another program, whose names and files have the characters.
func (h *formatHouse) entries() {
	for _, variant := range variants() {
		if variant == "nul" || variant == "byte" && runtime.GOOS == "darwin" {
			continue // no file name has it
		}
		feed := evil(variant, "other")
		src := filepath.Join(h.root, "a", "src", feed)
		write := func(name, text string) {
			must.Do(os.MkdirAll(filepath.Dir(name), 0o777))
			must.Do(os.WriteFile(name, []byte(text+"\n"), 0o666))
		}
		write(filepath.Join(src, "id"), evil(variant, "urn:x"))
		write(filepath.Join(src, "name"), evil(variant, "name"))
		for i, unique := range []string{evil(variant, "1790000001.x") + ".host", "1790000002.M1P1Q1I0123456789abcdef." + evil(variant, "host"), "1790000003.x.host", "1790000004." + evil(variant, "x") + "." + evil(variant, "host")} {
			dir := filepath.Join(h.root, "a", "new", feed, unique)
			for _, name := range strings.Fields("title id content author type pubdate") {
				write(filepath.Join(dir, name), evil(variant, fmt.Sprint(name, i)))
			}
			write(filepath.Join(dir, "extras"), "link\thttp://x.example/"+evil(variant, "x")+"\ncategory\t"+evil(variant, "x")+"\nenclosure\t"+evil(variant, "http://x.example/")+"\t"+evil(variant, "x/y"))
			must.Do(os.Symlink("../../../src/"+feed, filepath.Join(dir, "feed")))
		}
	}
}

// terminal runs a program on a terminal, for commands that print paths: these are raw in a pipe.
func (h *formatHouse) terminal(program string, args ...string) string {
	h.t.Helper()
	term := terminal.Open(h.t, 100, 1000)
	cmd := h.cmd("a", program, args...)
	var said bytes.Buffer // with no progress
	cmd.Stdin, cmd.Stdout, cmd.Stderr = term.TTY, term.TTY, &said
	_ = cmd.Run()
	out := terminal.Plain(term.Output())
	harmless(h.t, "messages of "+strings.Join(args, " "), said.String())
	harmless(h.t, strings.Join(args, " ")+" on a terminal", out)
	return out
}

// views runs the viewers, on a terminal where that matters.
func (h *formatHouse) views() {
	must.Do(os.MkdirAll(filepath.Join(h.root, "a", "etc", "view"), 0o777))
	must.Do(os.WriteFile(filepath.Join(h.root, "a", "etc", "view", "rules"), []byte("title:none -> flag k\n"), 0o666))
	list := h.terminal("lektor-view", "ls", "--no-pager")
	for _, file := range glob(h.t, h.root, "a", "etc", "view", "list.*") {
		if got, want := strings.Count(read(h.t, file), "\n"), strings.Count(list, "\n"); got != want {
			h.t.Errorf("the last list has %d entries, not %d", got, want)
		}
	}
	h.terminal("lektor-view", "show", "--no-pager", "1-4")
	h.run("a", "", "lektor-view", "ls")
	var ruled [2]string
	for i := range ruled {
		h.terminal("lektor-view", "rules", "apply")
		ruled[i] = read(h.t, h.root, "a", "etc", "view", "ruled")
	}
	if ruled[0] != ruled[1] {
		h.t.Errorf("rules were applied again:\n%.1000q", strings.TrimPrefix(ruled[1], ruled[0]))
	}
	h.terminal("lektor-view", "ls", "-a", "-o", "tsv")
	h.terminal("lektor-view", "mark", "--set", "S", "1-")
	h.terminal("lektor-view", "undo")
	h.terminal("lektor-view", "rm", "1-60")
	h.terminal("lektor-view", "undo")
	h.terminal("lektor-view", "mark", "--set", "z", "1-")
	h.run("a", "", "lektor-view", "next")
	h.t.Run("screen", func(t *testing.T) { // without tmux there is none
		screen := *h
		screen.t = t
		screen.screen()
	})
	h.terminal("lektor-view", "expire", "--dry-run", "--read", "0d")
	h.run("a", "", "lektor-view", "stats")
	h.run("a", "", "lektor-view", "publish", "--archive", "www", "--per-page", "20", "--self", h.site.URL+"/index.atom")
	save := func() {
		h.run("a", "", "lektor-view", "save", "--allow", "127.0.0.1", "--gap", "0", "--query", "has:enclosure", "saved")
	}
	save()
	h.site.mu.Lock()
	h.site.whole = true
	h.site.mu.Unlock()
	save()
	h.run("a", "", "lektor-pages", "html", "html")
	h.run("a", "", "lektor-pages", "maildir", "mail")
	if again := h.run("a", "", "lektor-pages", "maildir", "-o", "title", "mail"); again != "" {
		h.t.Errorf("mailed again: %.1000q", again)
	}
	h.run("a", "", "lektor-pages", "html", "html")
	must.Do(filepath.WalkDir(h.root, func(path string, e fs.DirEntry, err error) error {
		switch rel := strings.TrimPrefix(path, h.root+"/"); {
		case !strings.HasPrefix(rel, "saved/") && !strings.HasPrefix(rel, "html/"):
		case strings.HasSuffix(rel, ".html") && strings.Contains(read(h.t, path), "<x>"):
			h.t.Errorf("%q has the element of another", rel)
			fallthrough
		default:
			harmless(h.t, "the name of a file", e.Name())
		}
		return err
	}))
	h.run("a", "", "lektor-fetch", "ls")
	h.run("a", "", "lektor-fetch", "check")
	h.run("a", "", "lektor-fetch", "export")
}

// screen sorts and hides in a folder of the full-screen reader.
func (h *formatHouse) screen() {
	x := terminal.NewTmux(h.t, 100, 40, h.cmd("a", "").Env, "exec "+filepath.Join(h.bin, "lektor-view")+" tui")
	x.Await("Flagged")
	for _, step := range [][]string{{"the folders", "g", "d"}, {"q back", "Enter"}, {"is hidden", "H"}, {"sort the list by", "s"}, {"sorted by", "Down", "Enter"}} {
		x.Keys(step[1:]...)
		x.Await(step[0])
	}
	x.Keys("Q")
	h.await("the settings of the screen", func() bool { return strings.Count(read(h.t, h.root, "a", "etc", "view", "screen"), "\n") == 2 })
}

// share reads documents of a peer for each variant, and publishes.
func (h *formatHouse) share() {
	h.run("a", "", "lektor-share", "init", "--name", "a", filepath.Join(h.root, "shared"))
	h.run("a", "", "lektor-share", "sync", "--allow", "127.0.0.0/8")
	const bindings = ` xmlns:sx="http://www.microsoft.com/schemas/rss/sse" xmlns:lektor="https://github.com/lektordir/lektor/share" xmlns:q="urn:q"`
	for i, variant := range variants() {
		v := func(field string) string { return escape(evil(variant, field)) }
		feed := fmt.Sprintf("http://peer.example/%d", i)
		dir := filepath.Join(h.root, "shared", "evil-"+variant)
		must.Do(os.MkdirAll(dir, 0o777))
		if variant != "nul" {
			must.Do(os.MkdirAll(filepath.Join(h.root, "shared", evil(variant, "peer")), 0o777))
		}
		sharing := `<sx:sharing until="Sat, 28 Nov 2026 00:00:00 GMT" version="0.91"><sx:related link="` + v("../a") + `" title="` + v("title") + `" type="aggregated"/></sx:sharing>`
		history := fmt.Sprintf(`<sx:history by="evil-%s" when="Sat, 28 Nov 2026 00:00:00 GMT"/>`, variant)
		must.Do(os.WriteFile(filepath.Join(dir, "subscriptions.opml"), []byte(fmt.Sprintf(`<opml%[1]s><head><title>%[2]s</title>%[3]s</head><body>`+
			`<outline text="%[4]s"><sx:sync id="folder:%[5]d" version="1">%[6]s</sx:sync></outline>`+
			`<outline text="%[2]s" title="%[2]s" type="%[2]s" xmlUrl="%[7]s" htmlUrl="%[2]s" category="/%[2]s" description="%[2]s" lektor:id="%[7]s" lektor:parent="%[8]s" q:x="%[2]s"><sx:sync id="%[9]s" version="2" conflict="true">%[6]s`+
			`<sx:conflicts><sx:conflict by="evil-%[10]s" version="1" lektor:parent="%[2]s"><outline text="%[2]s" title="%[2]s" xmlUrl="%[7]s"/></sx:conflict></sx:conflicts></sx:sync></outline>`+
			`<outline text="%[2]s" xmlUrl="%[11]s" lektor:parent="folder:%[5]d"><sx:sync id="%[12]s" version="1">%[6]s</sx:sync></outline></body></opml>`,
			bindings, v("doc"), sharing, v("folder"), i, history, feed, v("folder:one"), testdir.Hash(feed), variant, feed+"/x", testdir.Hash(feed+"/x"))), 0o666))
		own := h.site.at("rss", variant)
		mark := testdir.Hash(own) + ":0000000100000000:F"
		must.Do(os.WriteFile(filepath.Join(dir, "state.rss"), []byte(fmt.Sprintf(`<rss version="2.0"%[1]s><channel><title>%[2]s</title>%[3]s<item><title>%[2]s</title><link>%[2]s</link><guid>%[2]s</guid><category>%[2]s</category><q:x>%[2]s</q:x>`+
			`<lektor:feed>%[4]s</lektor:feed><lektor:entry>%[2]s</lektor:entry><lektor:identity>0000000100000000</lektor:identity><sx:sync id="%[5]s" version="1">%[6]s<q:y>%[2]s</q:y></sx:sync></item></channel></rss>`,
			bindings, v("doc"), sharing, escape(own), mark, history)), 0o666))
	}
	for range 2 {
		h.run("a", "", "lektor-share", "sync", "--allow", "127.0.0.0/8")
	}
	h.run("a", "", "lektor-share", "status")
	h.run("a", "", "lektor-share", "conflicts")
	h.run("a", "", "lektor-share", "publish", "--set", "subscriptions", "-")
}

// notices reads ESS and NNO documents.
func (h *formatHouse) notices() {
	h.run("a", "", "lektor-ess", "poll", "--gap", "0", "--per-host", "8")
	h.run("a", "", "lektor-ess", "poll", "-o", "tsv", "--gap", "0", "--per-host", "8")
	var all string
	for _, variant := range variants() {
		nno := filepath.Join(h.root, variant+".nno")
		must.Do(os.WriteFile(nno, []byte(h.site.document("nno", variant, 1)), 0o666))
		all += h.site.document("ess", variant, 1) + "\n"
		if variant == "all" || variant == "c1" {
			h.run("a", "", "lektor-ess", "resolve", "--subscribe", nno)
			h.run("a", "", "lektor-ess", "check", nno)
		}
	}
	h.run("a", "", "lektor-ess", "resolve", "--gap", "0", h.site.at("nno", "all"))
	h.run("a", all, "lektor-ess", "decode", "-")
	h.run("a", all, "lektor-ess", "top", "-")
	h.run("a", "", "lektor-ess", "publish", "--base-url", "http://me.example/", "notices")
}

// port reserves a port for a server.
func (h *formatHouse) port() string {
	port, free, err := server.Port(true)
	must.Do(err)
	h.t.Cleanup(free)
	return fmt.Sprint(port)
}

// callbacks runs the listener of notifications until hubs have called it.
func (h *formatHouse) callbacks() {
	port := h.port()
	stop := h.start("lektor-cloudd", "listen", "--listen", "127.0.0.1:"+port, "--public-url", "http://127.0.0.1:"+port, "--allow", "127.0.0.0/8", "--gap", "0", "--per-host", "8", "--cooldown", "0", "--verbose")
	h.await("calls of hubs", func() bool { return h.site.called.Load() > 30 })
	h.await("the errors of registrations", func() bool { return len(glob(h.t, h.root, "a", "src", "*", "etc", "cloudd", "error")) > 20 })
	stop()
	h.run("a", "", "lektor-cloudd", "status")
}

// hub runs a hub for hostile subscribers and publishers.
func (h *formatHouse) hub() {
	port := h.port()
	const hash = "$2a$04$6pXfRRhBEqxtahKzfgT8x.S.YY2PXnDxYAsl0BAoyjNHNXfpFXVp6"
	must.Do(os.WriteFile(filepath.Join(h.root, "users"), []byte("bull:"+hash+"\n"), 0o600))
	stop := h.start("lektor-cloudd", "hub", "--listen", "127.0.0.1:"+port, "--public-url", "http://127.0.0.1:"+port, "--state", filepath.Join(h.root, "hub"), "--htpasswd", filepath.Join(h.root, "users"),
		"--allow-feeds", "127.0.0.0/8", "--allow-callbacks", "127.0.0.0/8", "--trusted-proxy", "127.0.0.0/8", "--verbose")
	at := "http://127.0.0.1:" + port
	h.await("the hub", func() bool {
		resp, err := http.Get(at)
		if err == nil {
			resp.Body.Close()
		}
		return err == nil
	})
	post := func(path, kind, body string) {
		req := must.Get(http.NewRequest(http.MethodPost, at+path, strings.NewReader(body)))
		req.Header.Set("Content-Type", kind)
		req.Header.Set("X-Forwarded-For", "fe80::1%\u009b\u202e\t"+forged)
		req.Header.Set("User-Agent", "\u009b\u202e\t"+forged)
		resp := must.Get(http.DefaultClient.Do(req))
		resp.Body.Close()
	}
	const form = "application/x-www-form-urlencoded"
	site := must.Get(url.Parse(h.site.URL))
	for _, variant := range variants() {
		feed := h.site.at("rss", variant)
		for _, topic := range []string{feed, feed + "?" + evil(variant, "x"), evil(variant, "http://x.example/")} {
			post("/pleaseNotify", form, url.Values{"url1": {topic}, "domain": {site.Hostname()}, "port": {site.Port()}, "path": {"/cb/" + evil(variant, "rest")}, "protocol": {"http-post"}, "notifyProcedure": {evil(variant, "x")}}.Encode())
			post("/websub", form, url.Values{"hub.mode": {"subscribe"}, "hub.topic": {topic}, "hub.callback": {h.site.at("cb", evil(variant, "websub"))}, "hub.secret": {evil(variant, "secret")}, "hub.lease_seconds": {evil(variant, "9")}}.Encode())
			post("/ping", form, url.Values{"url": {topic}}.Encode())
			post("/websub", form, url.Values{"hub.mode": {"publish"}, "hub.url": {topic}}.Encode())
		}
		post("/pleaseNotify", form, url.Values{"url1": {feed}, "domain": {evil(variant, "domain")}, "port": {evil(variant, "80")}, "path": {"/"}, "protocol": {evil(variant, "soap")}}.Encode())
		call := `<?xml version="1.0"?><methodCall><methodName>%s</methodName><params>` + strings.Repeat("<param><value><string>%s</string></value></param>", 3) + `</params></methodCall>`
		post("/RPC2", "text/xml", fmt.Sprintf(call, "rssCloud.saveRss", "bull", "secret", escape("<rss version=\"2.0\"><channel><title>"+escape(evil(variant, "x"))+"</title></channel></rss>")))
		post("/RPC2", "text/xml", fmt.Sprintf(call, escape(evil(variant, "rssCloud.ping")), escape(evil(variant, "bull")), "x", "x"))
		post("/RPC2", "text/xml", fmt.Sprintf(call, "rssCloud.pleaseNotify", escape(evil(variant, "procedure")), escape(site.Port()), escape(evil(variant, "/cb/RPC2"))))
	}
	feed := h.site.at("rss", "all")
	post("/websub", form, url.Values{"hub.mode": {"subscribe"}, "hub.topic": {feed}, "hub.callback": {h.site.at("cb", "plain")}}.Encode())
	h.await("the subscription", func() bool { return len(glob(h.t, h.root, "hub", "feeds", "*", testdir.Hash(feed), "subs", "*")) > 0 })
	h.site.mu.Lock()
	h.site.version++
	h.site.mu.Unlock()
	for _, variant := range variants() {
		post("/ping", form, url.Values{"url": {h.site.at("rss", variant)}}.Encode())
	}
	h.await("failed notifications", func() bool {
		data, _ := os.ReadFile(filepath.Join(h.root, "hub", "log"))
		return strings.Count(string(data), "answered 500") > 1
	})
	page := must.Get(http.Get(at))
	_ = page.Body.Close()
	stop()
}

// logins logs clients in to the server of the Google Reader API.
func (h *formatHouse) logins() {
	state := filepath.Join(h.root, "serve")
	h.run("a", "correct horse battery\n", "lektor-serve", "passwd", "--state", state, "ann")
	port := h.port()
	stop := h.start("lektor-serve", "--listen", "127.0.0.1:"+port, "--state", state, "--verbose")
	at := "http://127.0.0.1:" + port
	h.await("the server", func() bool {
		resp, err := http.Get(at)
		if err == nil {
			resp.Body.Close()
		}
		return err == nil
	})
	for _, variant := range []string{"all", "nul"} { // each takes a third of a second
		resp := must.Get(http.PostForm(at+"/accounts/ClientLogin", url.Values{"Email": {"ann"}, "Passwd": {"correct horse battery"}, "client": {evil(variant, "client")}}))
		text := string(must.Get(io.ReadAll(resp.Body)))
		resp.Body.Close()
		_, token, _ := strings.Cut(text, "Auth=")
		token, _, _ = strings.Cut(token, "\n")
		for _, name := range []string{variant, "escape"} {
			req := must.Get(http.NewRequest("POST", at+"/reader/api/0/edit-tag", strings.NewReader(url.Values{"a": {"user/-/label/" + evil(name, "label")}, "T": {token}}.Encode())))
			req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			req.Header.Set("Authorization", "GoogleLogin auth="+token)
			must.Get(http.DefaultClient.Do(req)).Body.Close() // a name that is not allowed is refused
		}
	}
	stop()
	h.run("a", "", "lektor-serve", "tokens", "--state", state)
}

// format is a format of files of lines. Its item is that of lektor-state(5) if the files are there.
type format struct {
	item  string
	files string // below the house, with * for any characters but a slash
	line  string // a regular expression for a line
}

// Parts of lines.
const (
	moment   = `\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`
	anyLine  = `[^\r]+` // text of others that is one line
	aField   = `[^\t\r]*`
	anEntry  = `(new|cur)/[^/\t]+/[^/\t]+`
	sumEnds  = "(?:[0-9a-f]{8})"
	identity = "[0-9a-f]{16}"
	aHash    = "[0-9a-f]{40}"
)

// formats has the files of lines that the programs keep. The first ones are those of lektor-state(5)
// in its order.
var formats = []format{
	{"src/$feed/etc/fetch/seen", "a/src/*/etc/fetch/seen", identity + " " + identity + " " + identity + ` \d+\.[^ ]+ (-|\d+\.[^ ]+) ` + sumEnds},
	{"src/$feed/etc/fetch/*", "a/src/*/etc/fetch/{url,final,etag,modified,error,origin,status,failures,body}", anyLine},
	{"", "a/src/*/etc/fetch/from", `[^\t\r]+(\t[^\t\r]+)*`},
	{"", "a/src/*/etc/fetch/moved", `\d+\thttp[^\t\r ]+`},
	{"src/$feed/etc/fetch/properties", "a/src/*/etc/fetch/properties", identity + ` [0-9a-f]{8} [0-9a-f]{8}`},
	{"etc/fetch/date", "a/etc/fetch/date", moment},
	{"kind", "a/src/*/etc/history/kind", "complete|archived|archive|paged"},
	{"prev-archive , next", "a/src/*/etc/history/{prev-archive,next}", `http[^ \t\r]+`},
	{"archives", "a/src/*/etc/history/archives", `http[^\t\r]+\t[^\t\r]+\t[^\t\r]+\t[^\t\r]+\t[0-9a-f]{64}\t` + moment + `\t` + sumEnds},
	{"baseline", "a/src/*/etc/history/baseline", `(-|http[^\t\r ]+)\t` + moment},
	{"incomplete", "a/src/*/etc/history/incomplete", `http[^\t\r ]+\t` + aField + `\t` + moment},
	{"retry", "a/src/*/etc/history/retry", `\d+\t` + moment},
	{"screen", "a/etc/view/screen", `(sort|feeds|hide) (all|flagged|(query|folder|feed) [^=]+)=[^\r]+`},
	{"ruled", "a/etc/view/ruled", `(todo|run|seen|later|done)\t[^\t\r/]+/[^\t\r/]+(\t\d+)?`},
	{"labels", "a/etc/view/labels", `[a-z]?\t[^\t\r]+`},
	{"list.HOST.UID.TERMINAL , Pa current.HOST.UID.TERMINAL", "a/etc/view/{list,current}.*", anEntry},
	{"undo/UID.NUMBER", "a/etc/view/undo/*", `[a-z ]+\t` + moment + `|` + anEntry + `\t((new|cur)/[^/\t]+/[^/\t]+|tmp/[^/\t]+/[^/\t]+;gone)|` + aHash + `\t[a-z-]+\t` + aField + `\t` + aField},
	{"replica", "a/etc/share/replica", `lektor-share 2|= ` + sumEnds + `|mark ` + aHash + `:[^\t\r]+\t(x\t[^\t\r]*|-?!?\t\d+\t[^\t\r]*\t[^\t\r]*\t[^\t\r]*)|subscriptions|item [^\t\r]*\t<outline [^\t\r]*|(complete|made|until subscriptions|until marks) [^\t\r]+ GMT|withdrawn [^\t\r]*|commit \d+|` +
		`(feed|subscribed|of|end) [^ \t\r]+|alias [^\t\r]+|in [^\t\r]+|kept|journal \d+|listed( [0-9a-f]+ \d+)?|entry ` + identity + ` (new|-[A-Za-z]*)( (-|` + identity + `)( [A-Za-z]+)?)?|gone ` + identity + `|doing [^ ]+ \d+\.\d+\.\d+\.\d+ [^\t\r]+|done|failed`},
	{"replica.commits", "a/etc/share/replica.commits", `\d+`},
	{"read/$name", "a/etc/share/read/*", `(place|read|success|wrote|until|feeds|pause|subscriptions\.opml|state-all\.rss|state\.rss)[^ ]* ` + anyLine},
	{"published", "a/etc/share/published", `(place|(subscriptions\.opml|state-all\.rss|state\.rss)(\.etag|\.modified)?) ` + anyLine},

	{"lektor-dir(5)", "a/src/[0-9a-f]*/{id,name,language,image,author,etc/link,etc/generator}", anyLine},
	{"lektor-dir(5)", "a/src/*/etc/{categories,view/alias}", anyLine},
	{"lektor-dir(5)", "a/src/*/etc/history/complete", identity},
	{"lektor-dir(5)", "a/{new,cur}/[0-9a-f]*/*/{title,id,author,type,pubdate}", `[^\r]*`},
	{"lektor-dir(5)", "a/{new,cur}/[0-9a-f]*/*/extras", `[a-z-]+(\t[^\t\r]*)+`},
	{"lektor-cloudd(1)", "a/src/*/etc/push/{hub,self}", anyLine},
	{"lektor-cloudd(1)", "a/src/*/etc/push/cloud", aField + `\t\d*\t` + aField + `\t` + aField + `\t` + aField},
	{"lektor-cloudd(1)", "a/src/*/etc/push/missed", moment},
	{"lektor-cloudd(1)", "a/src/*/etc/cloudd/{hub,protocol,topic,callback,secret,state,error}", anyLine},
	{"lektor-cloudd(1)", "a/src/*/etc/cloudd/{since,expires,next,notified}", moment},
	{"lektor-ess(1)", "a/src/*/etc/ess/{link,nno,url}", anyLine},
	{"lektor-ess(1)", "a/src/*/etc/ess/handled", `\d+,http[^, ]+,?|-?\d+,\d+,?|\d+,http[^, ]+(,-?\d+,\d+)*`},
	{"lektor-cloudd(1)", "hub/log", moment + `\t[a-z]+\t` + aField + `\t` + aField},
	{"lektor-cloudd(1)", "hub/jobs", aHash + `\t(` + aHash + `(\t\d+\t(` + moment + `)?)?|ping(\t\d+\t(` + moment + `)?\t[^\t\r]+\t[^\t\r]*)?|document(\t\d+\t` + moment + `\t[^\t\r]+\t[0-9a-f]+)?)`},
	{"lektor-cloudd(1)", "hub/feeds/*/*/feed", `(url|digest|length|changed)\t[^\t\r]+`},
	{"lektor-cloudd(1)", "hub/feeds/*/*/subs/*", `(callback|protocol|procedure|secret|feed|caller|since|expires|errors|failed|error|slow)\t[^\r]+`},
	{"lektor-serve(1)", "serve/tokens", `[^\t\r]+(\t[^\t\r]+){6}`},
	{"lektor-pages(1)", "html/.lektor-html", `lektor-html \d|entry\t[^\t\r/]+/[^\t\r/]+\t-?\d+\t` + aField + `\t` + aField + `\t(images)?\t` + aField + `\tU?F?|page\t[a-z0-9/.-]+\t[0-9a-f]+\t\d+`},
	{"lektor-pages(1)", "mail/.lektor-mail", `lektor-mail 1|[^\t\r/]+/[^\t\r/]+`},
	{"lektor-view-save(1)", "saved/*/.lektor-????????????????", `(url|validator|total|boot|name|failures|next)\t` + anyLine},
	{"saved/HASH", "a/etc/view/saved/*", `/[^\t\r]+`},
	{"lektor-view-publish(1)", "www/.archives", `lektor archives 1\tatom\t[^\t\r]+\t\d+|(-|x|\d+\+?)\t[^\t\r]+\t[^\t\r]+\t[^\t\r]+\t"[^\r]*"|sum\t[0-9a-f]+`},
}

// others are the items of lektor-state(5) that are no lines with texts of others, or are yours.
var others = strings.Split(`etc/fetch/lock/$feed|etc/fetch/commands|tmp/$feed/;purge|etc/fetch/taken/$feed|etc/fetch/spool/$feed/|etc/fetch/pages/$feed/|complete|etc/view/|src/$feed/etc/history|etc/view/undo|expired|follow|query/NAME|rules|schemes|keys|endpoint|target|headers|peers/$name|lock`, "|")

// braces returns the patterns of a pattern with lists in braces.
func braces(pattern string) []string {
	before, rest, ok := strings.Cut(pattern, "{")
	if !ok {
		return []string{pattern}
	}
	list, after, _ := strings.Cut(rest, "}")
	var all []string
	for one := range strings.SplitSeq(list, ",") {
		all = append(all, braces(before+one+after)...)
	}
	return all
}

// withoutTexts are files of the table that need not have a text of others.
var withoutTexts = strings.Fields(`seen handled properties date kind retry screen replica.commits * published complete missed {since,expires,next,notified} jobs`)

// sum returns the checksum of a text.
func sum(text string) string {
	return fmt.Sprintf("%08x", crc32.Checksum([]byte(text), crc32.MakeTable(crc32.Castagnoli)))
}

// check reads all files of a format. There must be one, with a text of others if it can have one.
func (h *formatHouse) check(f format) {
	h.t.Helper()
	form := regexp.MustCompile(`^(?s:` + f.line + `)$`)
	reached := slices.Contains(withoutTexts, filepath.Base(f.files))
	n := 0
	for _, pattern := range braces(f.files) {
		for _, file := range glob(h.t, h.root, pattern) {
			text := read(h.t, file)
			n += len(text)
			reached = reached || strings.Contains(text, forged)
			name := strings.TrimPrefix(file, h.root+"/")
			block := "" // of the replica
			for line := range strings.Lines(text) {
				line, whole := strings.CutSuffix(line, "\n")
				wrong := !whole && filepath.Base(file) != "handled" // an ESS document ends without a newline
				wrong = wrong || strings.HasPrefix(line, forged) || strings.Contains(line, "\x00") || !form.MatchString(line)
				switch end := len(line) - len("01234567"); {
				case wrong:
				case strings.HasSuffix(f.line, sumEnds):
					wrong = sum(line[:end]) != line[end:]
				case f.item != "replica":
				case line[0] == '=':
					wrong, block = sum(block) != line[end:], ""
				case line != "lektor-share 2":
					block += line + "\n"
				}
				if wrong {
					h.t.Errorf("%q has the line %.400q", name, line)
					break
				}
			}
		}
	}
	if n == 0 || !reached {
		h.t.Errorf("%s: %d bytes, with a text of others: %t", f.files, n, reached)
	}
}

// TestFormatsOfOthers: others write line breaks, NULs, escapes, C1 and bidi controls into every
// field of documents, answers, calls and files. Each line of each file of lines has its form, none
// begins that nobody wrote, and nothing printed acts on a terminal.
func TestFormatsOfOthers(t *testing.T) {
	h := &formatHouse{t: t, bin: build(t), root: t.TempDir(), site: newSite(t)}
	for _, step := range []func(){h.feeds, h.entries, h.views, h.share, h.notices, h.callbacks, h.hub, h.logins} {
		step()
	}
	var items []string
	for line := range strings.Lines(read(t, root+"/man/lektor-state.5")) {
		if item, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), ".It Pa "); ok {
			items = append(items, item)
			if !slices.Contains(others, item) && !slices.ContainsFunc(formats, func(f format) bool { return f.item == item }) {
				t.Errorf("lektor-state(5) has the file %s, which is not in the table", item)
			}
		}
	}
	for _, f := range formats {
		if f.item != "" && !strings.Contains(f.item, "(") && !slices.Contains(items, f.item) {
			t.Errorf("lektor-state(5) has no file %s", f.item)
		}
		h.check(f)
	}
	for name, opml := range map[string]string{"etc/fetch/opml": read(t, h.root, "a", "etc", "fetch", "opml"), "export": h.run("a", "", "lektor-fetch", "export")} {
		if err := xml.Unmarshal([]byte(opml), new(struct{})); err != nil || !strings.Contains(opml, forged) || strings.Contains(opml, "\n"+forged) {
			t.Errorf("%s: %v: %.1000q", name, err, opml)
		}
	}
}
