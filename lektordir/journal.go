package lektordir

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"iter"
	"os"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/lektordir/lektor/internal/atomicfile"
)

// digest is the beginning of a SHA-256, as much of it as tells the entries of a
// feed and their versions apart: 64 bits, as many as a unique name has of them.
type digest [8]byte

// digestOf digests a list of strings, so that different lists differ even
// where their concatenations do not.
func digestOf(parts ...string) digest {
	sum := hashOf(parts...)
	return digest(sum[:8])
}

func hashOf(parts ...string) (sum [sha256.Size]byte) {
	// All in one piece: the text of an entry is digested several times, and a hash
	// takes no strings without copying each to a place of its own.
	pooled := hashed.Get().(*[]byte)
	defer hashed.Put(pooled)
	b := (*pooled)[:0]
	for _, p := range parts {
		b = binary.BigEndian.AppendUint64(b, uint64(len(p)))
		b = append(b, p...)
	}
	sum = sha256.Sum256(b)
	if cap(b) <= maxHashed {
		*pooled = b
	}
	return sum
}

// hashed holds what hashOf puts together, up to a size.
var hashed = sync.Pool{New: func() any { return new([]byte) }}

const maxHashed = 1 << 20

// String gives 16 hexadecimal digits.
func (d digest) String() string { return hex.EncodeToString(d[:]) }

// key is the second key of an entry, which recognises it when its identifier
// alone changed. Link digests the link by itself, zero when the entry has none;
// Rest digests title, content and date.
type key struct{ Link, Rest [4]byte }

// record is a line of a journal: one delivered version of an entry, or another
// identity of one (Unique then names a version that an earlier line names too).
type record struct {
	Identity digest
	Key      key
	Content  digest // what makes a version: the entry is unchanged when it is equal
	Unique   string
	Replaces string // unique name of the version taken out of new/ for this one, or ""
}

// lineage gives the 16 digits by which versions of an entry delivered as r are
// recognised.
func (r record) lineage() string {
	if id := (Ref{Unique: r.Unique}).Identity(); id != "" {
		return id
	}
	return r.Identity.String()
}

var crcTable = crc32.MakeTable(crc32.Castagnoli)

// appendTo adds the record's line: six fields with single spaces between them, the
// last the CRC-32C of what is before it, in hexadecimal. In the unique name the
// identity is left out where it is that of the line.
func (r record) appendTo(b []byte) []byte {
	start := len(b)
	b = hex.AppendEncode(b, r.Identity[:])
	id := string(b[start:])
	b = append(b, ' ')
	b = hex.AppendEncode(b, r.Key.Link[:])
	b = hex.AppendEncode(b, r.Key.Rest[:])
	b = append(b, ' ')
	b = hex.AppendEncode(b, r.Content[:])
	b = append(b, ' ')
	if u, ok := parseUniq(r.Unique); ok && u.identity == id {
		head, tail, _ := strings.Cut(r.Unique, "I"+id)
		b = append(b, head...)
		b = append(b, 'I')
		b = append(b, tail...)
	} else {
		b = append(b, r.Unique...)
	}
	b = append(b, ' ')
	b = append(b, cmp.Or(r.Replaces, "-")...)
	b = append(b, ' ')
	sum := crc32.Checksum(b[start:], crcTable)
	return append(fmt.Appendf(b, "%08x", sum), '\n')
}

// parseRecord reads a line without its newline. Lines had seven fields before:
// more of each digest, and the time before the checksum.
func parseRecord(l []byte) (record, bool) {
	var r record
	if len(l) < 9 || l[len(l)-9] != ' ' {
		return r, false
	}
	body := l[:len(l)-8]
	var sum [4]byte
	if _, err := hex.Decode(sum[:], l[len(l)-8:]); err != nil || binary.BigEndian.Uint32(sum[:]) != crc32.Checksum(body, crcTable) {
		return r, false
	}
	f := bytes.Split(body[:len(body)-1], []byte{' '})
	wide, link, rest := 16, 0, 8 // digits of a digest, and where the parts of the key are
	if len(f) == 6 {
		wide, rest = 32, 16
	}
	if len(f) < 5 || len(f) > 6 || len(f[0]) != wide || len(f[1]) != wide || len(f[2]) != wide {
		return r, false
	}
	for _, x := range []struct{ to, from []byte }{
		{r.Identity[:], f[0][:16]}, {r.Key.Link[:], f[1][link : link+8]}, {r.Key.Rest[:], f[1][rest : rest+8]}, {r.Content[:], f[2][:16]},
	} {
		if _, err := hex.Decode(x.to, x.from); err != nil {
			return r, false
		}
	}
	r.Unique = string(f[3])
	if head, tail, ok := strings.Cut(r.Unique, "I."); ok && (Ref{Unique: r.Unique}).Identity() == "" {
		if full := head + "I" + r.Identity.String() + "." + tail; (Ref{Unique: full}).Identity() != "" {
			r.Unique = full
		}
	}
	if s := string(f[4]); s != "-" {
		r.Replaces = s
	}
	if r.Unique == "" || strings.ContainsAny(r.Unique+r.Replaces, "/;") || r.Unique[0] == '.' || strings.HasPrefix(r.Replaces, ".") {
		return r, false
	}
	return r, true
}

// journal is what a feed's journal says was delivered. It is a view as of when
// it was read, and belongs to one goroutine. A feed may have delivered a hundred
// thousand entries, and its document has a few: so lines are read when they are
// asked for.
type journal struct {
	data []byte // up to the end of the last good line
	ends []int  // of lines, with the newline
	good int64  // bytes up to the end of the last good line
	size int64  // bytes of the file

	byID, byKey, byName index
	// others are the lines whose entry has the identity of another line in its
	// name, by the beginning of that.
	others  map[uint64][]int32
	repeats int // lines that say what an earlier one says, but for a few

	parsed int // how many lines were read, for tests
}

// index finds lines by a hash.
type index struct {
	heads  []int32 // by hash: the number of the last line, and 1
	before []int32 // by line: the one before it with the same hash, and 1
}

// readJournal reads a journal; a missing one is empty. A line that is not
// terminated or has a wrong checksum does not count.
func readJournal(path string) (*journal, error) {
	data, err := readFile(path)
	if err != nil && !isNotExist(err) {
		return nil, err
	}
	j := &journal{data: data, size: int64(len(data))}
	j.ends = make([]int, 0, len(data)/100+1)
	for off := 0; ; {
		n := bytes.IndexByte(data[off:], '\n')
		if n < 0 {
			break
		}
		off += n + 1
		j.ends = append(j.ends, off)
	}
	for len(j.ends) > 0 {
		if _, ok := j.record(len(j.ends) - 1); ok {
			j.good = int64(j.ends[len(j.ends)-1])
			break
		}
		j.ends = j.ends[:len(j.ends)-1]
	}
	j.data = data[:j.good]
	return j, nil
}

// line gives a line without its newline.
func (j *journal) line(i int) []byte {
	begin := 0
	if i > 0 {
		begin = j.ends[i-1]
	}
	return j.data[begin : j.ends[i]-1]
}

func (j *journal) record(i int) (record, bool) {
	j.parsed++
	return parseRecord(j.line(i))
}

// all yields the lines that count.
func (j *journal) all(yield func(int, record) bool) {
	for i := range j.ends {
		if r, ok := j.record(i); ok && !yield(i, r) {
			return
		}
	}
}

// bad counts the lines before the last good one that do not count.
func (j *journal) bad() int {
	n := len(j.ends)
	for range j.all {
		n--
	}
	return n
}

// fields gives the beginnings of identity, link, rest and content of a line, eight
// digits of each, and all from the unique name on.
func fields(l []byte) (id, link, rest, content, unique []byte) {
	wide := 16
	if len(l) > 32 && l[16] != ' ' {
		wide = 32
	}
	if len(l) < 3*(wide+1)+1 {
		return nil, nil, nil, nil, nil // of no line that counts
	}
	k := l[wide+1:]
	return l[:8], k[:8], k[wide/2 : wide/2+8], k[wide+1 : wide+9], l[3*(wide+1):]
}

// hash mixes what has eight digits.
func hash(parts ...[]byte) uint64 {
	h := uint64(0)
	for _, p := range parts {
		if len(p) == 8 {
			h = (h ^ binary.LittleEndian.Uint64(p)) * 0x9e3779b97f4a7c15
		}
	}
	return h ^ h>>32
}

// stem is what of a unique name is the same whether the identity is left out or not.
func stem(unique []byte) []byte {
	s, _, _ := bytes.Cut(unique, []byte{'I'})
	return s
}

// identityOf gives the beginning of the lineage of a line. Names of another form
// than ours have none of their own.
func identityOf(id, unique []byte) []byte {
	n := len(stem(unique)) + 1
	if n+17 > len(unique) || unique[n] == '.' || unique[n+16] != '.' || len(bytes.Trim(unique[:n-1], "0123456789.MPQ")) > 0 {
		return id
	}
	return unique[n : n+8]
}

// newIndex makes room for n lines.
func newIndex(n int) index {
	size := 1
	for size < 2*n {
		size *= 2
	}
	return index{heads: make([]int32, size), before: make([]int32, n)}
}

func (x *index) add(i int, h uint64) {
	at := &x.heads[h&uint64(len(x.heads)-1)]
	x.before[i], *at = *at, int32(i+1)
}

// lines yields the lines with a hash, and some with others, the last first.
func (x *index) lines(h uint64) iter.Seq[int] {
	return func(yield func(int) bool) {
		if x.heads == nil {
			return
		}
		for i := x.heads[h&uint64(len(x.heads)-1)]; i > 0 && yield(int(i-1)); i = x.before[i-1] {
		}
	}
}

// build makes what is asked for in every fetch, in one pass.
func (j *journal) build() {
	if j.byID.heads != nil {
		return
	}
	j.byID = newIndex(len(j.ends))
	for i := range j.ends {
		l := j.line(i)
		id, _, _, content, unique := fields(l)
		h := hash(id)
		looked := 0
		for k := range j.byID.lines(h) {
			if other := j.line(k); len(other) > 8 && string(other[:8]) == string(id) {
				if _, _, _, c, _ := fields(other); string(c) == string(content) {
					j.repeats++
					break
				}
			}
			if looked++; looked == 4 {
				break
			}
		}
		j.byID.add(i, h)
		if in := identityOf(id, unique); string(in) != string(id) {
			if j.others == nil {
				j.others = map[uint64][]int32{}
			}
			j.others[hash(in)] = append(j.others[hash(in)], int32(i))
		}
	}
}

// pick gives those records of lines for which is holds, oldest first.
func (j *journal) pick(lines iter.Seq[int], is func(record) bool) []record {
	var found []record
	for i := range lines {
		if r, ok := j.record(i); ok && is(r) {
			found = append(found, r)
		}
	}
	slices.Reverse(found)
	return found
}

// find is pick for an index that is made when it is first used; of tells the hash
// of a line.
func (j *journal) find(x *index, of func(l []byte) uint64, h uint64, is func(record) bool) []record {
	if x.heads == nil {
		*x = newIndex(len(j.ends))
		for i := range j.ends {
			x.add(i, of(j.line(i)))
		}
	}
	return j.pick(x.lines(h), is)
}

func digits(b []byte) []byte { return hex.AppendEncode(make([]byte, 0, 16), b)[:8] }

// versions gives the records of an identity, oldest first.
func (j *journal) versions(identity digest) []record {
	j.build()
	return j.pick(j.byID.lines(hash(digits(identity[:]))), func(r record) bool { return r.Identity == identity })
}

// withKey gives the records with a second key, oldest first.
func (j *journal) withKey(k key) []record {
	of := func(l []byte) uint64 {
		_, link, rest, _, _ := fields(l)
		return hash(link, rest)
	}
	return j.find(&j.byKey, of, hash(digits(k.Link[:]), digits(k.Rest[:])), func(r record) bool { return r.Key == k })
}

// lineageOf gives the records of all versions of the entry that a record is of,
// under whichever identity, oldest first.
func (j *journal) lineageOf(r record) []record {
	if found := j.lineage(r.lineage()); len(found) > 0 {
		return found
	}
	return []record{r} // under a name that no fetcher of ours gives
}

func (j *journal) lineage(want string) []record {
	j.build()
	h := hash([]byte(want[:8]))
	lines := slices.Collect(j.byID.lines(h))
	if others := j.others[h]; len(others) > 0 {
		for _, i := range others {
			lines = append(lines, int(i))
		}
		slices.Sort(lines)
		lines = slices.Compact(lines)
		slices.Reverse(lines)
	}
	return j.pick(slices.Values(lines), func(r record) bool { return r.lineage() == want })
}

// named gives the last record of a unique name.
func (j *journal) named(unique string) (record, bool) {
	of := func(unique []byte) uint64 { return uint64(crc32.Checksum(stem(unique), crcTable)) }
	ofLine := func(l []byte) uint64 {
		_, _, _, _, unique := fields(l)
		unique, _, _ = bytes.Cut(unique, []byte{' '})
		return of(unique)
	}
	rs := j.find(&j.byName, ofLine, of([]byte(unique)), func(r record) bool { return r.Unique == unique })
	if len(rs) == 0 {
		return record{}, false
	}
	return rs[len(rs)-1], true
}

// appendJournal appends records to the journal at path, which was read as j
// under the feed's lock. Whatever does not count at its end is cut off first,
// and what could not be written whole is cut off again, so that the file ends
// in a good line; the error is an [*uncutError] when that failed. It does not
// sync.
func appendJournal(path string, j *journal, recs []record) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|unix.O_NOFOLLOW, 0o666)
	if err != nil {
		return err
	}
	defer f.Close()
	if fi, err := f.Stat(); err != nil {
		return err
	} else if fi.Size() != j.size {
		return &os.PathError{Op: "write", Path: path, Err: errors.New("somebody changed it without the feed's lock")}
	}
	if j.size > j.good {
		if err := f.Truncate(j.good); err != nil {
			return err
		}
		j.size = j.good
	}
	var b []byte
	for _, r := range recs {
		b = r.appendTo(b)
	}
	if _, err := f.WriteAt(b, j.good); err != nil {
		if cerr := f.Truncate(j.good); cerr != nil {
			return &uncutError{errors.Join(err, cerr)}
		}
		return err
	}
	if err := f.Close(); err != nil {
		if cerr := os.Truncate(path, j.good); cerr != nil {
			return &uncutError{errors.Join(err, cerr)}
		}
		return err
	}
	j.good += int64(len(b))
	j.size = j.good
	return nil
}

// uncutError tells that a failed append may have left whole lines, which count.
type uncutError struct{ error }

func (e *uncutError) Unwrap() error { return e.error }

// truncateJournal takes the last append back, durably.
func truncateJournal(path string, size int64) error {
	f, err := os.OpenFile(path, os.O_WRONLY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := f.Truncate(size); err != nil {
		return err
	}
	return f.Sync()
}

// compactFrom is the number of lines from which a journal is worth compacting.
const compactFrom = 512

// worthCompacting reports whether more than half of the lines say what a later
// line says again, or are longer than they need be.
func (j *journal) worthCompacting() bool {
	n := len(j.ends)
	if n < compactFrom {
		return false
	}
	j.build()
	middle := j.line(n / 2) // those before it are no shorter
	return j.repeats > n/2 || len(middle) > 16 && middle[16] != ' '
}

// live gives the records that compaction keeps, in order: of every identity and
// content the last one. No identity and no delivered digest is forgotten.
func (j *journal) live() []record {
	type version struct{ identity, content digest }
	last := make(map[version]int, len(j.ends))
	for i, r := range j.all {
		last[version{r.Identity, r.Content}] = i
	}
	live := make([]record, 0, len(last))
	for i, r := range j.all {
		if last[version{r.Identity, r.Content}] == i {
			r.Replaces = "" // long since taken out
			live = append(live, r)
		}
	}
	return live
}

// compactJournal rewrites the journal with its live records: written aside,
// synced, renamed, and the directory synced. The caller holds the feed's lock,
// and has made sure that nothing in tmp/ needs a name which is forgotten.
func compactJournal(path string, j *journal) (*journal, error) {
	var b []byte
	for _, r := range j.live() {
		b = r.appendTo(b)
	}
	if err := atomicfile.Write(path, b); err != nil {
		return j, err
	}
	return readJournal(path)
}

// Lineages gives for the identities that the journal of a feed has, and that are not
// what unique names of their entries have, the 16 digits that those names have: an
// entry whose guid changed keeps the ones that it was delivered with first, and on a
// machine that met the feed later they are others. It takes no lock; a feed without a
// journal has none.
func (d *Dir) Lineages(feed string) (map[string]string, error) {
	j, err := readJournal(d.journalPath(feed))
	if err != nil {
		return nil, err
	}
	found := map[string]string{}
	for _, r := range j.all {
		if id, lineage := r.Identity.String(), r.lineage(); id != lineage {
			found[id] = lineage
		}
	}
	return found, nil
}
