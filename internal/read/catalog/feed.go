package catalog

import (
	"encoding/binary"
	"hash/maphash"
	"iter"
	"maps"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/lektordir/lektor/internal/dir/entryname"
	"github.com/lektordir/lektor/internal/feeds/subscriptions"
	"github.com/lektordir/lektor/lektordir"
)

// Feed is a feed in a snapshot, with the names of its entries. It does not change. The entries have
// numbers, by which later versions of the feed mean the same ones.
type Feed struct {
	Hash  string
	About *subscriptions.About // nil if the feed is not in src/

	Shown   int // number of entries that are not trashed
	Unread  int // of these
	Flagged int // of these, with the flag F
	Flags   Flags
	newest  int64 // when the last of these was delivered, in microseconds of Unix time; 0 for none

	number  uint32   // in a snapshot
	catalog *Catalog // nil for a feed that is not one of a catalogue
	names   []name
	hosts   []string // in these names
	states  []state
	kept    map[uint32]lektordir.Ref // entries of which names and states are not all, by number
	gone    int                      // number of entries that are no more
}

// name is the parts of a unique name that lektor-fetch makes, but the host. It is zero for another name.
type name struct {
	micros   int64 // Unix time
	identity uint64
	pid, seq uint32
}

// Flags is a set of the letters A to Z and a to z, as bits.
type Flags uint64

// state is the flags and the place of an entry, and the number of the host in its name.
type state uint64

const (
	letters         = 52
	onlyFlags state = 1<<letters - 1
	inNew     state = 1 << letters
	gone      state = inNew << 1 // it is no more
	whole     state = inNew << 2 // it is in Feed.kept
	hostShift       = letters + 3
	maxHosts        = 1 << (64 - hostShift)
)

// FlagsOf returns the set of some letters; others are left out.
func FlagsOf(list string) (f Flags) {
	for _, c := range []byte(list) {
		if c >= 'A' && c <= 'Z' {
			f |= 1 << (c - 'A')
		} else if c >= 'a' && c <= 'z' {
			f |= 1 << (c - 'a' + 26)
		}
	}
	return f
}

// String returns the letters in the order of ASCII.
func (f Flags) String() string {
	b := make([]byte, 0, 8)
	for ; f != 0; f &= f - 1 {
		c := byte(bits.TrailingZeros64(uint64(f)))
		if c < 26 {
			b = append(b, 'A'+c)
		} else {
			b = append(b, 'a'+c-26)
		}
	}
	return string(b)
}

var (
	read    = FlagsOf("S")
	flagged = FlagsOf("F")
	trashed = FlagsOf("T")
)

// NewFeed returns a feed with some entries, which is not one of a catalogue.
func NewFeed(hash string, about *subscriptions.About, refs []lektordir.Ref) *Feed {
	return (&Feed{Hash: hash, About: about}).with(refs)
}

// Entry is an entry in a snapshot.
type Entry struct {
	Feed  *Feed
	place uint32 // its number
}

// Flags returns the flags of the entry.
func (e Entry) Flags() Flags { return Flags(e.Feed.states[e.place] & onlyFlags) }

// Has reports whether the entry has one of some flags.
func (e Entry) Has(f Flags) bool { return e.Flags()&f != 0 }

// Unread reports whether the entry is not marked as read.
func (e Entry) Unread() bool { return e.Feed.states[e.place]&inNew != 0 || !e.Has(read) }

// Trashed reports whether viewers do not list the entry.
func (e Entry) Trashed() bool { return e.Has(trashed) }

// Micros returns when the entry was delivered, in microseconds of Unix time.
func (e Entry) Micros() int64 {
	if e.Feed.states[e.place]&whole != 0 {
		return e.Feed.kept[e.place].Delivered().UnixMicro()
	}
	return e.Feed.names[e.place].micros
}

// Ref returns the names of the entry.
func (e Entry) Ref() lektordir.Ref { return e.Feed.ref(int(e.place)) }

// Same reports whether this is the same entry, perhaps of another snapshot.
func (e Entry) Same(o Entry) bool {
	if e.Feed == o.Feed || e.Feed.numbered(o.Feed) {
		return e.place == o.place
	}
	return e.Feed.Hash == o.Feed.Hash && e.ID() == o.ID()
}

// numbered reports whether entries have the same numbers in another version of the feed.
func (f *Feed) numbered(o *Feed) bool {
	return f.catalog != nil && f.catalog == o.catalog && f.number == o.number
}

// ID is a hash of the feed and the unique name of an entry, which stay the same when its flags change. It is
// never 0, and differs between processes. A map by ID is several times faster than one by names.
type ID uint64

var idSeed = sync.OnceValue(maphash.MakeSeed)

// IDOf returns the ID of an entry by its names.
func IDOf(r lektordir.Ref) ID {
	return idOf(r.Feed, keyOf(r.Unique))
}

// ID returns the ID of the entry.
func (e Entry) ID() ID {
	return idOf(e.Feed.Hash, e.Feed.keyOf(int(e.place)))
}

func idOf(feed string, k key) ID {
	var h maphash.Hash
	h.SetSeed(idSeed())
	h.WriteString(feed)
	h.WriteByte('/')
	h.WriteString(k.rest)
	var b [25]byte // it begins with a NUL, which no name has
	binary.LittleEndian.PutUint64(b[1:], uint64(k.micros))
	binary.LittleEndian.PutUint64(b[9:], k.identity)
	binary.LittleEndian.PutUint32(b[17:], k.pid)
	binary.LittleEndian.PutUint32(b[21:], k.seq)
	h.Write(b[:])
	return ID(h.Sum64() | 1)
}

// Newest returns when the last entry was delivered of those that are not trashed, zero if there is none.
func (f *Feed) Newest() time.Time {
	if f.Shown == 0 {
		return time.Time{}
	}
	return time.UnixMicro(f.newest)
}

// All yields the entries of the feed that are not trashed, in any order.
func (f *Feed) All() iter.Seq[Entry] {
	return func(yield func(Entry) bool) {
		for i, s := range f.states {
			if e := (Entry{f, uint32(i)}); s&gone == 0 && !e.Trashed() && !yield(e) {
				return
			}
		}
	}
}

// Find returns the entry with a unique name.
func (f *Feed) Find(name string) (Entry, bool) {
	k := keyOf(name)
	for i, s := range f.states {
		if s&gone == 0 && f.keyOf(i) == k {
			return Entry{f, uint32(i)}, true
		}
	}
	return Entry{}, false
}

// Came returns the entries that the feed has and has never had until an earlier version of it, by time of
// delivery; nil stands for a feed without entries. An entry that was hidden by a newer version of it and is
// listed again, because that was removed, has not come.
func (f *Feed) Came(earlier *Feed) []lektordir.Ref {
	if earlier == nil {
		earlier = &Feed{Hash: f.Hash}
	}
	had := map[string]bool{}
	same := f.numbered(earlier)
	if !same { // it was numbered anew
		for i := range earlier.names {
			had[earlier.ref(i).Unique] = true
		}
	}
	var list []lektordir.Ref
	for i, s := range f.states {
		if s&gone == 0 && (!same || i >= len(earlier.names)) && !had[f.ref(i).Unique] {
			list = append(list, f.ref(i))
		}
	}
	slices.SortFunc(list, lektordir.Ref.Compare)
	return list
}

func (f *Feed) ref(i int) lektordir.Ref {
	s := f.states[i]
	if s&whole != 0 {
		return f.kept[uint32(i)]
	}
	var b [longest]byte
	return s.ref(f.Hash, string(f.keyOf(i).append(b[:0])))
}

// ref returns the names of an entry, unless these are whole.
func (s state) ref(feed, name string) lektordir.Ref {
	r := lektordir.Ref{Feed: feed, Unique: name, Place: lektordir.New}
	if s&inNew == 0 {
		r.Place, r.Info = lektordir.Cur, "2,"+Flags(s&onlyFlags).String()
	}
	return r
}

// longest is the usual maximum length of a unique name.
const longest = 96

// key identifies an entry of a feed by its unique name.
type key struct {
	name
	rest string // the host, or the whole of another name
}

// append appends the unique name to b, unless it is another.
func (k key) append(b []byte) []byte {
	var id [16]byte
	for i := range id {
		id[i] = "0123456789abcdef"[k.identity>>(60-4*i)&15]
	}
	return entryname.AppendUnique(b, time.UnixMicro(k.micros), int(k.pid), int64(k.seq), string(id[:]), k.rest)
}

// keyOf returns the key of a unique name.
func keyOf(unique string) key {
	if p, ok := entryname.Split(unique); ok {
		secs, _ := strconv.ParseUint(unique[:strings.IndexByte(unique, '.')], 10, 64)
		n := name{micros: int64(secs)*1e6 + p.Micros, pid: uint32(p.PID), seq: uint32(p.Seq)}
		n.identity, _ = strconv.ParseUint(p.Identity, 16, 64)
		var b [longest]byte
		if k := (key{n, p.Host}); n != (name{}) && string(k.append(b[:0])) == unique {
			return k
		}
	}
	return key{rest: unique}
}

func (f *Feed) keyOf(i int) key {
	if f.states[i]&whole != 0 {
		return keyOf(f.kept[uint32(i)].Unique)
	}
	return key{f.names[i], f.hosts[f.states[i]>>hostShift]}
}

// with returns the feed with the entries that it has now. It shares with f all that did not change: a mark
// changes the states alone, and entries that have come are appended.
func (f *Feed) with(refs []lektordir.Ref) *Feed {
	next := &Feed{Hash: f.Hash, About: f.About, number: f.number, catalog: f.catalog, names: f.names,
		hosts: slices.Clip(f.hosts), kept: maps.Clone(f.kept)}
	known := make(map[key]int, len(f.names))
	next.states = make([]state, len(f.names), max(len(f.names), len(refs)))
	for i, s := range f.states {
		known[f.keyOf(i)] = i
		next.states[i] = s | gone
	}
	if f.names == nil {
		next.names = make([]name, 0, len(refs))
	}
	for _, r := range refs {
		k := keyOf(r.Unique)
		i, ok := known[k]
		if !ok {
			i = len(next.names)
			next.names, next.states = append(next.names, k.name), append(next.states, 0)
		}
		s := state(FlagsOf(r.Flags()))
		if r.Place == lektordir.New {
			s |= inNew
		}
		host := slices.Index(next.hosts, k.rest)
		if host < 0 && k.name != (name{}) && len(next.hosts) < maxHosts {
			host, next.hosts = len(next.hosts), append(next.hosts, strings.Clone(k.rest))
		}
		next.states[i] = s | state(max(0, host))<<hostShift
		if k.name == (name{}) || host < 0 || s.ref(f.Hash, r.Unique) != r {
			next.states[i] |= whole
			if next.kept == nil {
				next.kept = map[uint32]lektordir.Ref{}
			}
			next.kept[uint32(i)] = r
		}
	}
	if len(next.names) == len(f.names) && slices.Equal(next.states, f.states) && maps.Equal(next.kept, f.kept) {
		return f
	}
	next.count()
	return next
}

// count counts the entries.
func (f *Feed) count() {
	for i, s := range f.states {
		e := Entry{f, uint32(i)}
		switch {
		case s&gone != 0:
			f.gone++
			continue
		case e.Trashed():
			continue
		case e.Unread():
			f.Unread++
		}
		if f.Flags |= e.Flags(); e.Has(flagged) {
			f.Flagged++
		}
		if f.Shown++; f.Shown == 1 || e.Micros() > f.newest {
			f.newest = e.Micros()
		}
	}
}
