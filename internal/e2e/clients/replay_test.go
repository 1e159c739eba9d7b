package clients

import (
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/lektordir/lektor/internal/testkit/server"
	"github.com/lektordir/lektor/internal/testkit/testdir"
)

// player replays the requests that a client makes, from a file of testdata. Each line is
//
//	# …                      a comment
//	METHOD TARGET            a request; the lines below belong to it:
//	Name: value              its header
//	| part                   a part of its form; parts are joined with &, or are those of a
//	                         multipart form whose boundary is x
//	batch N LIST             repeat the request for each N values of a list
//	pages                    repeat the request with c= for each continuation
//	= STATUS                 the wanted status (default 200)
//	is TEXT, has TEXT        the wanted body, or a part of it
//	keep NAME REGEXP         the values of the group in all matches become a list
//	ids NAME, items NAME     the ids of the answer become a list of decimals
//	                         an empty line ends the request
//	take NAME LIST N         NAME is the first N values of a list
//	without NAME LIST OTHER  NAME is the list without the values of another
//	same LIST STREAM -STREAM…  the list has the entries of a stream, without others
//	all LIST PROPERTY        the entries are read, unread, starred or plain
//	view FLAG LIST           lektor-view sets a flag of the entries, or with - clears it
//	subscribed URL, unsubscribed URL
//	folders URL LIST         the feed is in these folders, with commas between
//
// In targets, headers and parts, {NAME} is a value; a part with {NAME*} is repeated for each
// value of the list. :long, :hex and :query after the name change how it is spelled.
type player struct {
	*checks
	lists map[string][]string
	at    string // file and line
}

// request is one with all lines that belong to it.
type request struct {
	at, method, target string
	header, parts      []string
	after              [][]string // directives
	status             int
	pages              bool
	batch              int
	of                 string
}

// TestReplay replays what known clients send. The lektor-dir shows each of their edits.
func TestReplay(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.replay")
	if err != nil || len(files) < 5 {
		t.Fatal(files, err)
	}
	origin := server.Start(t, "127.0.0.1")
	origin.Handle("/feed", server.Doc("", server.RSS("Origin", 0, 3)))
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".replay"), func(t *testing.T) {
			t.Parallel()
			w := fill(t)
			s := serveDir(t, w.dir.Path, "--allow", "127.0.0.0/8")
			p := &player{checks: &checks{s, oracle{t, w.dir.Path, false}, t, w}, lists: map[string][]string{
				"user": {user}, "password": {password}, "origin": {origin.URL("/feed?a=1&b=2")}, "alpha": {"feed/" + testdir.Hash(alphaID)}, "alphaURL": {alphaID},
			}}
			p.play(file)
		})
	}
}

func (p *player) play(file string) {
	p.t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		p.t.Fatal(err)
	}
	var r *request
	for n, line := range strings.Split(string(b)+"\n", "\n") {
		p.at = fmt.Sprintf("%s:%d", file, n+1)
		words := strings.Fields(line)
		switch {
		case strings.HasPrefix(line, "#"):
		case len(words) == 0:
			if r != nil {
				p.send(r)
				r = nil
			}
		case r == nil && (words[0] == "GET" || words[0] == "POST"):
			r = &request{at: p.at, method: words[0], target: words[1], status: http.StatusOK}
		case r == nil:
			p.do1(words)
		default:
			p.extend(r, line, words)
		}
		if p.t.Failed() {
			p.t.Fatalf("%s: %s", p.at, line)
		}
	}
}

// extend adds a line to a request.
func (p *player) extend(r *request, line string, words []string) {
	part, isPart := strings.CutPrefix(line, "| ")
	switch {
	case isPart:
		r.parts = append(r.parts, part)
	case strings.HasSuffix(words[0], ":"):
		r.header = append(r.header, line)
	case words[0] == "pages":
		r.pages = true
	case words[0] == "batch":
		r.batch, r.of = p.number(words[1]), words[2]
	case words[0] == "=":
		r.status = p.number(words[1])
	default:
		r.after = append(r.after, strings.SplitN(line, " ", 3))
	}
}

func (p *player) number(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		p.t.Fatalf("%s: %v", p.at, err)
	}
	return n
}

// send sends a request as often as it says, and looks at the answers.
func (p *player) send(r *request) {
	p.t.Helper()
	if r.of == "" {
		p.sendOne(r, "")
		return
	}
	whole := p.lists[r.of]
	for chunk := range slices.Chunk(whole, r.batch) {
		p.lists[r.of] = chunk
		p.sendOne(r, "")
	}
	p.lists[r.of] = whole
}

var continuation = regexp.MustCompile(`"continuation":\s*"([^"]+)"`)

func (p *player) sendOne(r *request, more string) {
	p.t.Helper()
	var parts, header []string
	for _, part := range r.parts {
		parts = append(parts, p.expand(part)...)
	}
	for _, h := range r.header {
		header = append(header, p.expand(h)...)
	}
	body := strings.Join(parts, "&")
	if slices.Contains(header, "Content-Type: multipart/form-data; boundary=x") {
		body = ""
		for _, part := range parts {
			name, value, _ := strings.Cut(part, "=")
			body += fmt.Sprintf("--x\r\nContent-Disposition: form-data; name=%q\r\n\r\n%s\r\n", name, value)
		}
		body += "--x--\r\n"
	}
	a := p.do(r.method, p.expand(r.target)[0]+more, body, header...)
	if a.status != r.status {
		p.t.Fatalf("%s: %s; want the status %d", r.at, a, r.status)
	}
	for _, d := range r.after {
		p.look(r, a, d)
	}
	if m := continuation.FindStringSubmatch(a.body); r.pages && m != nil {
		p.sendOne(r, "&c="+url.QueryEscape(m[1]))
	}
}

var variable = regexp.MustCompile(`\{(\w+)(\*?)((?::\w+)*)\}`)

// expand puts values into a text, once for each value of a list with a star.
func (p *player) expand(text string) []string {
	p.t.Helper()
	m := variable.FindStringSubmatchIndex(text)
	if m == nil {
		return []string{text}
	}
	name, star, how := text[m[2]:m[3]], m[4] < m[5], text[m[6]:m[7]]
	values, ok := p.lists[name]
	if !ok || len(values) == 0 && !star {
		p.t.Fatalf("%s: nothing has the name %s", p.at, name)
	}
	if !star {
		values = values[:1]
	}
	var all []string
	for _, v := range values {
		for _, rest := range p.expand(text[m[1]:]) {
			all = append(all, text[:m[0]]+p.spell(v, how)+rest)
		}
	}
	return all
}

func (p *player) spell(value, how string) string {
	for h := range strings.SplitSeq(strings.TrimPrefix(how, ":"), ":") {
		n, _ := strconv.ParseInt(value, 10, 64)
		switch h {
		case "long":
			value = long(n)
		case "hex":
			value = bare(n)
		case "query":
			value = strings.ReplaceAll(url.QueryEscape(value), "+", "%20")
		}
	}
	return value
}

// look does a directive that looks at an answer.
func (p *player) look(r *request, a answer, d []string) {
	p.t.Helper()
	bad := func(want string) { p.t.Fatalf("%s: %s; want %s", r.at, a, want) }
	name := d[1]
	switch rest := strings.Join(d[1:], " "); d[0] {
	case "is":
		if a.body != rest {
			bad(rest)
		}
	case "has":
		if !strings.Contains(a.body, p.expand(rest)[0]) {
			bad(p.expand(rest)[0])
		}
	case "keep":
		found := regexp.MustCompile(d[2]).FindAllStringSubmatch(a.body, -1)
		if found == nil {
			bad(d[2])
		}
		p.lists[name] = nil
		for _, m := range found {
			p.lists[name] = append(p.lists[name], m[1])
		}
	case "ids":
		var got idsAnswer
		decode(p.t, a, &got)
		p.lists[name] = slices.Clone(p.lists[name])
		for _, ref := range got.ItemRefs {
			p.lists[name] = append(p.lists[name], ref.ID)
		}
		if p.lists[name] == nil {
			p.lists[name] = []string{}
		}
	case "items":
		var got contentsAnswer
		decode(p.t, a, &got)
		subscribed := p.subscribed()
		for n, i := range p.entriesOf(got) {
			id, _ := strconv.ParseInt((*got.Items[n].ID)[len("tag:google.com,2005:reader/item/"):], 16, 64)
			p.lists[name] = append(p.lists[name], short(id))
			p.fields(got.Items[n], i, subscribed)
		}
	default:
		p.t.Fatalf("%s: no directive %q", r.at, d[0])
	}
}

// do1 does a directive between requests.
func (p *player) do1(words []string) {
	p.t.Helper()
	name := words[1]
	switch words[0] {
	case "take":
		p.lists[name] = newestOf(p.lists[words[2]], p.number(words[3]))
	case "without":
		p.lists[name] = slices.DeleteFunc(slices.Clone(p.lists[words[2]]), func(id string) bool { return slices.Contains(p.lists[words[3]], id) })
	case "same":
		want := p.stream(p.expand(words[2])[0], trimmed(words[3:])...)
		p.checks.same(p.at, sorted(p.found(name)), want)
	case "all":
		if len(p.lists[name]) == 0 {
			p.t.Fatalf("%s: the list is empty", p.at)
		}
		for _, i := range p.found(name) {
			is := map[string]bool{"read": i.read, "unread": !i.read, "starred": i.starred(), "plain": !i.starred()}
			if !is[words[2]] {
				p.t.Errorf("%s: %q is not %s (%s)", p.at, i.title, words[2], i.path)
			}
		}
	case "view":
		flag, set := strings.CutPrefix(name, "-")
		args := []string{"mark", map[bool]string{true: "--clear", false: "--set"}[set], flag}
		for _, i := range p.found(words[2]) {
			args = append(args, i.path)
		}
		p.run("", "lektor-view", args...)
	case "folders":
		if got := strings.Join(p.folders(testdir.Hash(p.expand(name)[0])), ","); got != words[2] {
			p.t.Errorf("%s: the folders are %s", p.at, got)
		}
	case "subscribed", "unsubscribed":
		if u := p.expand(name)[0]; p.there(u) != (words[0] == "subscribed") {
			p.t.Errorf("%s: %s: %v", p.at, u, p.there(u))
		}
	default:
		p.t.Fatalf("%s: no directive %q", p.at, words[0])
	}
}

func newestOf(all []string, n int) []string { return slices.Clone(all[:min(n, len(all))]) }

func trimmed(streams []string) (all []string) {
	for _, s := range streams {
		all = append(all, strings.TrimPrefix(s, "-"))
	}
	return all
}

// found returns the entries with the ids of a list.
func (p *player) found(name string) (all []item) {
	p.t.Helper()
	list, ok := p.lists[name]
	if !ok {
		p.t.Fatalf("%s: no list %s", p.at, name)
	}
	find := p.finder()
	for _, id := range list {
		i, ok := find(id)
		if !ok {
			p.t.Errorf("%s: no entry has the id %s", p.at, id)
		}
		all = append(all, i)
	}
	return all
}

func sorted(all []item) []item {
	return slices.SortedFunc(slices.Values(all), func(a, b item) int { return byDelivery(b, a) })
}
