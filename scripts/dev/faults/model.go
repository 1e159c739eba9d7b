//go:build linux && (amd64 || arm64)

package main

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/lektordir/lektor/internal/testkit/must"
	"golang.org/x/sys/unix"
)

// A model determines the possible contents of a disk after a power cut: the recorded calls that a
// sync made durable, and any of the other calls that the model's assumptions permit. The README
// beside this file lists the assumptions.

// node is a file, a directory or a symbolic link on the disk, without its names.
type node struct {
	mode  fs.FileMode // type
	data  []byte      // content of a file; target of a link
	mtime time.Time   // zero means the time of creation
	names map[string]int
}

// volume is a file system: nodes by number. Node 0 is the lektor-dir.
type volume []node

// readVolume reads a directory.
func readVolume(dir string) volume {
	v := volume{{mode: fs.ModeDir, names: map[string]int{}}}
	numbers := map[string]int{dir: 0}
	files := map[uint64]int{} // by inode number, since a file may have several names
	must.Do(filepath.WalkDir(dir, func(p string, e fs.DirEntry, err error) error {
		if must.Do(err); p == dir {
			return nil
		}
		fi := must.Get(e.Info())
		x := node{mode: e.Type(), mtime: fi.ModTime()}
		inode := fi.Sys().(*syscall.Stat_t).Ino
		if y, ok := files[inode]; ok {
			v[numbers[filepath.Dir(p)]].names[e.Name()] = y
			return nil
		}
		switch x.mode {
		case fs.ModeDir:
			x.names = map[string]int{}
		case fs.ModeSymlink:
			x.data = []byte(must.Get(os.Readlink(p)))
		case 0:
			x.data = must.Get(os.ReadFile(p))
			files[inode] = len(v)
		default:
			must.Fail("%s: the model has no %v", p, x.mode)
		}
		numbers[p] = len(v)
		v[numbers[filepath.Dir(p)]].names[e.Name()] = len(v)
		v = append(v, x)
		return nil
	}))
	return v
}

// find returns the node at a path, and the nodes of the directories above it. ok is false if the
// path does not exist. Links are not followed.
func (v volume) find(p string) (x int, way []int, ok bool) {
	if p == "." {
		return 0, nil, true
	}
	for part := range strings.SplitSeq(p, "/") {
		way = append(way, x)
		if x, ok = v[x].names[part]; !ok {
			return 0, nil, false
		}
	}
	return x, way, true
}

// all yields each path, a directory before its contents.
func (v volume) all() iter.Seq2[string, *node] {
	return func(yield func(string, *node) bool) { v.below("", 0, yield) }
}

func (v volume) below(dir string, x int, yield func(string, *node) bool) bool {
	for _, name := range slices.Sorted(maps.Keys(v[x].names)) {
		p, y := path.Join(dir, name), v[x].names[name]
		if !yield(p, &v[y]) || !v.below(p, y, yield) {
			return false
		}
	}
	return true
}

// clone copies the parts of a volume that change. Data are replaced, never modified.
func (v volume) clone() volume {
	w := slices.Clone(v)
	for i := range w {
		w[i].names = maps.Clone(w[i].names)
	}
	return w
}

// sum returns a digest that is equal for volumes with the same contents.
func (v volume) sum() (s [sha256.Size]byte) {
	h := sha256.New()
	for p, x := range v.all() {
		fmt.Fprintf(h, "%q %v %q\n", p, x.mode, x.data)
	}
	h.Sum(s[:0])
	return s
}

// differ returns an error if the names or data of two volumes differ.
func (v volume) differ(w volume) error {
	seen := map[string]string{}
	for p, x := range w.all() {
		seen[p] = fmt.Sprintf("%v %q", x.mode, x.data)
	}
	var bad []error
	for p, x := range v.all() {
		if got := fmt.Sprintf("%v %q", x.mode, x.data); got != seen[p] {
			bad = append(bad, fmt.Errorf("%s is %.80s, not %.80s", p, got, seen[p]))
		}
		delete(seen, p)
	}
	for p := range seen {
		bad = append(bad, fmt.Errorf("%s is missing", p))
	}
	return errors.Join(bad...)
}

// write writes a volume to a directory.
func (v volume) write(dir string) {
	must.Do(os.Mkdir(dir, 0o700))
	firstPath := map[*node]string{}
	for p, x := range v.all() {
		p = filepath.Join(dir, p)
		twin, ok := firstPath[x]
		switch {
		case x.mode == fs.ModeDir:
			must.Do(os.Mkdir(p, 0o700))
		case x.mode == fs.ModeSymlink:
			must.Do(os.Symlink(string(x.data), p))
		case ok:
			must.Do(os.Link(twin, p))
		default:
			firstPath[x] = p
			must.Do(os.WriteFile(p, x.data, 0o600))
			if !x.mtime.IsZero() {
				must.Do(os.Chtimes(p, x.mtime, x.mtime))
			}
		}
	}
}

// changeKind is the kind of a change.
type changeKind int

const (
	nameMade  changeKind = iota // a name was created for a node
	nameMoved                   // a node was renamed
	nameGone                    // a name was removed
	written                     // data of a file
	sized                       // the length of a file
	timed                       // the time of a node
	synced                      // nothing changed; earlier changes became durable
)

// change is the change by a call. It refers to nodes instead of paths, so that it can be applied
// without the calls before it.
type change struct {
	kind changeKind
	call int // number of the call, from 1
	op   op
	node int // the node that was changed or synced; -1 for a sync of all
	dir  int // directory of its name, before a move
	to   int // directory after a move; else dir
	name string
	as   string // its name in to
	way  []int  // for a sync: the directories above the node
}

// isName reports whether a change is of a name, not of a node.
func (c *change) isName() bool { return c.kind <= nameGone }

// touches reports whether a sync of a node makes this change of a name durable: of the node's own
// name, or of a name in it. A sync of a file does not sync its further hard links.
func (c *change) touches(x int) bool {
	return c.node == x && c.op.Kind != "link" || c.dir == x || c.to == x
}

// do applies a change. It does nothing if an earlier change that it needs is missing.
func (c *change) do(v volume, f fate) {
	x := &v[c.node]
	there := func(dir int, name string) bool { y, ok := v[dir].names[name]; return ok && y == c.node }
	switch c.kind {
	case nameMade:
		v[c.dir].names[c.name] = c.node
	case nameGone:
		if there(c.dir, c.name) {
			delete(v[c.dir].names, c.name)
		}
	case nameMoved:
		if there(c.dir, c.name) {
			delete(v[c.dir].names, c.name)
			v[c.to].names[c.as] = c.node
		}
	case written:
		off, data := int(c.op.Off), c.op.Data
		if off < 0 {
			off = len(x.data)
		}
		if f.torn > 0 {
			data = data[:f.torn]
		}
		if f.zeros {
			data = make([]byte, len(data))
		}
		b := make([]byte, max(len(x.data), off+len(data)))
		copy(b, x.data)
		copy(b[off:], data)
		x.data = b
	case sized:
		b := make([]byte, c.op.Off)
		copy(b, x.data)
		x.data = b
	case timed:
		x.mtime = c.op.Time
	}
}

// recording is the record of the changes of a lektor-dir by one or more programs.
type recording struct {
	before  volume // on the disk at first; nodes created later are in it without names and data
	now     volume // as programs see it
	calls   int
	changes []change
	printed []printed
}

// printed is an entry whose path a program printed after a call.
type printed struct {
	unique string
	call   int
}

// newRecording begins a recording in a directory whose contents are durable.
func newRecording(dir string) *recording {
	v := readVolume(dir)
	return &recording{before: v, now: v.clone()}
}

// target is the object of a path: the node, and the directory that has its name.
type target struct {
	node  int
	way   []int
	there bool
	dir   bool // the directory exists
}

// recorders convert calls into changes, by the kind of call. They report whether the call changes
// anything; a call that must have failed does not. c has the call, and the node and directory of
// its path.
var recorders = map[string]func(r *recording, a target, c *change) bool{
	"mkdir":    func(r *recording, a target, c *change) bool { return r.addNode(a, c, fs.ModeDir, "") },
	"symlink":  func(r *recording, a target, c *change) bool { return r.addNode(a, c, fs.ModeSymlink, c.op.Text) },
	"create":   (*recording).created,
	"link":     (*recording).linked,
	"write":    (*recording).wrote,
	"pwrite":   (*recording).wrote,
	"truncate": func(r *recording, a target, c *change) bool { return a.there && r.sized(c) },
	"utimes": func(_ *recording, a target, c *change) bool {
		c.kind = timed
		return a.there && !c.op.Time.IsZero()
	},
	"unlink": (*recording).unlinked,
	"rename": (*recording).renamed,
	"fsync": func(_ *recording, a target, c *change) bool {
		c.kind, c.way = synced, a.way
		return a.there
	},
	"syncfs": allSynced,
	"sync":   allSynced,
	"chmod":  func(*recording, target, *change) bool { return false },
}

func allSynced(_ *recording, _ target, c *change) bool {
	c.kind, c.node = synced, -1
	return true
}

// add records a call.
func (r *recording) add(o op) {
	record, ok := recorders[o.Kind]
	if !ok {
		must.Fail("%v: the model does not know this call", o)
	}
	r.calls++
	var a target
	a.node, a.way, a.there = r.now.find(o.Path)
	dir, _, ok := r.now.find(path.Dir(o.Path))
	a.dir = ok && r.now[dir].mode == fs.ModeDir
	c := change{call: r.calls, op: o, node: a.node, dir: dir, to: dir, name: path.Base(o.Path)}
	if record(r, a, &c) {
		r.put(c)
	}
}

// addNode adds a node of a type.
func (r *recording) addNode(a target, c *change, mode fs.FileMode, data string) bool {
	if !a.dir || a.there {
		return false
	}
	n := node{mode: mode, data: []byte(data)}
	if mode == fs.ModeDir {
		n.names = map[string]int{}
	}
	c.kind, c.node = nameMade, len(r.now)
	r.before, r.now = append(r.before, n), append(r.now, n)
	r.before[c.node].names = maps.Clone(n.names)
	return true
}

func (r *recording) created(a target, c *change) bool {
	flags := c.op.Flags
	if !a.there {
		return flags&unix.O_CREAT != 0 && r.addNode(a, c, 0, "")
	}
	c.op.Off = 0
	return flags&unix.O_EXCL == 0 && flags&unix.O_TRUNC != 0 && r.now[a.node].mode == 0 && r.sized(c)
}

// sized records a call that sets the length of a file.
func (r *recording) sized(c *change) bool {
	c.kind = sized
	return int(c.op.Off) != len(r.now[c.node].data)
}

func (r *recording) linked(a target, c *change) bool {
	from, _, found := r.now.find(c.op.From)
	c.kind, c.node = nameMade, from
	return found && a.dir && !a.there && r.now[from].mode != fs.ModeDir
}

func (r *recording) wrote(a target, c *change) bool {
	if !a.there || len(c.op.Data) == 0 {
		return false
	}
	if len(c.op.Data) != c.op.Len {
		must.Fail("%v: its data could not be read", c.op)
	}
	if c.op.Off < 0 {
		c.op.Off = int64(len(r.now[a.node].data))
	}
	c.kind = written
	return true
}

func (r *recording) unlinked(a target, c *change) bool {
	dir := r.now[a.node].mode == fs.ModeDir
	c.kind = nameGone
	return a.there && c.op.Path != "." && dir == (c.op.Flags&unix.AT_REMOVEDIR != 0) && len(r.now[a.node].names) == 0
}

func (r *recording) renamed(a target, c *change) bool {
	if c.op.Flags&^unix.RENAME_NOREPLACE != 0 {
		must.Fail("%v: the model does not know its flags", c.op)
	}
	from, _, found := r.now.find(c.op.From)
	if !found || !a.dir || a.there && (c.op.Flags != 0 || a.node == from || r.now[a.node].mode != r.now[from].mode ||
		len(r.now[a.node].names) > 0) {
		return false
	}
	c.kind, c.node, c.as, c.name = nameMoved, from, c.name, path.Base(c.op.From)
	c.dir, _, _ = r.now.find(path.Dir(c.op.From))
	return true
}

func (r *recording) put(c change) {
	r.changes = append(r.changes, c)
	if c.kind != synced {
		c.do(r.now, fate{})
	}
}

// model is the assumptions about a file system besides the syncs.
type model struct {
	// unsynced means that syncs do nothing.
	unsynced bool
}

// fate is the effect of a power cut on a change that is not durable.
type fate struct {
	lost  bool
	torn  int  // for data: if not 0, only this many bytes survive
	zeros bool // for data: only the length survives
}

func (f fate) String() string {
	switch {
	case f.lost:
		return "lost"
	case f.torn > 0:
		return fmt.Sprintf("%d bytes of it there", f.torn)
	case f.zeros:
		return "there as zeros"
	}
	return "there"
}

// loose returns the changes that are not durable if the power fails after a call, as indexes of
// r.changes: changes of names, and other changes. All other changes up to that call are durable.
func (r *recording) loose(k int, m model) (names, others []int) {
	done := r.changes
	for i, c := range done {
		if c.call > k {
			done = done[:i]
			break
		}
	}
	durable := make([]bool, len(done))
	require := func(i int) { durable[i] = true }
	for i := range done {
		s := &done[i]
		if s.kind != synced || m.unsynced {
			continue
		}
		for j := range done[:i] {
			c := &done[j]
			switch {
			case c.kind == synced:
			case s.node < 0,
				c.isName() && (c.touches(s.node) || slices.Contains(s.way, c.node)),
				!c.isName() && c.node == s.node:
				require(j)
			}
		}
	}
	// Changes before a durable change of a name are durable.
	nextDurable := false
	for i := len(done) - 1; i >= 0; i-- {
		c := &done[i]
		if !c.isName() {
			continue
		}
		durable[i] = durable[i] || nextDurable
		nextDurable = durable[i]
	}
	for i := range done {
		switch {
		case durable[i] || done[i].kind == synced:
		case done[i].isName():
			names = append(names, i)
		default:
			others = append(others, i)
		}
	}
	return names, others
}

// diskState is a possible state of the disk after a power cut.
type diskState struct {
	call   int // the last call before the cut
	fates  map[int]fate
	volume volume
}

// build returns the state in which changes that are not durable have these fates.
func (r *recording) build(k int, fates map[int]fate) *diskState {
	s := &diskState{call: k, fates: fates, volume: r.before.clone()}
	for i := range r.changes {
		c := &r.changes[i]
		if c.call > k {
			break
		}
		if f := fates[i]; c.kind != synced && !f.lost {
			c.do(s.volume, f)
		}
	}
	return s
}

// describe returns the visible fates of the changes that are not durable.
func (r *recording) describe(s *diskState) string {
	seen := map[int]bool{}
	var look func(x int)
	look = func(x int) {
		seen[x] = true
		for _, y := range s.volume[x].names {
			look(y)
		}
	}
	look(0)
	var b strings.Builder
	fmt.Fprintf(&b, "power cut after call %d of %d", s.call, r.calls)
	if s.call > 0 {
		i := slices.IndexFunc(r.changes, func(c change) bool { return c.call >= s.call })
		if i >= 0 && r.changes[i].call == s.call {
			fmt.Fprintf(&b, ", %v", r.changes[i].op)
		}
	}
	there, lost := 0, 0
	for _, i := range slices.Sorted(maps.Keys(s.fates)) {
		c, f := &r.changes[i], s.fates[i]
		switch {
		case f == fate{}:
			there++
		case c.isName() && lost > 0 && c.op.Kind != "rename":
			lost++
		case c.isName() || seen[c.node]:
			if c.isName() {
				lost++
			}
			fmt.Fprintf(&b, "\n  %v: call %d, %v", f, c.call, c.op)
		}
	}
	fmt.Fprintf(&b, "\n  of names, %d changes are lost; %d that were not synced are there", lost, there)
	return b.String()
}

// ways returns the number of fates of a change that orders tests.
func (c *change) ways() int {
	if c.kind != written {
		return 2
	}
	return 4
}

// fate returns the n-th fate; 0 is survival, 1 is loss.
func (c *change) fate(n int) fate {
	switch n {
	case 1:
		return fate{lost: true}
	case 2:
		return fate{zeros: true}
	case 3:
		return fate{torn: len(c.op.Data) / 2}
	}
	return fate{}
}

// orders yields states that the syncs permit, each once. If there are at most n combinations, it
// yields all. Else it yields, in this order: states at the end in which the data of one call are
// lost; in random order, for every cut and every number of surviving names, a state with all data
// and one with none; then random states, until n or until it finds no more. It reports whether it
// tried all combinations.
func (r *recording) orders(n int, m model, rng *rand.Rand, yield func(*diskState) bool) (all bool) {
	o := &orderer{recording: r, n: n, seen: map[[sha256.Size]byte]bool{}, yield: yield, cuts: make([]cut, r.calls+1)}
	total := 0
	for k := range o.cuts {
		c := &o.cuts[k]
		c.names, c.others = r.loose(k, m)
		ways := len(c.names) + 1
		for _, i := range c.others {
			if ways *= r.changes[i].ways(); ways > n {
				break
			}
		}
		total = min(total+ways, n+1)
	}
	if total <= n {
		return o.every()
	}
	if o.forgotten() && o.plain(rng) {
		o.chosen(rng)
	}
	return false
}

// cut is a moment at which the power is cut, with the changes that may be lost: those of names,
// which survive in order, and others.
type cut struct{ names, others []int }

// orderer yields at most n states of a recording, each once.
type orderer struct {
	*recording
	n     int
	seen  map[[sha256.Size]byte]bool
	yield func(*diskState) bool
	cuts  []cut // before each call, and after the last
}

// put yields the state after a cut before call k. It returns false if yield wants no more states.
func (o *orderer) put(k int, fates map[int]fate) bool {
	s := o.build(k, fates)
	sum := s.volume.sum()
	if k == o.calls {
		sum[0]++ // the same state counts again after the command has ended
	}
	if o.seen[sum] {
		return true
	}
	o.seen[sum] = true
	return len(o.seen) <= o.n && o.yield(s)
}

// fates returns the fates if the first survive names of the cut survive.
func (c *cut) fates(survive int, other func(i int) fate) map[int]fate {
	m := map[int]fate{}
	for j, i := range c.names {
		m[i] = fate{lost: j >= survive}
	}
	for _, i := range c.others {
		m[i] = other(i)
	}
	return m
}

// every yields all states.
func (o *orderer) every() bool {
	for k := range o.cuts {
		c := &o.cuts[k]
		digits := make([]int, len(c.others))
		for more := true; more; {
			for survive := range len(c.names) + 1 {
				next := 0
				if !o.put(k, c.fates(survive, func(i int) fate { next++; return o.changes[i].fate(digits[next-1]) })) {
					return false
				}
			}
			more = false
			for j, i := range c.others {
				if digits[j]++; digits[j] < o.changes[i].ways() {
					more = true
					break
				}
				digits[j] = 0
			}
		}
	}
	return true
}

// forgotten yields states at the end in which only data that was not synced is missing.
func (o *orderer) forgotten() bool {
	end := &o.cuts[o.calls]
	for _, lost := range end.others {
		if len(o.seen) > o.n/2 {
			break
		}
		if !o.put(o.calls, end.fates(len(end.names), func(i int) fate { return fate{lost: i == lost} })) {
			return false
		}
	}
	return true
}

// plain yields states in which all data has the same fate, at most half of all states.
func (o *orderer) plain(rng *rand.Rand) bool {
	type state struct{ k, survive, way int }
	var states []state
	for k := range o.cuts {
		for survive := range len(o.cuts[k].names) + 1 {
			states = append(states, state{k, survive, 0}, state{k, survive, 1})
		}
	}
	rng.Shuffle(len(states), func(i, j int) { states[i], states[j] = states[j], states[i] })
	for _, p := range states {
		if len(o.seen) > o.n/2 {
			break
		}
		if !o.put(p.k, o.cuts[p.k].fates(p.survive, func(i int) fate { return o.changes[i].fate(p.way) })) {
			return false
		}
	}
	return true
}

// chosen yields random states.
func (o *orderer) chosen(rng *rand.Rand) {
	for range 20 * o.n {
		if len(o.seen) >= o.n {
			return
		}
		k := rng.IntN(len(o.cuts))
		c := &o.cuts[k]
		survive := rng.IntN(len(c.names) + 1)
		if rng.IntN(4) == 0 {
			survive = len(c.names)
		}
		if !o.put(k, c.fates(survive, o.random(rng))) {
			return
		}
	}
}

// random returns a function that returns random fates for changes of data.
func (r *recording) random(rng *rand.Rand) func(i int) fate {
	most := rng.IntN(6) // the fate of most changes, if it is one of the four
	return func(i int) fate {
		c, n := &r.changes[i], most
		if n >= 4 || rng.IntN(4) == 0 {
			n = rng.IntN(4)
		}
		f := c.fate(n % c.ways())
		if f.torn > 0 {
			f.torn = 1 + rng.IntN(len(c.op.Data)-1)
		}
		return f
	}
}

// matches fails if a directory differs from the recording.
func (r *recording) matches(dir string) {
	must.That(readVolume(dir).differ(r.now), "the recorded calls do not lead to the directory that is there")
}
