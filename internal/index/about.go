package index

import (
	"encoding/json"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/lektordir/lektor/internal/feeddir"
	"github.com/lektordir/lektor/lektordir"
)

// about is what queries ask of a feed, and the stamp of the files that say it.
type about struct {
	feed  int64
	stamp stamp
	said  *lektordir.Feed // nil if src/$feed does not tell
}

// toldBy are the files in src/$feed that queries ask about.
var toldBy = [...]string{"", "/id", "/name", "/author"}

// about gives what is known of a feed; ok is false where each entry may say otherwise.
func (v *View) about(f *feed) (said *lektordir.Feed, ok bool) {
	if v.known == nil {
		v.loadAbout()
	}
	a := v.known[f.id]
	if a == nil {
		a = v.readAbout(f)
		v.known[f.id] = a
	}
	return a.said, a.said != nil
}

// loadAbout takes from the file what is still so.
func (v *View) loadAbout() {
	v.known = map[int64]*about{}
	r := v.s.c.query("SELECT feed, stamp, data FROM about")
	for r.next() {
		f := v.s.byID[r.int(0)]
		if f == nil || stamp(r.blob(1)) != v.aboutStamp(f, nil) {
			continue
		}
		said := &lektordir.Feed{Hash: f.hash}
		if json.Unmarshal(r.blob(2), said) == nil {
			v.known[f.id] = &about{feed: f.id, said: said}
		}
	}
}

// aboutStamp is that of all files together. It calls each, if it is not nil, for the
// stamp of each.
func (v *View) aboutStamp(f *feed, each func(stamp, *unix.Stat_t) stamp) stamp {
	var all strings.Builder
	base := v.x.dir.Join("src", f.hash)
	add := func(path string) {
		s, st := look(unix.AT_FDCWD, path)
		if each != nil {
			s = each(s, st)
		}
		all.WriteString(string(s))
		all.WriteByte('/')
	}
	for _, name := range toldBy {
		add(base + name)
	}
	add(feeddir.AliasPath(v.x.dir, f.hash))
	return stamp(all.String())
}

// readAbout reads it, and keeps it for the file.
func (v *View) readAbout(f *feed) *about {
	now := v.x.o.Clock()
	sure := true
	a := &about{feed: f.id, stamp: v.aboutStamp(f, func(s stamp, st *unix.Stat_t) stamp {
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

// learn writes what was read of feeds, if nobody else is writing.
func (v *View) learn() {
	if len(v.learned) == 0 || v.s.c.err != nil {
		return
	}
	c := v.s.c
	for _, n := range v.needles {
		if n.stream != nil {
			n.stream.close()
			n.stream = nil
		}
	}
	c.exec("COMMIT")
	c.exec("BEGIN IMMEDIATE")
	for _, a := range v.learned {
		if data, err := json.Marshal(a.said); err == nil {
			c.exec("INSERT OR REPLACE INTO about (feed, stamp, data) VALUES (?, ?, ?)", a.feed, []byte(a.stamp), data)
		}
	}
	c.exec("COMMIT")
}
