// Package journal is the record of what was delivered to a feed, src/$feed/etc/fetch/seen
// (lektor-dir(5)): a line for each version of an entry, appended before the version is visible.
// It knows names and digests.
package journal

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/lektordir/lektor/internal/atomicfile"
	"github.com/lektordir/lektor/internal/dirfs"
	"github.com/lektordir/lektor/internal/entryname"
	"github.com/lektordir/lektor/internal/filelog"
)

// Digest is the first 64 bits of a SHA-256, which distinguish the entries of a feed and
// their versions. A unique name has as many.
type Digest [8]byte

// DigestOf digests a list of strings, so that different lists differ even
// where their concatenations do not.
func DigestOf(parts ...string) Digest {
	sum := HashOf(parts...)
	return Digest(sum[:8])
}

func HashOf(parts ...string) (sum [sha256.Size]byte) {
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

// String returns 16 hexadecimal digits.
func (d Digest) String() string { return hex.EncodeToString(d[:]) }

// Key is the second key of an entry, which recognises it when its identifier
// alone changed. Link digests the link by itself, zero when the entry has none;
// Rest digests title, content and date.
type Key struct{ Link, Rest [4]byte }

// Record is a line of a journal: one delivered version of an entry, or another
// identity of one (Unique then names a version that an earlier line names too).
type Record struct {
	Identity Digest
	Key      Key
	Content  Digest // digest of a version: equal if the entry is unchanged
	Unique   string
	Replaces string // unique name of the version taken out of new/ for this one, or ""
}

// Lineage returns the 16 digits by which versions of an entry delivered as r are
// recognised.
func (r Record) Lineage() string {
	if id := entryname.Identity(r.Unique); id != "" {
		return id
	}
	return r.Identity.String()
}

var crcTable = crc32.MakeTable(crc32.Castagnoli)

// appendTo adds the record's line: six fields with single spaces between them, the
// last the CRC-32C of what is before it, in hexadecimal. In the unique name the
// identity is left out where it is that of the line.
func (r Record) appendTo(b []byte) []byte {
	start := len(b)
	b = hex.AppendEncode(b, r.Identity[:])
	id := string(b[start:])
	b = append(b, ' ')
	b = hex.AppendEncode(b, r.Key.Link[:])
	b = hex.AppendEncode(b, r.Key.Rest[:])
	b = append(b, ' ')
	b = hex.AppendEncode(b, r.Content[:])
	b = append(b, ' ')
	if u, ok := entryname.Split(r.Unique); ok && u.Identity == id {
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
func parseRecord(l []byte) (Record, bool) {
	var r Record
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
	if head, tail, ok := strings.Cut(r.Unique, "I."); ok && entryname.Identity(r.Unique) == "" {
		if full := head + "I" + r.Identity.String() + "." + tail; entryname.Identity(full) != "" {
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

// Journal is what a feed's journal says was delivered. It is a view as of when
// it was read, and belongs to one goroutine. A feed may have delivered a hundred
// thousand entries, and its document has a few: so lines are read when they are
// asked for.
type Journal struct {
	Good   int64 // bytes up to the end of the last good line
	Size   int64 // bytes of the file
	Parsed int   // how many lines were read, for tests

	data []byte // up to the end of the last good line
	ends []int  // offsets of the ends of lines, after the newline

	// Each index is made when it is first asked.
	byIdentity, byLineage, byKey, byName index
}

// index finds lines by a hash.
type index struct {
	heads  []int32 // by hash: the number of the last line, and 1
	before []int32 // by line: the one before it with the same hash, and 1
}

// Read reads a journal; a missing one is empty. A line that is not
// terminated or has a wrong checksum does not count.
func Read(path string) (*Journal, error) {
	data, err := dirfs.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	j := &Journal{data: data, Size: int64(len(data))}
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
		if _, ok := j.at(len(j.ends) - 1); ok {
			j.Good = int64(j.ends[len(j.ends)-1])
			break
		}
		j.ends = j.ends[:len(j.ends)-1]
	}
	j.data = data[:j.Good]
	return j, nil
}

// line returns a line without its newline.
func (j *Journal) line(i int) []byte {
	begin := 0
	if i > 0 {
		begin = j.ends[i-1]
	}
	return j.data[begin : j.ends[i]-1]
}

func (j *Journal) at(i int) (Record, bool) {
	j.Parsed++
	return parseRecord(j.line(i))
}

// All yields the lines that count.
func (j *Journal) All(yield func(int, Record) bool) {
	for i := range j.ends {
		if r, ok := j.at(i); ok && !yield(i, r) {
			return
		}
	}
}

// Last returns the last n of the lines that count, the newest first.
func (j *Journal) Last(n int) (recs []Record) {
	for i := len(j.ends) - 1; i >= 0 && len(recs) < n; i-- {
		if r, ok := j.at(i); ok {
			recs = append(recs, r)
		}
	}
	return recs
}

// Bad counts the lines before the last good one that do not count.
func (j *Journal) Bad() int {
	n := len(j.ends)
	for range j.All {
		n--
	}
	return n
}

// fields returns the beginnings of identity, link, rest and content of a line, eight
// digits of each, and all from the unique name on; nil of a line that does not count.
func fields(l []byte) (id, link, rest, content, unique []byte) {
	wide := 16
	if len(l) > 32 && l[16] != ' ' {
		wide = 32
	}
	if len(l) < 3*(wide+1)+1 {
		return nil, nil, nil, nil, nil
	}
	k := l[wide+1:]
	return l[:8], k[:8], k[wide/2 : wide/2+8], k[wide+1 : wide+9], l[3*(wide+1):]
}

// hash mixes texts of eight digits.
func hash(parts ...[]byte) uint64 {
	h := uint64(0)
	for _, p := range parts {
		if len(p) == 8 {
			h = (h ^ binary.LittleEndian.Uint64(p)) * 0x9e3779b97f4a7c15
		}
	}
	return h ^ h>>32
}

func hashOfIdentity(l []byte) uint64 { id, _, _, _, _ := fields(l); return hash(id) }

func hashOfKey(l []byte) uint64 { _, link, rest, _, _ := fields(l); return hash(link, rest) }

func hashOfName(l []byte) uint64 {
	_, _, _, _, unique := fields(l)
	unique, _, _ = bytes.Cut(unique, []byte{' '})
	return hashOfStem(unique)
}

// hashOfStem is that of the part of a unique name that is the same whether the identity is
// left out or not.
func hashOfStem(unique []byte) uint64 {
	stem, _, _ := bytes.Cut(unique, []byte{'I'})
	return uint64(crc32.Checksum(stem, crcTable))
}

// hashOfLineage is that of the identity in the unique name of a line, and of the line's own
// where none is in the name.
func hashOfLineage(l []byte) uint64 {
	id, _, _, _, unique := fields(l)
	n := bytes.IndexByte(unique, 'I') + 1
	if n == 0 || n+17 > len(unique) || unique[n] == '.' || unique[n+16] != '.' || len(bytes.Trim(unique[:n-1], "0123456789.MPQ")) > 0 {
		return hash(id)
	}
	return hash(unique[n : n+8])
}

// fill builds an index, once. The func of computes the hash of a line.
func (j *Journal) fill(x *index, of func(line []byte) uint64) {
	if x.heads != nil {
		return
	}
	size := 1
	for size < 2*len(j.ends) {
		size *= 2
	}
	*x = index{heads: make([]int32, size), before: make([]int32, len(j.ends))}
	begin := 0
	for i, end := range j.ends {
		head := &x.heads[of(j.data[begin:end-1])&uint64(size-1)]
		x.before[i], *head = *head, int32(i+1)
		begin = end
	}
}

// find returns, oldest first, the records whose lines have the hash h and for which is
// returns true. The func of computes the hash of a line if the index is not built yet.
func (j *Journal) find(x *index, of func(line []byte) uint64, h uint64, is func(Record) bool) []Record {
	j.fill(x, of)
	var found []Record
	for i := x.heads[h&uint64(len(x.heads)-1)]; i > 0; i = x.before[i-1] {
		if r, ok := j.at(int(i - 1)); ok && is(r) {
			found = append(found, r)
		}
	}
	slices.Reverse(found)
	return found
}

func digits(b []byte) []byte { return hex.AppendEncode(make([]byte, 0, 16), b)[:8] }

// Versions returns the records of an identity, oldest first.
func (j *Journal) Versions(identity Digest) []Record {
	return j.find(&j.byIdentity, hashOfIdentity, hash(digits(identity[:])), func(r Record) bool { return r.Identity == identity })
}

// WithKey returns the records with a second key, oldest first.
func (j *Journal) WithKey(k Key) []Record {
	return j.find(&j.byKey, hashOfKey, hash(digits(k.Link[:]), digits(k.Rest[:])), func(r Record) bool { return r.Key == k })
}

// LineageOf returns the records of all versions of the entry that a record is of,
// under whichever identity, oldest first.
func (j *Journal) LineageOf(r Record) []Record {
	if found := j.Lineage(r.Lineage()); len(found) > 0 {
		return found
	}
	return []Record{r} // under a name that our fetchers never make
}

// Lineage returns the records of an entry by the 16 digits of its unique names, oldest first.
func (j *Journal) Lineage(want string) []Record {
	return j.find(&j.byLineage, hashOfLineage, hash([]byte(want[:8])), func(r Record) bool { return r.Lineage() == want })
}

// Named returns the last record of a unique name.
func (j *Journal) Named(unique string) (Record, bool) {
	r := Newest(j.find(&j.byName, hashOfName, hashOfStem([]byte(unique)), func(r Record) bool { return r.Unique == unique }))
	if r == nil {
		return Record{}, false
	}
	return *r, true
}

// Append appends records to the journal at path, which was read as j
// under the feed's lock. The part of the file that does not count is cut off first,
// and so is what could not be written whole; the error is an [*uncutError] when that
// failed. It does not sync.
func Append(path string, j *Journal, recs []Record) error {
	log, err := filelog.Resume(path, j.Good, j.Size)
	if errors.Is(err, filelog.ErrChanged) {
		return &os.PathError{Op: "write", Path: path, Err: errors.New("somebody changed it without the feed's lock")}
	}
	if err != nil {
		return err
	}
	var b []byte
	for _, r := range recs {
		b = r.appendTo(b)
	}
	// NFS and quotas report errors of writing when a file is closed.
	if err := errors.Join(log.Append(b), log.Close()); err != nil {
		if cerr := Truncate(path, j.Good); cerr != nil {
			return &UncutError{errors.Join(err, cerr)}
		}
		return err
	}
	j.Good += int64(len(b))
	j.Size = j.Good
	return nil
}

// UncutError reports that a failed append may have left whole lines, which count.
type UncutError struct{ error }

func (e *UncutError) Unwrap() error { return e.error }

// Truncate takes the last append back, durably.
func Truncate(path string, size int64) error {
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

// WorthCompacting reports whether more than half of the lines repeat what an earlier line
// says, or lines are longer than they need be. Compaction always finds these repeats, and
// may find more.
func (j *Journal) WorthCompacting() bool {
	n := len(j.ends)
	if n < compactFrom {
		return false
	}
	if middle := j.line(n / 2); len(middle) > 16 && middle[16] != ' ' {
		return true // earlier lines are no shorter
	}
	j.fill(&j.byIdentity, hashOfIdentity)
	repeats := 0
	for i := range n {
		if j.repeats(i) {
			repeats++
		}
	}
	return repeats > n/2
}

// repeats reports whether one of the four lines before line i that have its hash, which are
// mostly the versions of its entry, has its identity and content.
func (j *Journal) repeats(i int) bool {
	before := j.byIdentity.before
	if before[i] == 0 {
		return false
	}
	id, _, _, content, _ := fields(j.line(i))
	for k, looked := before[i], 0; k > 0 && looked < 4; k, looked = before[k-1], looked+1 {
		otherID, _, _, otherContent, _ := fields(j.line(int(k - 1)))
		if bytes.Equal(id, otherID) && bytes.Equal(content, otherContent) {
			return true
		}
	}
	return false
}

// live returns the records that compaction keeps, in order: of every identity and
// content the last one. No identity and no delivered digest is forgotten.
func (j *Journal) live() []Record {
	type version struct{ identity, content Digest }
	last := make(map[version]int, len(j.ends))
	for i, r := range j.All {
		last[version{r.Identity, r.Content}] = i
	}
	live := make([]Record, 0, len(last))
	for i, r := range j.All {
		if last[version{r.Identity, r.Content}] == i {
			r.Replaces = "" // long since taken out
			live = append(live, r)
		}
	}
	return live
}

// Compact rewrites the journal with its live records: written aside,
// synced, renamed, and the directory synced. The caller holds the feed's lock,
// and has made sure that nothing in tmp/ needs a name which is forgotten.
func Compact(path string, j *Journal) (*Journal, error) {
	var b []byte
	for _, r := range j.live() {
		b = r.appendTo(b)
	}
	if err := atomicfile.Write(path, b); err != nil {
		return j, err
	}
	return Read(path)
}

// Lineages returns, for the identities that the journal at path has and that are not in the
// unique names of their entries, the 16 digits that those names have: an entry whose guid
// changed keeps the ones that it was delivered with first, and on a machine that met the feed
// later they are others. It takes no lock; a feed without a journal has none.
func Lineages(path string) (map[string]string, error) {
	j, err := Read(path)
	if err != nil {
		return nil, err
	}
	found := map[string]string{}
	for _, r := range j.All {
		if id, lineage := r.Identity.String(), r.Lineage(); id != lineage {
			found[id] = lineage
		}
	}
	return found, nil
}

// Newest returns the last of the records, or nil.
func Newest(recs []Record) *Record {
	if len(recs) == 0 {
		return nil
	}
	return &recs[len(recs)-1]
}
