package e2e

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net/http"
	"net/http/httptest"
	"net/mail"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"unicode/utf8"

	"golang.org/x/net/html"

	"github.com/lektordir/lektor/internal/testkit/browser"
	"github.com/lektordir/lektor/internal/testkit/must"
	"github.com/lektordir/lektor/internal/testkit/terminal"
)

// nasty is an entry of an attacker. CANARY stands for a server to which no program may make a
// request.
type nasty struct{ title, content, url, author, attachment, tag string }

// escapes are texts that have an effect on a terminal.
const escapes = "\x1b]0;owned\x07\x1b[2J\x1b[1;1Howned\x1b[31m\u009b31m\x9b2J\x1b]52;c;b3duZWQ=\x07\x1bP0;1;0q#0!10~\x1b\\\x1b[?1049l\x1b[?1000h\x1bc\x0e\x00\x08\x08\x7f\r"

// hostileEntries returns the entries that each command gets.
func hostileEntries() []nasty {
	const run = `new Image().src='CANARY/run';document.title='owned'`
	var all []nasty
	for _, content := range []string{
		`<script>` + run + `</script><script src="CANARY/script"></script>`,
		`<SCR<script>IPT>` + run + `</SCR</script>IPT>`,
		`<img src="CANARY/img" onerror="` + run + `" onload=` + "`" + run + "`>",
		`<img src=x onerror=` + run + ` srcset="CANARY/srcset 2x" lowsrc=CANARY/low dynsrc=CANARY/dyn>`,
		`<body onload="` + run + `" background="CANARY/bg"><div onmouseover=` + run + `>over</div>`,
		`<svg onload="` + run + `"><image href="CANARY/svg"/><use href="data:image/svg+xml,x#y"/><script>` + run + `</script><a xlink:href="javascript:` + run + `"><text>go</text></a></svg>`,
		`<svg><style><img src=x onerror="` + run + `"></style></svg><math><mtext><table><mglyph><style><!--</style><img title="--&gt;&lt;img src=1 onerror=` + run + `&gt;">`,
		`<a href="javascript:` + run + `">one</a><a href="JaVa&#10;ScRiPt:` + run + `">two</a><a href=" &#1;javascript:` + run + `">three</a>`,
		`<a href="data:text/html,<script>` + run + `</script>">data</a><a href="vbscript:x">vb</a><a href="file:///etc/passwd">file</a><a href="//CANARYHOST/rel">rel</a>`,
		`<meta http-equiv="refresh" content="0;url=CANARY/meta"><base href="CANARY/base/"><link rel="stylesheet" href="CANARY/css"><link rel="dns-prefetch preconnect prefetch" href="CANARY/pre">`,
		`<style>@import 'CANARY/import';body{display:none}*{background:url(CANARY/star)}</style><p style="position:fixed;inset:0;background:url('CANARY/style');z-index:9">over it all</p>`,
		`<iframe src="CANARY/frame" srcdoc="<script>` + run + `</script>"></iframe><object data="CANARY/object"></object><embed src="CANARY/embed"><applet code=x archive=CANARY/applet></applet>`,
		`<form action="CANARY/form"><input autofocus onfocus="` + run + `"><button formaction="javascript:` + run + `">b</button><input type=image src=CANARY/input></form>`,
		`<video src="CANARY/video" poster="CANARY/poster" autoplay onplay="` + run + `"></video><audio src="CANARY/audio" autoplay></audio><picture><source srcset="CANARY/source"><img alt=i></picture>`,
		`<details open ontoggle="` + run + `"><summary>s</summary>x</details><marquee onstart="` + run + `">m</marquee><xss id=x tabindex=1 onfocus="` + run + `">`,
		`<noscript><p title="</noscript><img src=x onerror=` + run + `>"></noscript><plaintext>`,
		`<xmp><img src=x onerror="` + run + `"></xmp><textarea><img src=x></textarea><title>owned</title><select><option>o</select>`,
		`<!--><img src=x onerror="` + run + `">--><![CDATA[<script>` + run + `</script>]]><?php x ?><!DOCTYPE html><html><head>`,
		`</article></main></body></html><script>` + run + `</script>`,
		`<a href="http://x.example/" ping="CANARY/ping" target="_blank" onclick="` + run + `">ping</a><a href='http://x.example/"onmouseover="` + run + `'>q</a>`,
		`<img src="CANARY/pixel.gif" width="1" height="1"><img src="CANARY/a.png" alt="&#34; onerror=&#34;` + run + `">`,
		`<p>` + escapes + `&#27;[2J&#x1b;]0;owned&#7;&#155;31m&#x9b;2J</p>`,
		"<p>\u202egnp.exe\u2066\u2067\u061c x\u2069</p>&#x202e;&rlm;&lrm;",
		strings.Repeat("<div>", 5000) + "deep" + strings.Repeat("</div>", 5000),
		strings.Repeat("<blockquote>", 3000) + "quoted",
		strings.Repeat("<table><tr><td>", 400) + "cell",
		strings.Repeat("<ul><li>", 400) + "item",
		strings.Repeat("<b><i><a href=x>", 300) + "inline",
		`<p>` + strings.Repeat("w", 1<<20) + `</p>`,
		"<p>" + "Z" + strings.Repeat("\u0301", 5000) + strings.Repeat("\u200b\ufe0f\u200d", 2000) + "👩‍👩‍👧‍👦" + strings.Repeat("\t", 500) + "</p>",
		"<pre>From nobody\nFrom: somebody\n.\n\r\n.\r\n\nFrom evil@example.org Mon Jan  1 00:00:00 2024\nSubject: owned\n\nbody</pre>",
		`<table><tr><th colspan="999999999" rowspan="-3">x</th></tr></table><ol start="99999999999999999999"><li value="x">y</ol><font color=red size=+9999>f</font>`,
		"\xff\xfe\xed\xa0\x80 broken \xc3( UTF-8",
	} {
		all = append(all, nasty{content: content})
	}
	const plain = "<p>Nothing."
	for _, title := range []string{
		escapes + "title", "<script>" + run + "</script>", "Hello\r\nBcc: victim@example.org\r\nX-Owned: yes\r\n\r\nowned", "\u202eltr\u2066", strings.Repeat("long ", 200_000),
		"../../../../tmp/owned", "=?utf-8?q?owned=0D=0AX-Owned:_yes?=", "{{.path}} %s %n $(id) `id` ; rm -rf ~ | & > x", strings.Repeat("\u0301", 3000), "\n\n\n", "]]></title><script>" + run + "</script>", "- --help", "a\tb\\nc\\",
	} {
		all = append(all, nasty{title: title, content: plain})
	}
	for _, evil := range []string{"javascript:" + run, "data:text/html,<script>" + run + "</script>", "http://x.example/\r\nX-Owned: yes", `http://x.example/"onmouseover="` + run, "http://u:hunter2@x.example/", "file:///etc/passwd", "http://x.example/\x1b[2J", "ht\ttp://x.example/", "//CANARYHOST/x", strings.Repeat("http://x.example/", 5000)} {
		all = append(all, nasty{content: plain, url: evil, attachment: evil, tag: evil, author: evil})
	}
	for _, author := range []string{escapes + "author", "Ann\r\nX-Owned: yes <ann@example.org>", `"<script>` + run + `</script>" <a@b>`, "ann@example.org>\r\nBcc: victim@example.org", strings.Repeat("a", 100_000) + "@example.org", "\u202eann"} {
		all = append(all, nasty{content: plain, author: author, tag: author})
	}
	return all
}

// hostileDir returns a lektor-dir with all hostile entries, delivered by lektor-fetch and by a
// script that cleans nothing.
func hostileDir(t *testing.T, canary string) (dir string, command func(args ...string) []byte, entries int) {
	t.Helper()
	bin := build(t)
	dir = filepath.Join(t.TempDir(), "feeds")
	run := func(stdin []byte, args ...string) []byte {
		t.Helper()
		cmd := exec.Command(filepath.Join(bin, args[0]), args[1:]...)
		cmd.Env = append(os.Environ(), "LEKTORDIR="+dir, "LC_ALL=C.UTF-8", "XDG_CACHE_HOME="+filepath.Dir(dir))
		cmd.Stdin = bytes.NewReader(stdin)
		var said bytes.Buffer
		cmd.Stderr = &said
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%q: %v\n%.2000s", args, err, said.String())
		}
		harmless(t, strings.Join(args, " ")+", what it says", said.String())
		return out
	}
	host := strings.TrimPrefix(canary, "http://")
	fill := strings.NewReplacer("CANARYHOST", host, "CANARY", canary)
	var items []map[string]any
	all := hostileEntries()
	for i, e := range all {
		item := map[string]any{"id": fmt.Sprintf("urn:x:%d", i), "title": fill.Replace(e.title), "content_html": fill.Replace(e.content), "url": fill.Replace(e.url), "date_published": "2026-11-01T10:00:00Z"}
		if e.author != "" {
			item["authors"] = []any{map[string]string{"name": fill.Replace(e.author), "url": fill.Replace(e.author)}}
			item["tags"] = []string{fill.Replace(e.tag)}
		}
		if e.attachment != "" {
			item["attachments"] = []any{map[string]any{"url": fill.Replace(e.attachment), "mime_type": "audio/mpeg\r\nX-Owned: yes"}}
		}
		items = append(items, item)
	}
	doc := must.Get(json.Marshal(map[string]any{"version": "https://jsonfeed.org/version/1.1", "title": fill.Replace("<script src=CANARY/feed></script>" + escapes + "../../feed"), "items": items}))
	run(doc, "lektor-fetch", "deliver", "--id", "http://feed.example/json")
	if got := len(glob(t, dir, "new/*/*")); got != len(all) {
		t.Fatalf("%d of %d entries were delivered", got, len(all))
	}
	// These entries would not pass our fetcher.
	feed := strings.Repeat("f", 40)
	write := func(path, data string) {
		path = filepath.Join(dir, path)
		must.Do(os.MkdirAll(filepath.Dir(path), 0o777))
		must.Do(os.WriteFile(path, []byte(fill.Replace(data)), 0o666))
	}
	write("src/"+feed+"/id", "javascript:alert(1)\n")
	write("src/"+feed+"/name", escapes+"\nX-Owned: yes\n")
	for i, e := range all {
		at := fmt.Sprintf("new/%s/%d.%d.evil", feed, 1790000000+i, i)
		write(at+"/title", e.title+"\n")
		write(at+"/id", fmt.Sprintf("urn:y:%d %s\n", i, e.url))
		write(at+"/content", e.content)
		write(at+"/type", "text/html\n")
		write(at+"/author", e.author+"\n")
		write(at+"/extras", "link\t"+e.url+"\nenclosure\t"+e.attachment+"\taudio/mpeg"+escapes+"\t5\ncategory\t"+e.tag+"\nimage\tCANARY/image\nsummary\t"+escapes+"<script>\nsource\t"+e.url+"\t"+e.title+"\n")
		must.Do(os.Symlink("../../../src/"+feed, filepath.Join(dir, at, "feed")))
	}
	return dir, func(args ...string) []byte { t.Helper(); return run(nil, args...) }, 2 * len(all)
}

// harmless fails the test if a text for a terminal has a forbidden character. Direction marks,
// which some languages need, are not overrides and are allowed.
func harmless(t *testing.T, what, text string) {
	t.Helper()
	if !utf8.ValidString(text) {
		t.Errorf("%s: it is not UTF-8", what)
	}
	for i, r := range text {
		switch {
		case r == '\n' || r == '\t':
		case r < ' ', r >= 0x7f && r < 0xa0, r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069:
			t.Errorf("%s: %U at %d: %q", what, r, i, text[max(0, i-60):min(len(text), i+20)])
			return
		}
	}
}

// tame are the elements and attributes that a page for others may have. The list is
// independent of the code.
var tame = strings.Fields(`html head meta title link body header nav main section article aside footer h1 h2 h3 h4 h5 h6 p br hr div span a b i u s em strong small mark
	sub sup del ins cite code pre kbd samp var abbr dfn q blockquote ul ol li dl dt dd table caption thead tbody tfoot tr th td figure figcaption
	img audio video time details summary address bdi bdo wbr rt ruby rp
	math semantics mrow mi mn mo ms mtext mspace msup msub msubsup mfrac msqrt mroot mover munder munderover mmultiscripts mprescripts none mtable mtr mtd mpadded mphantom mstyle merror`)

var tameAttributes = strings.Fields(`href src alt title class id lang dir rel charset name content datetime width height loading referrerpolicy controls preload
	colspan rowspan start reversed value http-equiv hreflang type scope aria-label`)

// inPage checks every token of a page, or of a message, with another parser: each must be
// tame, and only links lead out of the page. exists reports whether a relative
// URL leads to a file; it is nil for a message, which has no relative URLs.
func inPage(t *testing.T, what, page, canary string, exists func(string) bool) {
	t.Helper()
	bad := func(format string, args ...any) { t.Errorf("%s: %s", what, fmt.Sprintf(format, args...)) }
	for i, r := range page {
		if r != '\n' && r != '\t' && (r < ' ' || r >= 0x7f && r < 0xa0) {
			bad("%U in it: %q", r, page[max(0, i-60):min(len(page), i+20)])
			break
		}
	}
	z := html.NewTokenizer(strings.NewReader(page))
	z.SetMaxBuf(64 << 20)
	for {
		switch z.Next() {
		case html.ErrorToken:
			if z.Err() != io.EOF {
				bad("%v", z.Err())
			}
			return
		case html.StartTagToken, html.SelfClosingTagToken:
			tok := z.Token()
			if !slices.Contains(tame, tok.Data) {
				bad("an element %s", tok)
				continue
			}
			attr := map[string]string{}
			for _, a := range tok.Attr {
				if attr[a.Key] = a.Val; a.Key == "style" && exists == nil && ownStyle(a.Val) {
					continue // a message contains its style
				}
				if a.Key == "tabindex" && a.Val == "0" && (tok.Data == "pre" || tok.Data == "table") {
					continue // a scrolling element must be focusable, but not change the order
				}
				if !slices.Contains(tameAttributes, a.Key) {
					bad("an attribute %q: %.200s", a.Key, tok)
				}
			}
			if v, ok := attr["http-equiv"]; ok && !strings.EqualFold(v, "Content-Security-Policy") {
				bad("%s", tok)
			}
			if tok.Data == "link" {
				if attr["rel"] == "icon" && attr["href"] == "data:," {
					continue // an empty icon, so that no browser requests one
				}
				if attr["rel"] != "stylesheet" {
					bad("%s", tok)
				}
			}
			for _, key := range []string{"href", "src"} {
				raw, ok := attr[key]
				if !ok {
					continue
				}
				u, err := url.Parse(raw)
				switch {
				case err != nil, strings.ContainsAny(raw, "\t\r\n\x00 "):
					bad("%s: %v", tok, err)
				case key == "href" && tok.Data == "a" && (u.Scheme == "http" || u.Scheme == "https") && u.User == nil && u.Host != "":
					if !strings.Contains(attr["rel"], "noopener") || !strings.Contains(attr["rel"], "noreferrer") {
						bad("it tells whence one comes: %s", tok)
					}
				case key == "href" && tok.Data == "a" && u.Scheme == "mailto":
				case tok.Data == "audio" || tok.Data == "video":
					// It is played only if the reader starts it.
					if attr["preload"] != "none" || u.Scheme != "http" && u.Scheme != "https" {
						bad("%s", tok)
					}
				case u.Scheme == "" && u.Host == "" && exists != nil && exists(u.Path):
				default:
					bad("it leads to %.200q: %.300s", raw, tok)
				}
			}
			if strings.Contains(attr["content"], canary) {
				bad("%s", tok)
			}
		}
	}
}

// ownStyle reports whether a style sets only text and spacing, so that it loads and covers
// nothing.
func ownStyle(style string) bool {
	for declaration := range strings.SplitSeq(style, ";") {
		name, value, _ := strings.Cut(declaration, ":")
		if !slices.Contains([]string{"color", "font", "font-size", "line-height", "margin", "max-width", "padding", "overflow-wrap", "border", "border-left", "border-top", "border-bottom", "white-space", "", "height"}, strings.TrimSpace(name)) ||
			strings.ContainsAny(value, `(\@"'`) {
			return false
		}
	}
	return true
}

// TestHostileEntries: in all output of hostile entries, nothing runs, makes a request, or breaks
// out.
func TestHostileEntries(t *testing.T) {
	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		t.Errorf("somebody asked for %.200s", r.URL)
	}))
	defer server.Close()
	dir, command, entries := hostileDir(t, server.URL)
	paths := strings.Fields(string(command("lektor-view", "ls", "-o", "path")))
	if len(paths) != entries {
		t.Errorf("%d of %d entries are listed", len(paths), entries)
	}

	for what, args := range map[string][]string{
		"ls":       {"ls"},
		"tsv":      {"ls", "-o", "tsv"},
		"json":     {"ls", "-o", "json"},
		"template": {"ls", "-o", "{{.feed}} {{.title}} {{.author}} {{.url}} {{.categories}}"},
		"show":     append([]string{"show"}, paths...),
		"narrow":   append([]string{"show", "--width", "20"}, paths...),
		"next":     {"next", "--keep"},
		"digest":   {"digest", "--keep"},
		"count":    {"count", "--feeds"},
		"stats":    {"stats"},
		"rss":      {"publish", "--format", "rss", "--self", "http://me.example/"},
		"atom":     {"publish", "--format", "atom", "--self", "http://me.example/"},
		"jsonfeed": {"publish", "--format", "json", "--self", "http://me.example/"},
	} {
		out := string(command(append([]string{"lektor-view"}, args...)...))
		switch what {
		case "rss", "atom":
			published(t, what, out, entries)
		case "jsonfeed", "json":
			for line := range strings.Lines(out) {
				if what == "json" && !json.Valid([]byte(line)) {
					t.Errorf("%s: %.200q", what, line)
				}
			}
			if what == "jsonfeed" && !json.Valid([]byte(out)) {
				t.Errorf("%s is none", what)
			}
		case "ls", "tsv":
			if n := strings.Count(out, "\n"); n != entries {
				t.Errorf("%s: %d lines for %d entries", what, n, entries)
			}
			fallthrough
		default:
			harmless(t, what, out)
		}
		if args[0] == "publish" && strings.Contains(out, "hunter2") {
			t.Errorf("%s has a password", what)
		}
	}

	t.Run("html", func(t *testing.T) { hostileSite(t, dir, server.URL, command, entries) })
	t.Run("page", func(t *testing.T) { hostilePage(t, dir, server.URL, paths) })
	t.Run("mbox", func(t *testing.T) { hostileMail(t, server.URL, string(command("lektor-view", "mbox")), entries) })
	t.Run("digest", func(t *testing.T) {
		inPage(t, "digest", string(command("lektor-view", "digest", "--html", "--full", "--keep")), server.URL, nil)
		letter := string(command("lektor-view", "digest", "--html", "--full", "--keep", "--mail", "kim@example.org"))
		message(t, "digest by mail", server.URL, letter)
	})
	t.Run("stats", func(t *testing.T) {
		bar := regexp.MustCompile(`<svg( (role|viewBox|preserveAspectRatio)="[^"<>]*")*>(<(title|desc)>[^<]*</(title|desc)>|<rect( (x|y|width|height|class)="[a-z0-9]*")*/>)*</svg>`)
		page := string(command("lektor-view", "stats", "--html"))
		_, rest, _ := strings.Cut(page, "</style>")
		inPage(t, "stats", bar.ReplaceAllString(rest, ""), server.URL, nil)
	})
	t.Run("maildir", func(t *testing.T) { hostileMaildir(t, server.URL, command, entries) })
	t.Run("records", func(t *testing.T) { hostileRecords(t, command, entries) })
	t.Run("run", func(t *testing.T) { hostileRun(t, dir, entries) })
	t.Run("words", func(t *testing.T) { hostileWords(t, command) })
	t.Run("scripts", func(t *testing.T) { hostileScripts(t, dir, entries) })
	t.Run("tui", func(t *testing.T) { hostileScreen(t, dir) })
	t.Run("viewer", func(t *testing.T) { hostileViewer(t, dir) })
	if n := asked.Load(); n > 0 {
		t.Errorf("%d requests left", n)
	}
}

// published checks a feed with another parser.
func published(t *testing.T, what, doc string, entries int) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(doc))
	n := 0
	for {
		tok, err := d.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Errorf("got %s: %v; want err == nil", what, err)
			return
		}
		start, ok := tok.(xml.StartElement)
		if !ok {
			continue
		}
		if start.Name.Local == "item" || start.Name.Local == "entry" {
			n++
		}
		for _, a := range start.Attr {
			// Feed readers remove white space first.
			if u, err := url.Parse(strings.Join(strings.Fields(a.Value), "")); (a.Name.Local == "href" || a.Name.Local == "url") && (err != nil || !slices.Contains([]string{"http", "https", "mailto", "urn", ""}, u.Scheme)) {
				t.Errorf("%s: <%s %s=%.200q>", what, start.Name.Local, a.Name.Local, a.Value)
			}
		}
	}
	if n != entries {
		t.Errorf("%s: %d of %d entries", what, n, entries)
	}
}

// hostileSite checks a site, and opens all of it in a browser.
func hostileSite(t *testing.T, dir, canary string, command func(...string) []byte, entries int) {
	to := filepath.Join(t.TempDir(), "www")
	command("lektor-view", "html", to)
	var pages []string
	must.Do(filepath.WalkDir(to, func(path string, e os.DirEntry, err error) error {
		must.Do(err)
		if !strings.HasSuffix(path, ".html") {
			return nil
		}
		rel := must.Get(filepath.Rel(to, path))
		if !strings.HasSuffix(path, "-images.html") {
			// Skip large pages, on which a browser is slow, and half of the others, since both
			// feeds have the same entries.
			if info := must.Get(e.Info()); info.Size() < 100<<10 && strings.HasPrefix(rel, "entry") && len(pages) < entries/2 {
				pages = append(pages, rel)
			}
			exists := func(target string) bool {
				full := filepath.Join(filepath.Dir(path), filepath.FromSlash(target))
				_, err := os.Stat(full)
				return err == nil && strings.HasPrefix(full, to)
			}
			inPage(t, rel, string(must.Get(os.ReadFile(path))), canary, exists)
		}
		return nil
	}))
	if n := len(glob(t, to, "entry/*.html")) - len(glob(t, to, "entry/*-images.html")); n != entries {
		t.Errorf("%d pages for %d entries", n, entries)
	}
	if t.Failed() {
		return
	}
	// All pages are joined into one. A script that runs changes the title.
	mux := http.NewServeMux()
	mux.Handle("/www/", http.StripPrefix("/www/", http.FileServer(http.Dir(to))))
	mux.HandleFunc("/all", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, "<!DOCTYPE html><title>all of it</title>")
		for _, p := range pages {
			fmt.Fprintf(w, `<iframe src="/www/%s"></iframe>`, p)
		}
	})
	s := httptest.NewServer(mux)
	defer s.Close()
	page, console := browser.Open(t, s.URL+"/all", 1000)
	if !strings.Contains(page, "<title>all of it</title>") || strings.Count(page, "<iframe") != len(pages) {
		t.Errorf("a page got out of its frame: %.500s", page)
	}
	if console != "" {
		t.Errorf("the browser says:\n%.2000s", console)
	}
}

// hostileMail reads a mailbox with net/mail: its messages, their headers and their content.
func hostileMail(t *testing.T, canary, box string, entries int) {
	// A line with this beginning, after an empty line, begins a message.
	var messages []*strings.Builder
	empty := true
	for line := range strings.Lines(box) {
		switch {
		case empty && strings.HasPrefix(line, "From "):
			messages = append(messages, &strings.Builder{})
		case len(messages) == 0:
			t.Fatalf("it begins with %.100q", line)
		default:
			messages[len(messages)-1].WriteString(line)
		}
		empty = strings.TrimRight(line, "\r\n") == ""
		if len(strings.TrimRight(line, "\r\n")) > 998 {
			t.Errorf("a line of %d bytes: %.100q", len(line), line)
		}
	}
	if len(messages) != entries {
		t.Errorf("%d messages of %d entries", len(messages), entries)
	}
	for i, text := range messages {
		message(t, fmt.Sprintf("message %d", i), canary, text.String())
	}
}

// message checks a message, by net/mail.
func message(t *testing.T, what, canary, text string) {
	t.Helper()
	m, err := mail.ReadMessage(bufio.NewReader(strings.NewReader(text)))
	if err != nil {
		t.Errorf("got %s: %v; want err == nil", what, err)
		return
	}
	for name, values := range m.Header {
		if name == "Bcc" || strings.HasPrefix(name, "X-Owned") || len(values) != 1 {
			t.Errorf("%s has %s: %.200q", what, name, values)
		}
	}
	decoder := mime.WordDecoder{}
	for _, name := range []string{"Subject", "From"} {
		v, err := decoder.DecodeHeader(m.Header.Get(name))
		if err != nil {
			t.Errorf("got %s, %s: %v; want err == nil", what, name, err)
		}
		harmless(t, what+", "+name, v)
	}
	if from := m.Header.Get("From"); from != "" || what != "digest by mail" { // sendmail sets it
		if _, err := m.Header.AddressList("From"); err != nil {
			t.Errorf("%s is from %.200q: %v", what, from, err)
		}
	}
	parts(t, what, canary, m.Header.Get("Content-Type"), m.Header.Get("Content-Transfer-Encoding"), m.Body)
}

// parts checks the content of a message, or of a part of one.
func parts(t *testing.T, what, canary, contentType, encoding string, body io.Reader) {
	t.Helper()
	kind, params, err := mime.ParseMediaType(contentType)
	if err != nil {
		t.Errorf("%s is of type %.200q: %v", what, contentType, err)
		return
	}
	if strings.HasPrefix(kind, "multipart/") {
		r := multipart.NewReader(body, params["boundary"])
		for {
			p, err := r.NextRawPart()
			if err == io.EOF {
				return
			}
			if err != nil {
				t.Errorf("got %s: %v; want err == nil", what, err)
				return
			}
			parts(t, what, canary, p.Header.Get("Content-Type"), p.Header.Get("Content-Transfer-Encoding"), p)
		}
	}
	switch strings.ToLower(encoding) {
	case "quoted-printable":
		body = quotedprintable.NewReader(body)
	case "base64":
		body = base64.NewDecoder(base64.StdEncoding, body)
	}
	data, err := io.ReadAll(body)
	if err != nil {
		t.Errorf("got %s, %s: %v; want err == nil", what, kind, err)
	}
	text := strings.ReplaceAll(string(data), "\r\n", "\n")
	switch kind {
	case "text/html":
		inPage(t, what, text, canary, nil)
	case "text/plain":
		harmless(t, what, text)
	default:
		t.Errorf("%s has a part of type %s", what, kind)
	}
}

// hostileScreen opens all entries on a screen, and checks the screen.
func hostileScreen(t *testing.T, dir string) {
	const width, height = 80, 24
	x := terminal.NewTmux(t, width, height, []string{"LEKTORDIR=" + dir, "XDG_CACHE_HOME=" + filepath.Dir(dir), "LC_ALL=C.UTF-8", "TERM=tmux-256color"},
		filepath.Join(build(t), "lektor-view")+" tui; echo ended with $?")
	title := x.Tell("#{pane_title}")
	x.Await("unread")
	x.Keys("l", "Enter")
	x.Await("Feed: ")
	for range 40 {
		lines := x.Screen()
		screen := strings.Join(lines, "\n")
		harmless(t, "tui", screen)
		if got := x.Tell("#{pane_title} #{alternate_on} #{pane_width}x#{pane_height}"); got != fmt.Sprintf("%s 1 %dx%d", title, width, height) {
			t.Fatalf("the terminal is %q\n%s", got, screen)
		}
		if strings.HasPrefix(screen, "owned") {
			t.Fatalf("it was drawn over:\n%s", screen)
		}
		if t.Failed() {
			break
		}
		x.Keys("n")
	}
	x.Keys("Q")
	x.Await("ended with 0")
}
