package main

import (
	"bytes"
	"fmt"
	"html"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lektordir/lektor/internal/testkit/must"
	"github.com/lektordir/lektor/lektordir"
)

// The index is measured with entries whose words are as unequal as those of a
// language: the word of rank n comes 1/n times as often as the first. The same texts
// are mail for notmuch.

// phrase is in one entry of a hundred, and its words in all of these and in many
// others; rareWord is in one of ten thousand, frequentWord in one of five.
const (
	rareWord, frequentWord = "quokka", "weather"
	phraseWords            = "harbour lantern"
	inFolder               = "topic3"
)

// corpus makes texts.
type corpus struct {
	random *rand.Rand
	zipf   *rand.Zipf
}

func newCorpus(seed uint64) *corpus {
	random := rand.New(rand.NewPCG(seed, 1))
	return &corpus{random, rand.NewZipf(random, 1.05, 3, 400000)}
}

// word spells a rank: frequent words are short.
func word(rank uint64) string {
	syllables := [...]string{"ta", "re", "ni", "so", "lu", "mek", "por", "den", "wi", "cha", "gra", "fel", "ost", "un", "bri", "za"}
	var b strings.Builder
	for rank += 16; rank > 0; rank /= 16 {
		b.WriteString(syllables[rank%16])
	}
	return b.String()
}

// text makes about so many bytes of HTML for the entry of a number.
func (c *corpus) text(i, size int) string {
	var b strings.Builder
	for b.Len() < size {
		b.WriteString("<p>")
		for range 40 {
			b.WriteString(word(c.zipf.Uint64()))
			b.WriteByte(' ')
		}
		fmt.Fprintf(&b, `<a href="https://site%d.example/%x">%s</a>.</p>`+"\n", c.random.IntN(500), c.random.Uint32(), word(c.zipf.Uint64()))
	}
	rare, often := i%10000 == 77, int(uint64(i)*0x9e3779b97f4a7c15>>40%100)
	switch {
	case rare:
		b.WriteString("<p>" + rareWord + "</p>")
	case often == 5:
		b.WriteString("<p>the " + phraseWords + " of it</p>")
	case often < 8:
		b.WriteString("<p>lantern, and not in the harbour</p>")
	}
	if often%5 == 0 {
		b.WriteString("<p>" + frequentWord + "</p>\n")
	}
	return b.String()
}

// indexed measures queries, with an index and by notmuch.
func (o options) indexing(dir string, t *table) {
	if o.indexed < 1 {
		return
	}
	must.Do(os.MkdirAll(dir, 0o700))
	view := o.built("lektor-view")
	b := &indexBench{options: o, dir: dir, view: view, t: t, feeds: max(20, o.indexed/500)}
	b.mailed = min(b.mailed, b.indexed)
	if installed("notmuch") != "" && b.mailed > 0 {
		b.mail = filepath.Join(dir, "mail")
	}
	b.make(filepath.Join(dir, "feeds"), o.indexed)
	// Where notmuch has fewer, it is compared with a lektor-dir of just these. It is made
	// first, as for a minute queries look after what was just written.
	small := *b
	small.lektordir = filepath.Join(dir, "few")
	few := o.indexed / 10
	if b.mail != "" && b.mailed < o.indexed {
		few = b.mailed
	}
	b.make(small.lektordir, few)
	small.run("lektor-view index", view, "--dir", small.lektordir, "index")
	exec.Command("sync").Run()
	b.build()
	since := modified.Add(-30 * 24 * time.Hour)
	for _, q := range []struct{ name, lektor, notmuch string }{
		{"the newest unread", "is:unread", "tag:unread"},
		{"a rare word", rareWord, rareWord},
		{"a frequent word", frequentWord, frequentWord},
		{"a phrase", `"` + phraseWords + `"`, `"` + phraseWords + `"`},
		{"folder: since:", "folder:" + inFolder + " since:" + since.Format("2006-01-02"), "path:" + inFolder + "/** date:" + since.Format("2006-01-02") + ".."},
	} {
		g := t.group(fmt.Sprintf("%s of %d", q.name, o.indexed), "queries")
		b.query(g, "lektor-view ls -n 50", b.ls("-a", q.lektor))
		if b.mail != "" {
			if few == b.mailed {
				b.query(g, b.ofMail("lektor-view ls -n 50"), small.ls("-a", q.lektor))
			}
			b.query(g, b.ofMail("notmuch search"), b.notmuch("search", "--limit=50", q.notmuch))
			// What other programs have moved counts, as it does for lektor-view.
			b.query(g, b.ofMail("notmuch new, search"), []string{"sh", "-c", `notmuch new --quiet && exec notmuch search --limit=50 "$1"`, "sh", q.notmuch})
		}
	}
	// What has come costs the next query; what is unchanged costs nothing.
	g := t.group("the newest unread, and what has come", "queries")
	b.query(g, "nothing", b.ls("is:unread"))
	b.deliver(100)
	var m measurement
	b.once(&m, "100 entries", b.ls("is:unread"))
	g.add(&contestant{name: "100 entries"}, 1, m)
	// As many feeds with fewer entries.
	small.query(g, fmt.Sprintf("of %d entries", few), small.ls("is:unread"))
}

// indexBench is what is measured.
type indexBench struct {
	options
	dir, view, lektordir, mail string
	feeds                      int
	texts, mailTexts           int64 // bytes of titles and contents, of entries and of messages
	t                          *table
}

// ofMail adds to a name of how many entries notmuch has a message, if not of all.
func (b *indexBench) ofMail(name string) string {
	if b.mailed == b.indexed {
		return name
	}
	return fmt.Sprintf("%s (of %d)", name, b.mailed)
}

func (b *indexBench) command(argv ...string) *exec.Cmd {
	cmd := command(b.dir, argv[0], argv[1:]...)
	cmd.Env = append(cmd.Env, "XDG_CACHE_HOME="+filepath.Join(b.dir, "cache"), "NOTMUCH_CONFIG="+filepath.Join(b.dir, "notmuch-config"))
	return cmd
}

func (b *indexBench) ls(args ...string) []string {
	return append([]string{b.view, "--dir", b.lektordir, "ls", "-n", "50"}, args...)
}

func (b *indexBench) notmuch(args ...string) []string { return append([]string{"notmuch"}, args...) }

// once runs a command and notes how many lines it gave, and the processors' time.
func (b *indexBench) once(m *measurement, name string, argv []string) {
	cmd := b.command(argv...)
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	m.take(name, cmd, &said)
	cpu := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	m.requests = fmt.Sprintf("%d lines, %.1f ms of processors", bytes.Count(out.Bytes(), []byte("\n")), ms(cpu))
}

// query measures a command, the caches warm.
func (b *indexBench) query(g *group, name string, argv []string) {
	var best measurement
	for round := range 2*b.rounds + 1 {
		var m measurement
		b.once(&m, name, argv)
		if round > 0 {
			best.keep(m)
		}
	}
	g.add(&contestant{name: name}, 1, best)
}

func (b *indexBench) run(name string, argv ...string) {
	var m measurement
	b.once(&m, name, argv)
}

// build measures how long it takes to index all.
func (b *indexBench) build() {
	g := b.t.group(fmt.Sprintf("indexing of %d × %.1f kB", b.indexed, float64(b.size)/1000), "entries")
	part := func(m *measurement, glob string, texts int64) {
		files := must.Get(filepath.Glob(glob))
		var size int64
		for _, f := range files {
			size += must.Get(os.Stat(f)).Size()
		}
		_, cpu, _ := strings.Cut(m.requests, ", ")
		m.requests = fmt.Sprintf("%.0f %% of the texts, %s", 100*float64(size)/float64(texts), cpu)
	}
	var m measurement
	b.once(&m, "lektor-view index", []string{b.view, "--dir", b.lektordir, "index"})
	part(&m, filepath.Join(b.dir, "cache/lektor/index-*"), b.texts)
	g.add(&contestant{name: "lektor-view index"}, float64(b.indexed), m)
	if b.mail == "" {
		return
	}
	config := fmt.Sprintf("[database]\npath=%s\n[user]\nname=x\nprimary_email=x@example.com\n[new]\ntags=\n[maildir]\nsynchronize_flags=true\n", b.mail)
	must.Do(os.WriteFile(filepath.Join(b.dir, "notmuch-config"), []byte(config), 0o600))
	m = measurement{}
	b.once(&m, "notmuch new", b.notmuch("new", "--quiet"))
	part(&m, filepath.Join(b.mail, ".notmuch/xapian/*"), b.mailTexts)
	g.add(&contestant{name: b.ofMail("notmuch new")}, float64(b.mailed), m)
}

// make makes a lektor-dir of n entries, of which one of fifty is unread, and for the
// first one a maildir of the same, or of the newest of them. Entries have what lists and queries need; what is the
// same in all of a feed is one file.
func (b *indexBench) make(dir string, n int) {
	d := must.Get(lektordir.Create(dir, nil))
	mail := b.mail
	if b.lektordir == "" {
		b.lektordir = dir
	} else {
		mail = ""
	}
	each := (n + b.feeds - 1) / b.feeds
	parallel(b.feeds, func(f int) {
		c := newCorpus(uint64(f))
		id := fmt.Sprintf("http://feed%d.example/", f)
		folder := fmt.Sprintf("topic%d", f%20)
		hash := lektordir.FeedHash(id)
		src := d.Join("src", hash)
		for _, p := range []string{filepath.Join(src, "etc"), d.Join("tmp", hash), d.Join("new", hash), d.Join("cur", hash)} {
			must.Do(os.MkdirAll(p, 0o777))
		}
		put(src, "id", id)
		put(src, "name", fmt.Sprintf("Feed %d", f))
		put(src, "etc/categories", folder)
		box := filepath.Join(mail, folder, fmt.Sprint(f))
		if mail != "" {
			for _, p := range []string{"cur", "new", "tmp"} {
				must.Do(os.MkdirAll(filepath.Join(box, p), 0o700))
			}
		}
		var bytes, mailed int64
		first := ""
		for k := range min(each, n-f*each) {
			i := k*b.feeds + f
			date := modified.Add(-time.Duration(i) * time.Minute * time.Duration(max(1, 5e5/b.indexed)))
			title := fmt.Sprintf("%s %s %s %d", word(c.zipf.Uint64()), word(c.zipf.Uint64()), word(c.zipf.Uint64()), i)
			body := c.text(i, b.size)
			bytes += int64(len(title) + len(body))
			name := fmt.Sprintf("%d.M%dP1Q%dI%016x.bench", date.Unix(), i%1000000, k+1, uint64(i)*0x9e3779b97f4a7c15)
			b.entry(d, hash, name, title, body, date, i%50 == 0, &first)
			if mail != "" && i < b.mailed {
				mailed += int64(len(title) + len(body))
				b.message(box, i, title, body, date, i%50 == 0)
			}
		}
		if dir == b.lektordir {
			atomic.AddInt64(&b.texts, bytes)
			atomic.AddInt64(&b.mailTexts, mailed)
		}
	})
}

func put(dir, name, text string) {
	must.Do(os.WriteFile(filepath.Join(dir, name), []byte(text+"\n"), 0o666))
}

// entry delivers an entry; first is one of the feed whose files the others share.
func (b *indexBench) entry(d *lektordir.Dir, hash, name, title, body string, date time.Time, unread bool, first *string) {
	tmp := d.Join("tmp", hash, name)
	must.Do(os.Mkdir(tmp, 0o777))
	put(tmp, "title", title)
	put(tmp, "content", body)
	put(tmp, "pubdate", date.UTC().Format(time.RFC3339))
	if *first == "" {
		put(tmp, "id", "urn:bench:"+name)
		put(tmp, "type", "text/html")
		must.Do(os.Symlink("../../../src/"+hash, filepath.Join(tmp, "feed")))
	} else {
		for _, shared := range []string{"id", "type", "feed"} {
			must.Do(unix.Linkat(unix.AT_FDCWD, filepath.Join(*first, shared), unix.AT_FDCWD, filepath.Join(tmp, shared), 0))
		}
	}
	to := d.Join("cur", hash, name+";2,S")
	if unread {
		to = d.Join("new", hash, name)
	}
	// Whoever delivers syncs what he has written, which takes a while, before he moves it.
	written := time.Now().Add(-time.Second)
	must.Do(os.Chtimes(tmp, written, written))
	must.Do(os.Rename(tmp, to))
	if *first == "" {
		*first = to
	}
}

// message puts the same into a maildir.
func (b *indexBench) message(box string, i int, title, body string, date time.Time, unread bool) {
	text := fmt.Sprintf("From: A. Writer <writer@example.com>\nTo: reader@example.com\nSubject: %s\nDate: %s\nMessage-ID: <%d@example.com>\nMIME-Version: 1.0\nContent-Type: text/html; charset=utf-8\n\n%s\n",
		html.UnescapeString(title), date.Format(time.RFC1123Z), i, body)
	name := fmt.Sprintf("cur/%d.M%dP1.bench:2,S", date.Unix(), i)
	if unread {
		name = fmt.Sprintf("new/%d.M%dP1.bench", date.Unix(), i)
	}
	must.Do(os.WriteFile(filepath.Join(box, name), []byte(text), 0o600))
}

// deliver adds unread entries, one to each of some feeds.
func (b *indexBench) deliver(n int) {
	d := must.Get(lektordir.Open(b.lektordir, nil))
	c := newCorpus(math.MaxUint32)
	for i := range n {
		hash := lektordir.FeedHash(fmt.Sprintf("http://feed%d.example/", i%b.feeds))
		date := modified.Add(time.Duration(i) * time.Second)
		first := ""
		b.entry(d, hash, fmt.Sprintf("%d.M1P2Q%dI%016x.bench", date.Unix(), i+1, uint64(i)), "Arrived", c.text(i, b.size), date, true, &first)
	}
	// Whoever has just delivered is not asked in the same tick of the clock.
	time.Sleep(200 * time.Millisecond)
}
