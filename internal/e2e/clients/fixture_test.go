package clients

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/lektordir/lektor/internal/testkit/testdir"
)

// The feeds of [fill], by their names.
const (
	alpha = "Alpha & <Co>"
	beta  = "Beta"
	gamma = "Gamma"
	delta = "Delta"
	clock = "Clock"
)

// deep is a folder within a folder, with characters that clients must escape.
const deep = "Tech & Ünï/Deep+er"

// withdrawnEntry is the entry of Beta that its complete document lacks.
const withdrawnEntry = 31

// writer fills a lektor-dir.
type writer struct {
	t    testing.TB
	dir  *testdir.Dir
	base int64 // delivery of the first entry
	n    int   // entries so far
}

func newWriter(t testing.TB) *writer {
	t.Helper()
	return &writer{t: t, dir: testdir.New(t), base: time.Now().Add(-240 * time.Hour).Unix()}
}

func (w *writer) feed(id, name string, files ...string) {
	w.t.Helper()
	if _, err := w.dir.Feed(id, name, files...); err != nil {
		w.t.Fatal(err)
	}
}

// unique is the name of the n-th entry: two are delivered in a second, with rising
// microseconds.
func (w *writer) unique(n, identity int) string {
	return fmt.Sprintf("%d.M%dP%dQ%dI%016x.host", w.base+int64(n/2)*60, 100+n%2*800_000+n, 4000+n, n, identity)
}

// entry delivers the next entry of a feed, and returns its number. Dates of publication fall
// while times of delivery rise.
func (w *writer) entry(id, place, flags string, files ...string) int {
	w.t.Helper()
	n := w.n
	w.n++
	w.named(id, place, w.unique(n, n)+flags, n, files...)
	return n
}

func (w *writer) named(id, place, name string, n int, files ...string) {
	w.t.Helper()
	published := time.Unix(w.base-int64(n)*3600, 0).UTC().Format(time.RFC3339)
	files = append([]string{
		fmt.Sprintf("title=Entry %d", n), fmt.Sprintf("id=http://entry.example/%d", n), "type=text/html", "pubdate=" + published,
		fmt.Sprintf(`content=<p>Content <b>of %d</b> &amp; more</p>`, n),
	}, files...)
	if _, err := w.dir.Entry(id, place, name, files...); err != nil {
		w.t.Fatal(err)
	}
}

const (
	alphaID = "http://a.example/rss.xml"
	betaID  = "http://b.example/feed?x=1&y=2"
	gammaID = "http://c.example/c"
	deltaID = "http://d.example/"
	clockID = "urn:example:clock"
)

// fill makes a lektor-dir with all that entries and feeds may have.
func fill(t testing.TB) *writer {
	t.Helper()
	w := newWriter(t)
	w.feed(alphaID, alpha, "etc/fetch/url="+alphaID, "etc/categories=News", "etc/link=http://a.example/")
	w.feed(betaID, beta, "etc/fetch/url="+betaID, "etc/categories=News\n"+deep, "etc/link=http://b.example/")
	w.feed(gammaID, gamma, "etc/fetch/url="+gammaID)
	w.feed(deltaID, "Delta by itself", "etc/fetch/url="+deltaID, "etc/categories=Empty", "etc/view/alias="+delta)
	w.feed(clockID, clock)
	// A feed of "lektor-fetch put"; one whose subscription was ended; one of another fetcher, without entries.
	w.feed("urn:example:notes", "Notes", "etc/fetch/.keep=")
	w.feed("http://left.example/", "Left", "etc/view/left=", "etc/categories=Left")
	w.feed("urn:example:empty", "Nothing")
	complete := ""
	for n := range 40 {
		id := alphaID
		if n%3 == 1 {
			id = betaID
		}
		place, flags := "new", ""
		switch {
		case n%7 == 0:
		case n%11 == 3:
			place, flags = "cur", ";2,FS"
		case n%3 == 0:
			place, flags = "cur", ";2,S"
		case n%5 == 0:
			place, flags = "cur", ";2,F"
		case n%4 == 0:
			place, flags = "cur", ";2,"
		}
		w.entry(id, place, flags)
		if id == betaID && n != withdrawnEntry {
			complete += fmt.Sprintf("%016x\n", n)
		}
	}
	w.feed(betaID, beta, "etc/history/complete="+complete[:len(complete)-1])
	// Trashed; with flags of the user; without flags, as a simple viewer leaves it.
	w.entry(alphaID, "cur", ";2,ST")
	w.entry(alphaID, "cur", ";2,Sq")
	w.entry(alphaID, "cur", "")
	// Odd texts.
	w.entry(alphaID, "new", "", "title=A <b>bold</b> & \"odd\" title  é", "author=Ann Author <ann@example.org>")
	w.entry(alphaID, "new", "", "title=", "type", `content=Plain < text & no tags`)
	w.entry(alphaID, "new", "", `content=<p onclick="x()">Safe<script>alert("evil")</script><img src="javascript:x"></p>`)
	// A version that was read, and its replacement.
	n := w.entry(alphaID, "cur", ";2,S")
	w.named(alphaID, "new", w.unique(w.n, n), w.n, "title=Entry, changed")
	w.n++
	// Names as shell scripts make them.
	for i := range 5 {
		place, flags := "new", ""
		if i == 2 {
			place, flags = "cur", ";2,FS"
		}
		w.named(gammaID, place, fmt.Sprintf("%d.%d.host%s", w.base+100_000+int64(i)*10, 77+i, flags), w.n,
			"+enclosure=http://c.example/a.mp3\taudio/mpeg\t12345", "+link=http://page.example/"+fmt.Sprint(w.n), "+category=a subject")
		w.n++
	}
	w.entry("urn:example:notes", "new", "")
	w.entry("http://left.example/", "new", "")
	w.entry("http://left.example/", "cur", ";2,F")
	w.named(clockID, "new", fmt.Sprintf("%d.1.host", w.base+200_000), w.n)
	w.n++
	return w
}

// newest returns the newest entries of a stream, the first of which is the newest.
func newest(all []item, n int) []item { return all[:min(n, len(all))] }

// reversed returns the entries with the oldest first.
func reversed(all []item) []item {
	all = slices.Clone(all)
	slices.Reverse(all)
	return all
}
