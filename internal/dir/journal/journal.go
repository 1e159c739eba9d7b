// Package journal reads and writes the journal of a feed, src/$feed/etc/fetch/seen. It has a line
// for each delivered version of an entry, with its unique name and digests. The line is appended
// before the version is visible in new/.
package journal

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"hash/maphash"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/lektordir/lektor/internal/dir/dirfs"
	"github.com/lektordir/lektor/internal/dir/entryname"
	"github.com/lektordir/lektor/internal/files/atomicfile"
	"github.com/lektordir/lektor/internal/files/filelog"
)

// Digest is the first 64 bits of a SHA-256. They distinguish the entries of a feed and their
// versions; the identity in a unique name is such a digest.
type Digest [8]byte

// DigestOf returns the digest of a list of strings. Different lists have different digests,
// even if their concatenations are equal.
func DigestOf(parts ...string) Digest {
	sum := HashOf(parts...)
	return Digest(sum[:8])
}

// HashOf returns the whole SHA-256 of which [DigestOf] returns a part.
func HashOf(parts ...string) (sum [sha256.Size]byte) {
	// The parts are hashed in one buffer, which is reused, because writing a string to a hash
	// allocates a copy of it.
	pooled := buffers.Get().(*[]byte)
	defer buffers.Put(pooled)
	b := (*pooled)[:0]
	for _, p := range parts {
		b = binary.BigEndian.AppendUint64(b, uint64(len(p)))
		b = append(b, p...)
	}
	sum = sha256.Sum256(b)
	if cap(b) <= maxBuffer {
		*pooled = b
	}
	return sum
}

// buffers holds the buffers of HashOf.
var buffers = sync.Pool{New: func() any { return new([]byte) }}

// maxBuffer is the maximum size, in bytes, of a buffer that is kept.
const maxBuffer = 1 << 20

// String returns 16 hexadecimal digits.
func (d Digest) String() string { return hex.EncodeToString(d[:]) }

// Key is the second key of an entry, by which it is recognised if only its guid changed. Link is a
// digest of the link, zero if the entry has none; Rest is a digest of title, text and date.
type Key struct{ Link, Rest [4]byte }

// Record is a line of a journal: a delivered version of an entry, or an alias, another identity of
// an entry. The Unique of an alias is in an earlier line, too.
type Record struct {
	Identity Digest
	Key      Key
	Content  Digest // digest of title, link and text: equal if the entry is unchanged; zero if unknown
	Unique   string
	Replaces string // unique name of the version in new/ that this one replaced, or ""
}

// Lineage returns the 16 digits that all versions of the entry have in their unique names.
func (r Record) Lineage() string {
	if id := entryname.Identity(r.Unique); id != "" {
		return id
	}
	return r.Identity.String()
}

// appendTo appends the record's line to b: six fields, separated by spaces. The last one is the
// CRC-32C of the text before it, in hexadecimal. If the identity in the unique name is that of the
// line, it is omitted from the name.
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
	return filelog.Seal(append(b, ' '), start)
}

// parseRecord parses a line without its newline. An editor may have added a carriage return.
func parseRecord(l []byte) (Record, bool) {
	var r Record
	l, ok := filelog.Unseal(bytes.TrimSuffix(l, []byte{'\r'}))
	f := bytes.Split(l, []byte{' '})
	if !ok || len(f) != 6 || len(f[0]) != 16 || len(f[1]) != 16 || len(f[2]) != 16 || len(f[5]) > 0 {
		return r, false
	}
	for _, x := range []struct{ to, from []byte }{
		{r.Identity[:], f[0]}, {r.Key.Link[:], f[1][:8]}, {r.Key.Rest[:], f[1][8:]}, {r.Content[:], f[2]},
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
	if r.Unique == "" || strings.ContainsAny(r.Unique+r.Replaces, "/;") || r.Unique[0] == '.' ||
		strings.HasPrefix(r.Replaces, ".") {
		return r, false
	}
	return r, true
}

// Journal is a feed's journal as it was when it was read. It is not safe for concurrent use. A
// journal may have 100,000 lines for entries that are no longer in the feed's document, so lines
// are parsed only when they are looked up.
type Journal struct {
	Good   int64 // offset of the end of the last line
	Size   int64 // size of the file, in bytes; a killed program leaves a part of a line at the end
	Parsed int   // number of lines parsed, for tests
	// Verify, if not nil, is called once: when [Journal.Versions] does not find an identity for the
	// first time. It may replace the journal by one to which missing lines were added.
	Verify func()

	data []byte // up to the end of the last line
	ends []int  // offsets of the ends of lines, after the newline
	torn bool   // Append adds a newline first

	// Each index is built when it is first used.
	byIdentity, byLineage, byKey, byRest, byName index
}

// index finds lines by a hash.
type index struct {
	last   map[uint64]int32 // by hash: 1 + the number of the last line
	before []int32          // by line: 1 + the number of the previous line with that hash, or 0
}

// Read reads a journal. If the file does not exist, the journal is empty. A line with a wrong
// checksum is not valid, and is ignored.
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
	if n := len(j.ends); n > 0 {
		j.Good = int64(j.ends[n-1])
	}
	j.data = data[:j.Good]
	return j, nil
}

// line returns line i without its newline.
func (j *Journal) line(i int) []byte {
	begin := 0
	if i > 0 {
		begin = j.ends[i-1]
	}
	return j.data[begin : j.ends[i]-1]
}

// at parses line i.
func (j *Journal) at(i int) (Record, bool) {
	j.Parsed++
	return parseRecord(j.line(i))
}

// All yields the valid lines with their numbers.
func (j *Journal) All(yield func(int, Record) bool) {
	for i := range j.ends {
		if r, ok := j.at(i); ok && !yield(i, r) {
			return
		}
	}
}

// Last returns the last n valid lines, the newest first.
func (j *Journal) Last(n int) (recs []Record) {
	for i := len(j.ends) - 1; i >= 0 && len(recs) < n; i-- {
		if r, ok := j.at(i); ok {
			recs = append(recs, r)
		}
	}
	return recs
}

// Bad returns the number of damaged lines.
func (j *Journal) Bad() (n int) {
	for i := range j.ends {
		if _, ok := filelog.Unseal(j.line(i)); !ok {
			n++
		}
	}
	return n
}

// Missing returns records for those entries, given by their unique names in the order of delivery,
// that the journal does not have: no line has the entry's lineage and a name that is as late. Each
// record has only an identity and a name. Names without a lineage are skipped.
func (j *Journal) Missing(uniques []string) (recs []Record) {
	for _, unique := range uniques {
		r := Record{Unique: unique}
		lineage := entryname.Identity(unique)
		if _, err := hex.Decode(r.Identity[:], []byte(lineage)); err != nil || lineage == "" {
			continue
		}
		if !slices.ContainsFunc(j.Lineage(lineage),
			func(old Record) bool { return entryname.Compare(old.Unique, unique) >= 0 }) {
			recs = append(recs, r)
		}
	}
	return recs
}

// fields returns parts of a line: the first eight digits of the identity, those of link and of rest, and the
// text from the unique name on. If the line is too short to be valid, they are nil.
func fields(l []byte) (id, key, rest, unique []byte) {
	if len(l) < 3*17+1 {
		return nil, nil, nil, nil
	}
	return l[:8], l[17:33], l[25:33], l[51:]
}

func hash(b []byte) uint64 { return maphash.Bytes(seed, b) }

var seed = maphash.MakeSeed()

func hashOfIdentity(l []byte) uint64 { id, _, _, _ := fields(l); return hash(id) }

func hashOfKey(l []byte) uint64 { _, key, _, _ := fields(l); return hash(key) }

func hashOfRest(l []byte) uint64 { _, _, rest, _ := fields(l); return hash(rest) }

func hashOfName(l []byte) uint64 {
	_, _, _, unique := fields(l)
	unique, _, _ = bytes.Cut(unique, []byte{' '})
	return hashOfStem(unique)
}

// hashOfStem returns the hash of the part of a unique name before the identity, which a line may
// omit.
func hashOfStem(unique []byte) uint64 {
	stem, _, _ := bytes.Cut(unique, []byte{'I'})
	return hash(stem)
}

// hashOfLineage returns the hash of the identity in the unique name of a line, or of the line's
// identity if the name has none.
func hashOfLineage(l []byte) uint64 {
	id, _, _, unique := fields(l)
	n := bytes.IndexByte(unique, 'I') + 1
	if n == 0 || n+17 > len(unique) || unique[n] == '.' || unique[n+16] != '.' ||
		len(bytes.Trim(unique[:n-1], "0123456789.MPQ")) > 0 {
		return hash(id)
	}
	return hash(unique[n : n+8])
}

// fill builds an index if it is empty. The function of returns the hash of a line.
func (j *Journal) fill(x *index, of func(line []byte) uint64) {
	if x.last != nil {
		return
	}
	*x = index{make(map[uint64]int32, len(j.ends)), make([]int32, len(j.ends))}
	for i := range j.ends {
		h := of(j.line(i))
		x.before[i], x.last[h] = x.last[h], int32(i+1)
	}
}

// find returns, oldest first, the records whose lines have the hash h and for which is returns
// true. It builds the index if necessary; the function of returns the hash of a line.
func (j *Journal) find(x *index, of func(line []byte) uint64, h uint64, is func(Record) bool) []Record {
	j.fill(x, of)
	var found []Record
	for i := x.last[h]; i > 0; i = x.before[i-1] {
		if r, ok := j.at(int(i - 1)); ok && is(r) {
			found = append(found, r)
		}
	}
	slices.Reverse(found)
	return found
}

// digits returns the first eight hexadecimal digits of b.
func digits(b []byte) []byte { return hex.AppendEncode(make([]byte, 0, 16), b)[:8] }

// Versions returns the records of an identity, oldest first.
func (j *Journal) Versions(identity Digest) []Record {
	found := j.find(&j.byIdentity, hashOfIdentity, hash(digits(identity[:])),
		func(r Record) bool { return r.Identity == identity })
	if verify := j.Verify; len(found) == 0 && verify != nil {
		j.Verify = nil
		verify()
		return j.Versions(identity)
	}
	return found
}

// WithKey returns the records with a second key, oldest first.
func (j *Journal) WithKey(k Key) []Record {
	return j.find(&j.byKey, hashOfKey, hash(append(digits(k.Link[:]), digits(k.Rest[:])...)),
		func(r Record) bool { return r.Key == k })
}

// WithRest returns the records whose second key has a rest, oldest first.
func (j *Journal) WithRest(rest [4]byte) []Record {
	return j.find(&j.byRest, hashOfRest, hash(digits(rest[:])), func(r Record) bool { return r.Key.Rest == rest })
}

// LineageOf returns the records of all versions and aliases of the entry of a record, oldest first.
func (j *Journal) LineageOf(r Record) []Record {
	if found := j.Lineage(r.Lineage()); len(found) > 0 {
		return found
	}
	return []Record{r} // its unique name is not of lektor's form
}

// Lineage returns the records of an entry by the 16 digits of its unique names, oldest first.
func (j *Journal) Lineage(want string) []Record {
	return j.find(&j.byLineage, hashOfLineage, hash([]byte(want[:8])),
		func(r Record) bool { return r.Lineage() == want })
}

// Named returns the last record with a unique name.
func (j *Journal) Named(unique string) (Record, bool) {
	r := Newest(j.find(&j.byName, hashOfName, hashOfStem([]byte(unique)),
		func(r Record) bool { return r.Unique == unique }))
	if r == nil {
		return Record{}, false
	}
	return *r, true
}

// Append appends records to the journal at path, which the caller has read as j while holding the
// feed's lock. It first truncates the file after its last line. If appending fails, it truncates the
// file to that length; if that fails, too, the error is an [*UncutError]. It does not sync.
func Append(path string, j *Journal, recs []Record) error {
	log, err := filelog.Resume(path, j.Good, j.Size)
	if errors.Is(err, filelog.ErrChanged) {
		return &os.PathError{Op: "write", Path: path,
			Err: errors.New("another program changed it without the feed's lock")}
	}
	if err != nil {
		return err
	}
	var b []byte
	if j.torn {
		b = append(b, '\n')
	}
	for _, r := range recs {
		b = r.appendTo(b)
	}
	// With NFS and quotas, Close reports errors of writing.
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

// KeepTorn makes the part of a line at the end of the journal a line of its own, which [Append] does
// not truncate.
func (j *Journal) KeepTorn() {
	j.torn = j.Good < j.Size
	j.Good = j.Size
}

// UncutError reports that a failed append may have left whole lines, which are valid.
type UncutError struct{ error }

func (e *UncutError) Unwrap() error { return e.error }

// Truncate truncates the journal at path to a size, and syncs it.
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

// compactFrom is the minimum number of lines of a journal that is worth compacting.
const compactFrom = 512

// WorthCompacting reports whether more than half of the lines have the identity and content of another
// line after it.
func (j *Journal) WorthCompacting() bool {
	n := len(j.ends)
	if n < compactFrom {
		return false
	}
	// Mostly the identities differ, and the index of them is needed anyway.
	j.fill(&j.byIdentity, hashOfIdentity)
	return len(j.byIdentity.last) < n-n/2 && len(j.live()) < n-n/2
}

// live returns the records that compaction keeps, in order: the last record of every pair of
// identity and content.
func (j *Journal) live() []Record {
	type version struct{ identity, content Digest }
	last := make(map[version]int, len(j.ends))
	for i, r := range j.All {
		last[version{r.Identity, r.Content}] = i
	}
	live := make([]Record, 0, len(last))
	for i, r := range j.All {
		if last[version{r.Identity, r.Content}] == i {
			r.Replaces = "" // the replacement is finished, because nothing is staged
			live = append(live, r)
		}
	}
	return live
}

// Compact atomically and durably replaces the journal by one with its live records. The caller
// holds the feed's lock, and tmp/$feed is empty: recovery could not deliver an entry whose name the
// journal has lost.
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

// Lineages maps each identity in the journal at path to the lineage of its entry, if these differ.
// They differ if the guid of the entry changed, because its unique names keep the first identity.
// On a machine that subscribed to the feed later, the unique names have another identity. Lineages
// takes no lock. If the file does not exist, the map is empty.
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
