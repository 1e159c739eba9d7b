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

// A model says what a disk may hold after a power cut: the recorded calls that a sync
// made durable, and any of the others that the model's assumptions permit. The README
// beside this file lists the assumptions.

// node is a file, a directory or a symbolic link, as on the disk: apart from
// the names that lead to it.
type node struct {
	mode  fs.FileMode // its type
	data  []byte      // content of a file; target of a link
	mtime time.Time   // zero: that of its making
	names map[string]int
}

// volume is a file system: nodes by number, of which 0 is the lektor-dir.
type volume []node

// readVolume reads a directory.
func readVolume(dir string) volume {
	v := volume{{mode: fs.ModeDir, names: map[string]int{}}}
	numbers := map[string]int{dir: 0}
	files := map[uint64]int{} // by inode, as a file may have several names
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

// find returns the node at a path, and the nodes of the directories on the way to
// it; ok is false if the path does not exist. Links are not followed.
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

// all yields each path, a directory before what is in it.
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

// clone copies what changes of a volume. Data are replaced, never written to.
func (v volume) clone() volume {
	w := slices.Clone(v)
	for i := range w {
		w[i].names = maps.Clone(w[i].names)
	}
	return w
}

// sum is equal for volumes that look the same.
func (v volume) sum() (s [sha256.Size]byte) {
	h := sha256.New()
	for p, x := range v.all() {
		fmt.Fprintf(h, "%q %v %q\n", p, x.mode, x.data)
	}
	h.Sum(s[:0])
	return s
}

// differ returns an error if a volume differs from another, in names or data.
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

// write makes a directory of a volume.
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

// changeKind is what a call changes.
type changeKind int

const (
	nameMade  changeKind = iota // a node was made under a name
	nameMoved                   // the name of a node was changed
	nameGone                    // a name was removed
	written                     // data of a file
	sized                       // the length of a file
	timed                       // the time of a node
	synced                      // nothing: what was changed became durable
)

// change is what a call changed, told by nodes in place of paths, so that it
// can be done where a call before it was not.
type change struct {
	kind changeKind
	call int // its number, from 1
	op   op
	node int // the node changed or synced; -1: a sync of all
	dir  int // where its name is, or was before it moved
	to   int // where it moved; else dir
	name string
	as   string // its name there
	way  []int  // for a sync: the directories on the way to the node
}

// isName reports whether a change is one of names, not of a node.
func (c *change) isName() bool { return c.kind <= nameGone }

// touches reports whether a change of names is one that a sync of a node makes
// durable: of the node's own name, or of a name in it.
// To sync a file says nothing of the further names that it was given.
func (c *change) touches(x int) bool {
	return c.node == x && c.op.Kind != "link" || c.dir == x || c.to == x
}

// do makes a change. It does nothing where a change before it is missing that
// it needs.
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

// recording is what one or several programs did to a lektor-dir.
type recording struct {
	before  volume // on the disk; and, without names or data, the nodes made later
	now     volume // as the programs see it
	calls   int
	changes []change
	printed []printed
}

// printed is an entry whose path a program printed after a call.
type printed struct {
	unique string
	call   int
}

// newRecording begins one in a directory whose content is on the disk.
func newRecording(dir string) *recording {
	v := readVolume(dir)
	return &recording{before: v, now: v.clone()}
}

// target is the place of a path: the node there, and the directory that has its name.
type target struct {
	node  int
	way   []int
	there bool
	dir   bool // the name has a directory
}

// recorders turn calls into changes, by the kind of call, and report whether a call changes
// anything: a call that must have failed does not. The change comes with the call, and with
// the node and the directory of its path.
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

// sized is for a call that sets the length of a file.
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
	if !found || !a.dir || a.there && (c.op.Flags != 0 || a.node == from || r.now[a.node].mode != r.now[from].mode || len(r.now[a.node].names) > 0) {
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

// model is what is assumed of a file system beyond the syncs.
type model struct {
	// unsynced: syncs do nothing.
	unsynced bool
}

// fate is what becomes of a change that no sync has made durable.
type fate struct {
	lost  bool
	torn  int  // for data: if not 0, only this many bytes are there
	zeros bool // for data: only the length is there
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

// loose returns the changes that are not durable when the power fails after a call,
// as indexes of r.changes: changes of names, and other changes. All the rest up to that
// call are durable.
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
	// Changes before a durable change of names are durable.
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

// diskState is what may be on the disk after a power cut.
type diskState struct {
	call   int // the last before it
	fates  map[int]fate
	volume volume
}

// build makes the state in which changes that are not durable have those fates.
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

// describe returns what became of the changes that are not durable, where that can be
// seen.
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

// ways is how many fates a change of data has that all orders are made of.
func (c *change) ways() int {
	if c.kind != written {
		return 2
	}
	return 4
}

// fate returns the n-th of them; 0 is there, 1 lost.
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

// orders yields states that the syncs permit, each once. If there are no more than n ways
// to them, it yields all. Else it yields, in this order: after the end, states where one
// call's data are lost; in random order, for every cut and every number of names that
// survive, one with all data and one with none; then others at random, until n or until
// it finds no more. It reports whether all ways were tried.
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

// cut is a moment at which the power may be cut: the changes that may be lost then,
// those of names, which survive in order, and others.
type cut struct{ names, others []int }

// orderer yields states of a recording, each once and n at most.
type orderer struct {
	*recording
	n     int
	seen  map[[sha256.Size]byte]bool
	yield func(*diskState) bool
	cuts  []cut // before each call, and after the last
}

// put yields the state after a cut before call k; it returns false if no more are wanted.
func (o *orderer) put(k int, fates map[int]fate) bool {
	s := o.build(k, fates)
	sum := s.volume.sum()
	if k == o.calls {
		sum[0]++ // the same state counts anew once the command has ended
	}
	if o.seen[sum] {
		return true
	}
	o.seen[sum] = true
	return len(o.seen) <= o.n && o.yield(s)
}

// fates returns the fates where the first survive names of the cut survive.
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

// every yields all states that there are.
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

// forgotten yields states at the end where what was forgotten to be synced is
// missing alone.
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

// plain yields states where all data has the same fate. Half of the states at
// most: others are to be seen, too.
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

// chosen yields states by chance.
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

// random returns random fates to changes of data.
func (r *recording) random(rng *rand.Rand) func(i int) fate {
	most := rng.IntN(6) // the fate of most of them, if it is one of the four
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

// matches returns an error if a directory differs from what the recording says.
func (r *recording) matches(dir string) {
	must.That(readVolume(dir).differ(r.now), "the recorded calls do not lead to the directory that is there")
}
