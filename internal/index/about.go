package index

import (
	"context"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/lektordir/lektor/internal/entries"
	"github.com/lektordir/lektor/internal/feeddir"
	"github.com/lektordir/lektor/lektordir"
)

// about is what queries ask of a feed, and the stamp of the files that say it.
type about struct {
	feed  int64
	stamp stamp
	said  *lektordir.Feed // nil if src/$feed does not tell
	sure  int             // of how many files it was looked whether they still say so
}

// toldBy gives the files below src/ that say what queries ask of a feed, first those
// that say what it is called.
func toldBy(hash string) []string {
	return []string{hash + "/name", feeddir.AliasPath(hash), hash + "/id", hash + "/author"}
}

// Of how many of these files it is looked whether they are as they were.
const (
	nameFiles = 2
	allFiles  = 4
)

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
	if a == nil || !strings.HasPrefix(string(a.stamp), string(v.aboutStamp(f, files, nil))) {
		return false
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

// aboutStamp is that of some of the files together. It calls each, if it is not nil, for
// the stamp of each.
func (v *View) aboutStamp(f *feed, files int, each func(stamp, *unix.Stat_t) stamp) stamp {
	var all strings.Builder
	for _, path := range toldBy(f.hash)[:files] {
		s, st := look(v.s.src, path)
		if each != nil {
			s = each(s, st)
		}
		all.WriteString(string(s))
		all.WriteByte('/')
	}
	return stamp(all.String())
}

// readAbout reads it, and keeps it for the file.
func (v *View) readAbout(f *feed) *about {
	now := v.x.now()
	sure := true
	a := &about{feed: f.id, sure: allFiles, stamp: v.aboutStamp(f, allFiles, func(s stamp, st *unix.Stat_t) stamp {
		sure = sure && settled(s, st, now) != ""
		return s
	})}
	said, err := v.x.dir.ReadFeed(f.hash)
	if err != nil {
		return a
	}
	a.said = said
	if sure {
		v.learned = append(v.learned, a)
	}
	return a
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
