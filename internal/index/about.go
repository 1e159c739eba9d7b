package index

import (
	"context"
	"strings"

	"github.com/lektordir/lektor/internal/entries"
	"github.com/lektordir/lektor/internal/feeddir"
	"github.com/lektordir/lektor/lektordir"
)

// about is what queries ask of a feed, and the stamps of the files that say it, each with
// a slash after it.
type about struct {
	feed  int64
	stamp stamp
	said  *lektordir.Feed // nil if src/$feed does not tell
	sure  int             // of how many files it was looked whether they still say so
}

// Files below src/$feed that say what queries ask of a feed, in the order of their
// stamps; first those that say what it is called.
const (
	ofName = iota
	ofAlias
	ofID
	ofAuthor
)

// Of how many of these files it is looked whether they are as they were.
const (
	nameFiles = ofAlias + 1
	allFiles  = ofAuthor + 1
)

// lookAbout looks at one of these files.
func (v *View) lookAbout(f *feed, file int, known stamp) (stamp, times) {
	var path string
	switch file {
	case ofName:
		path = f.hash + "/name"
	case ofAlias:
		path = feeddir.AliasPath(f.hash)
	case ofID:
		path = f.hash + "/id"
	case ofAuthor:
		path = f.hash + "/author"
	}
	return lookAgain(v.s.src, path, known)
}

// about gives what is known of a feed; ok is false where each entry may say otherwise.
func (v *View) about(f *feed) (said *lektordir.Feed, ok bool) { return v.some(f, allFiles) }

// some is about where only what some of the files say has to be so.
func (v *View) some(f *feed, files int) (said *lektordir.Feed, ok bool) {
	a := v.known[f.id]
	if a == nil || a.sure < files {
		if a = v.storedAbout(f); !v.holds(f, a, files) {
			a = v.readAbout(f)
		}
		v.known[f.id] = a
	}
	return a.said, a.said != nil
}

// aboutEach is of how many feeds each is taken from the file alone, rather than all at
// once.
const aboutEach = 64

// storedAbout gives what the file has of a feed, or nil.
func (v *View) storedAbout(f *feed) *about {
	if v.stored == nil && v.asked < aboutEach {
		v.asked++
		r, ok := v.s.c.one("SELECT "+aboutColumns+" FROM about WHERE feed = ?", f.id)
		if !ok {
			return nil
		}
		return v.aboutOf(r)
	}
	v.loadAbout()
	return v.stored[f.id]
}

const aboutColumns = "feed, stamp, id, name, author, alias"

// aboutOf gives what a row says, nil if that is of no feed.
func (v *View) aboutOf(r *rows) *about {
	f := v.s.byID[r.int(0)]
	if f == nil {
		return nil
	}
	return &about{feed: f.id, stamp: stamp(r.blob(1)), said: &lektordir.Feed{
		Hash: f.hash, ID: string(r.blob(2)), Name: string(r.blob(3)), Author: string(r.blob(4)), Alias: string(r.blob(5)),
	}}
}

// holds reports whether some of the files are those that it was read from.
func (v *View) holds(f *feed, a *about, files int) bool {
	if a == nil {
		return false
	}
	rest := a.stamp
	for file := range files {
		now := absent
		if file != ofAlias || !f.bare {
			now, _ = v.lookAbout(f, file, rest[:min(stampSize, len(rest))])
		}
		n := len(now)
		if n == 0 || len(rest) <= n || rest[:n] != now || rest[n] != '/' {
			return false
		}
		rest = rest[n+1:]
	}
	a.sure = max(a.sure, files)
	return true
}

// loadAbout takes from the file all that it has.
func (v *View) loadAbout() {
	if v.stored != nil {
		return
	}
	v.stored = make(map[int64]*about, len(v.s.byID))
	for r := v.s.c.query("SELECT " + aboutColumns + " FROM about"); r.next(); {
		if a := v.aboutOf(r); a != nil {
			v.stored[a.feed] = a
		}
	}
}

// someOfAll makes known what some of the files say of feeds, which are looked at on all
// processors.
func (v *View) someOfAll(ctx context.Context, feeds []*feed, files int) {
	v.loadAbout()
	holds := make([]bool, len(feeds))
	_ = entries.Parallel(ctx, len(feeds), func(i int) { holds[i] = v.holds(feeds[i], v.stored[feeds[i].id], files) })
	for i, f := range feeds {
		if holds[i] && v.known[f.id] == nil {
			v.known[f.id] = v.stored[f.id]
		}
		v.some(f, files)
	}
}

// readAbout reads it, and keeps it for the file.
func (v *View) readAbout(f *feed) *about {
	then := v.x.now()
	before := v.aboutStamps(f, &then)
	a := &about{feed: f.id, sure: allFiles, stamp: before}
	said, err := v.x.dir.ReadFeed(f.hash)
	if err != nil {
		return a
	}
	a.said = said
	// What was not there has no time that tells when it came.
	if before != "" && v.aboutStamps(f, nil) == before {
		v.learned = append(v.learned, a)
	}
	return a
}

// aboutStamps are those of all the files, "" where one cannot be relied on that was looked
// at then, or at any time where that is nil.
func (v *View) aboutStamps(f *feed, then *moment) stamp {
	var all strings.Builder
	for file := range allFiles {
		now, t := v.lookAbout(f, file, "")
		if then != nil {
			now = settled(now, t, *then)
		}
		if now == "" {
			return ""
		}
		all.WriteString(string(now) + "/")
	}
	return stamp(all.String())
}

// learn writes what was read of feeds, if nobody else is writing. No transaction is
// open.
func (v *View) learn() {
	if len(v.learned) == 0 {
		return
	}
	c := v.s.c
	c.exec("BEGIN IMMEDIATE")
	for _, a := range v.learned {
		c.exec("INSERT OR REPLACE INTO about (feed, stamp, id, name, author, alias) VALUES (?, ?, ?, ?, ?, ?)",
			a.feed, []byte(a.stamp), []byte(a.said.ID), []byte(a.said.Name), []byte(a.said.Author), []byte(a.said.Alias))
	}
	c.exec("COMMIT")
}
