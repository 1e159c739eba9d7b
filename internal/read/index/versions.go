package index

import (
	"cmp"
	"slices"

	"github.com/lektordir/lektor/internal/feeds/history"
	"github.com/lektordir/lektor/internal/files/stamp"
	"github.com/lektordir/lektor/internal/read/entrystore"
	"github.com/lektordir/lektor/lektordir"
)

// versions finds out which versions of entries lists show, and which of these are repeats.
type versions struct {
	*session
	affected map[int64]*feed // keys of entries whose versions have changed
	links    map[int64]bool  // links of entries that came, left, or are listed otherwise
}

// keyOf is what versions of an entry have in common, and an entry in two places.
func keyOf(r lektordir.Ref) int64 {
	return int64(mix(hash(hash(offset, r.Feed)^'/', cmp.Or(r.Identity(), r.Unique))))
}

// list finds out which of the entries with the same key stands for them all, as
// [lektordir.Dir.List] does.
func (v *versions) list() {
	type version struct {
		id     int64
		ref    lektordir.Ref
		odd    bool
		listed int64
	}
	present := map[*feed]map[string]bool{}
	for key, f := range v.affected {
		var all []version
		r := v.c.query("SELECT id, dir, name, info, listed, date FROM entry WHERE dir >> 1 = ? AND key = ?", f.id, key)
		for r.next() {
			if ref, ok := v.ref(r.int(1), r.blob(2), r.blob(3), r.null(3)); ok {
				all = append(all, version{r.int(0), ref, r.null(5), r.int(4)})
			}
		}
		slices.SortFunc(all, func(a, b version) int { return a.ref.Compare(b.ref) })
		for i, one := range all {
			want := int64(listedNot)
			if i == len(all)-1 {
				want = listedShown
				if !v.present(present, f, one.ref) {
					want = listedWithdrawn
				}
				if one.odd {
					want++
				}
			}
			if want != one.listed {
				r, _ := v.c.one("UPDATE entry SET listed = ?, repeat = 0 WHERE id = ? RETURNING link", want, one.id)
				v.links[r.int(0)] = true
			}
		}
	}
	clear(v.affected)
	for link := range v.links {
		v.relink(link)
	}
	clear(v.links)
}

// relink finds out which of the entries with a link are repeats.
func (v *versions) relink(link int64) {
	var p entrystore.Repeats
	var changed []int64
	for r := v.c.query("SELECT entry.id, hash, first, repeat FROM entry JOIN feed ON feed.id = dir >> 1 WHERE link = ? AND link != 0 AND listed = 1 ORDER BY first, hash", link); r.next(); {
		if p.Next(string(r.blob(1)), r.int(2)) != (r.int(3) == 1) {
			changed = append(changed, r.int(0))
		}
	}
	for _, id := range changed {
		v.c.exec("UPDATE entry SET repeat = 1 - repeat WHERE id = ?", id)
	}
}

// present reports whether the document of the feed, where it is complete, has the entry.
func (v *versions) present(known map[*feed]map[string]bool, f *feed, r lektordir.Ref) bool {
	set, ok := known[f]
	if !ok {
		list, complete, err := v.x.dir.Complete(f.hash)
		// All that is said of the feed may be away now, and come back as it was.
		now, _ := stamp.Look(int(v.src.Fd()), history.CompletePath(f.hash))
		if err != nil || now != f.stamps[ofList] {
			v.keepList(f, "")
		}
		if err != nil {
			v.complaints = append(v.complaints, err)
		} else if complete {
			set = make(map[string]bool, len(list))
			for _, id := range list {
				set[id] = true
			}
		}
		known[f] = set
	}
	id := r.Identity()
	return set == nil || id == "" || set[id]
}

// keepList keeps the stamp of the list of a feed's document.
func (s *session) keepList(f *feed, now stamp.Stamp) {
	s.c.exec("UPDATE feed SET complete = ? WHERE id = ?", []byte(now), f.id)
	f.stamps[ofList] = now
}
