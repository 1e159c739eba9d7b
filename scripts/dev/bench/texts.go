//go:build linux

package main

import (
	"context"
	"fmt"
	"html"
	"iter"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/lektordir/lektor/internal/dir/commit"
	"github.com/lektordir/lektor/internal/dir/stage"
	"github.com/lektordir/lektor/internal/feeds/feedfiles"
	"github.com/lektordir/lektor/internal/testkit/must"
	"github.com/lektordir/lektor/lektordir"
)

// newest is the date of the newest entry, and the Last-Modified of every document.
var newest = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// The phrase is in one entry of a hundred, and its words are in these and many other entries.
// rareWord is in one entry of ten thousand, frequentWord in one of five.
const (
	rareWord, frequentWord = "quokka", "weather"
	phraseWords            = "harbour lantern"
)

// corpus generates texts with the word frequencies of a language: the word of rank n occurs 1/n
// times as often as the first.
type corpus struct {
	random *rand.Rand
	zipf   *rand.Zipf
}

func newCorpus(seed uint64) *corpus {
	random := rand.New(rand.NewPCG(seed, 1))
	return &corpus{random, rand.NewZipf(random, 1.05, 3, 400_000)}
}

// word returns a random word. Frequent words are short.
func (c *corpus) word() string {
	syllables := [...]string{"ta", "re", "ni", "so", "lü", "mek", "por", "den", "wi", "cha", "gra", "fel", "ost", "un",
		"bri", "za"}
	var b strings.Builder
	for rank := c.zipf.Uint64() + 16; rank > 0; rank /= 16 {
		b.WriteString(syllables[rank%16])
	}
	return b.String()
}

// title returns a title with some words and the number of the entry.
func (c *corpus) title(i int) string {
	return fmt.Sprintf("Entry %d: %s & %s, %s", i, c.word(), c.word(), c.word())
}

// body returns HTML of about this many bytes for the entry with a number.
func (c *corpus) body(i, size int) string {
	var b strings.Builder
	for b.Len() < size {
		b.WriteString("<p>")
		for range min(40, size/5) {
			b.WriteString(c.word() + " ")
		}
		fmt.Fprintf(&b, `<a href="https://site%d.example/%x">%s</a>.</p>`+"\n", c.random.IntN(500), c.random.Uint32(),
			c.word())
	}
	often := int(uint64(i) * 0x9e3779b97f4a7c15 >> 40 % 100)
	switch {
	case i%10_000 == 77:
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

// library describes a lektor-dir of generated entries, and maildirs with the same texts.
type library struct {
	feeds, entries, size int
	age                  func(i int) time.Duration // age of entry i
	read                 func(i int) bool
	mail                 string // if not "", the directory for maildirs, one for each feed
	mailed               int    // number of newest entries in the maildirs
}

func feedID(f int) string { return fmt.Sprintf("http://feed%d.example/", f) }

// make makes the lektor-dir, and returns the number of bytes of its texts, and of the mail's.
func (l library) make(dir string) (texts, mailed int64) {
	var mu sync.Mutex
	deliver(dir, l.feeds, func(f int) (*lektordir.Feed, []stage.Item) {
		c := newCorpus(uint64(f))
		var items []stage.Item
		for i := f; i < l.entries; i += l.feeds {
			e := lektordir.Entry{
				ID: fmt.Sprintf("%s%d", feedID(f), i), Title: c.title(i), Author: "A. Writer",
				Content: []byte(c.body(i, l.size)), Type: "text/html",
				PubDate: newest.Add(-l.age(i)),
			}
			items = append(items, itemOf(e))
			mu.Lock()
			texts += int64(len(e.Title) + len(e.Content))
			if l.mail != "" && i < l.mailed {
				mailed += int64(len(e.Title) + len(e.Content))
			}
			mu.Unlock()
			if l.mail != "" && i < l.mailed {
				message(filepath.Join(l.mail, fmt.Sprintf("topic%d", f%20), fmt.Sprint(f)), i, &e, l.read(i))
			}
		}
		return &lektordir.Feed{ID: feedID(f), Name: fmt.Sprintf("Feed %d", f)}, items
	})
	d := must.Get(lektordir.Open(dir, nil))
	for f := range l.feeds {
		must.Do(os.WriteFile(d.Join("src", lektordir.FeedHash(feedID(f)), "etc/categories"),
			fmt.Appendf(nil, "topic%d\n", f%20), 0o666))
	}
	refs := must.Get(d.List(context.Background(), lektordir.ListOptions{}))
	parallel(len(refs), func(k int) {
		r := refs[k]
		if e := must.Get(d.ReadEntry(r, lektordir.AllFields)); l.read(number(e.Title)) {
			must.Do(os.MkdirAll(d.Join("cur", r.Feed), 0o777))
			must.Do(os.Rename(d.Join(r.Path()), d.Join("cur", r.Feed, r.Unique+";2,S")))
		}
	})
	return texts, mailed
}

// number returns the number of the entry with a title.
func number(title string) (i int) {
	must.Get(fmt.Sscanf(title, "Entry %d:", &i))
	return i
}

// message writes an entry as a message into a maildir.
func message(box string, i int, e *lektordir.Entry, read bool) {
	for _, sub := range []string{"cur", "new", "tmp"} {
		must.Do(os.MkdirAll(filepath.Join(box, sub), 0o700))
	}
	text := fmt.Sprintf("From: A. Writer <writer@example.com>\nTo: reader@example.com\nSubject: %s\nDate: %s\nMessage-ID: <%d@example.com>\nMIME-Version: 1.0\nContent-Type: text/html; charset=utf-8\n\n%s\n",
		html.UnescapeString(e.Title), e.PubDate.Format(time.RFC1123Z), i, e.Content)
	name := fmt.Sprintf("new/%d.M%dP1.bench", e.PubDate.Unix(), i)
	if read {
		name = fmt.Sprintf("cur/%d.M%dP1.bench:2,S", e.PubDate.Unix(), i)
	}
	must.Do(os.WriteFile(filepath.Join(box, name), []byte(text), 0o600))
}

// arrive delivers unread entries, one to each of n feeds from the one with number first on.
func arrive(dir string, first, n, size int) {
	c := newCorpus(uint64(time.Now().UnixNano()))
	deliver(dir, n, func(f int) (*lektordir.Feed, []stage.Item) {
		f += first
		now := time.Now()
		id := fmt.Sprintf("%snews/%d", feedID(f), now.UnixNano())
		e := lektordir.Entry{ID: id, Title: "News of " + c.word(), Content: []byte(c.body(1, size)), Type: "text/html",
			PubDate: now}
		return &lektordir.Feed{ID: feedID(f), Name: fmt.Sprintf("Feed %d", f)}, []stage.Item{itemOf(e)}
	})
}

// itemOf returns an entry as an item of a document.
func itemOf(e lektordir.Entry) stage.Item {
	return stage.Item{
		GUID: e.ID, Title: e.Title, Link: e.Link, PubDate: e.PubDate, Text: string(e.Content),
		Files: func(string) iter.Seq2[string, []byte] { return e.Files() },
	}
}

// deliver delivers the entries of n feeds, as a fetcher does in a run over all of them.
func deliver(dir string, n int, feed func(f int) (*lektordir.Feed, []stage.Item)) {
	d := must.Get(lektordir.Create(dir, nil))
	w := must.Get(feedfiles.NewWriter(d, commit.Options{Delay: 250 * time.Millisecond}))
	var pending sync.WaitGroup
	failed := make(chan error, n)
	parallel(n, func(f int) {
		about, items := feed(f)
		t := must.Get(w.Begin(lektordir.FeedHash(about.ID)))
		must.Do(t.PutFeed(about.Files()))
		must.Get(stage.New(t, nil).Stage(context.Background(), stage.Document{Items: items}))
		pending.Add(1)
		t.Commit(func(err error) {
			defer pending.Done()
			t.Close()
			if err != nil {
				failed <- err
			}
		})
	})
	w.Flush()
	pending.Wait()
	must.Do(w.Close())
	close(failed)
	must.Do(<-failed)
}
