package lektordir

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lektordir/lektor/internal/atomicfile"
)

// digest is the first half of a SHA-256, enough to tell the entries of a feed
// and their versions apart. The zero value stands for "none".
type digest [16]byte

// digestOf digests a list of strings, so that different lists differ even
// where their concatenations do not.
func digestOf(parts ...string) digest {
	sum := hashOf(parts...)
	return digest(sum[:16])
}

func hashOf(parts ...string) (sum [sha256.Size]byte) {
	h := sha256.New()
	var n [8]byte
	for _, p := range parts {
		binary.BigEndian.PutUint64(n[:], uint64(len(p)))
		h.Write(n[:])
		io.WriteString(h, p)
	}
	h.Sum(sum[:0])
	return sum
}

// String gives 32 hexadecimal digits.
func (d digest) String() string { return hex.EncodeToString(d[:]) }

// IsZero reports whether there is none.
func (d digest) IsZero() bool { return d == digest{} }

// Key is the second key of an entry, which recognises it when its identifier
// alone changed. Link digests the link by itself, zero when the entry has none;
// Rest digests title, content and date.
type key struct{ Link, Rest [8]byte }

// record is a line of a journal: one delivered version of an entry, or another
// identity of one (Unique then names a version that an earlier line names too).
type record struct {
	Identity digest
	Key      key
	Content  digest // what makes a version: the entry is unchanged when it is equal
	Unique   string
	Replaces string // unique name of the version taken out of new/ for this one, or ""
	Time     time.Time
}

// Lineage gives the 16 digits by which versions of an entry delivered as r are
// recognised.
func (r record) lineage() string {
	if id := (Ref{Unique: r.Unique}).Identity(); id != "" {
		return id
	}
	return r.Identity.String()[:16]
}

var crcTable = crc32.MakeTable(crc32.Castagnoli)

// appendTo adds the record's line: seven fields with single spaces between
// them, the last the CRC-32C of what is before it, in hexadecimal.
func (r record) appendTo(b []byte) []byte {
	start := len(b)
	b = hex.AppendEncode(b, r.Identity[:])
	b = append(b, ' ')
	b = hex.AppendEncode(b, r.Key.Link[:])
	b = hex.AppendEncode(b, r.Key.Rest[:])
	b = append(b, ' ')
	b = hex.AppendEncode(b, r.Content[:])
	b = append(b, ' ')
	b = append(b, r.Unique...)
	b = append(b, ' ')
	if r.Replaces == "" {
		b = append(b, '-')
	} else {
		b = append(b, r.Replaces...)
	}
	b = append(b, ' ')
	b = strconv.AppendInt(b, r.Time.Unix(), 10)
	b = append(b, ' ')
	sum := crc32.Checksum(b[start:], crcTable)
	return append(fmt.Appendf(b, "%08x", sum), '\n')
}

// parseRecord reads a line without its newline.
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
	if len(f) != 6 || len(f[0]) != 32 || len(f[1]) != 32 || len(f[2]) != 32 {
		return r, false
	}
	var key [16]byte
	for i, dst := range [][]byte{r.Identity[:], key[:], r.Content[:]} {
		if _, err := hex.Decode(dst, f[i]); err != nil {
			return r, false
		}
	}
	copy(r.Key.Link[:], key[:8])
	copy(r.Key.Rest[:], key[8:])
	r.Unique = string(f[3])
	if s := string(f[4]); s != "-" {
		r.Replaces = s
	}
	secs, err := strconv.ParseInt(string(f[5]), 10, 64)
	if err != nil || r.Unique == "" || strings.ContainsAny(r.Unique+r.Replaces, "/;") ||
		r.Unique[0] == '.' || strings.HasPrefix(r.Replaces, ".") {
		return r, false
	}
	r.Time = time.Unix(secs, 0).UTC()
	return r, true
}

// journal is what a feed's journal says was delivered. It is a view as of when
// it was read, and safe for concurrent reading.
type journal struct {
	records  []record
	byID     map[digest][]int
	byKey    map[key][]int
	byUnique map[string]int
	lineage  map[string][]int

	good int64 // bytes up to the end of the last good line
	size int64 // bytes of the file
	bad  int   // lines that do not count
}

// readJournal reads a journal; a missing one is empty. A line that is not
// terminated or has a wrong checksum does not count.
func readJournal(path string) (*journal, error) {
	j := &journal{byID: map[digest][]int{}, byKey: map[key][]int{}, byUnique: map[string]int{}, lineage: map[string][]int{}}
	data, err := readFile(path)
	if err != nil {
		if isNotExist(err) {
			return j, nil
		}
		return nil, err
	}
	j.size = int64(len(data))
	for off := 0; off < len(data); {
		end := bytes.IndexByte(data[off:], '\n')
		if end < 0 {
			j.bad++
			break
		}
		if r, ok := parseRecord(data[off : off+end]); ok {
			j.add(r)
			j.good = int64(off + end + 1)
		} else {
			j.bad++
		}
		off += end + 1
	}
	return j, nil
}

func (j *journal) add(r record) {
	i := len(j.records)
	j.records = append(j.records, r)
	j.byID[r.Identity] = append(j.byID[r.Identity], i)
	j.byKey[r.Key] = append(j.byKey[r.Key], i)
	j.byUnique[r.Unique] = i
	j.lineage[r.lineage()] = append(j.lineage[r.lineage()], i)
}

// Len is the number of lines that count.
func (j *journal) Len() int { return len(j.records) }

// Versions gives the records of an identity, oldest first.
func (j *journal) versions(identity digest) []record { return j.pick(j.byID[identity]) }

// Lineage gives the records of all versions of the entry that a record is of,
// under whichever identity, oldest first.
func (j *journal) lineageOf(r record) []record { return j.pick(j.lineage[r.lineage()]) }

// WithKey gives the records with a second key, oldest first.
func (j *journal) withKey(k key) []record { return j.pick(j.byKey[k]) }

// Named gives the last record of a unique name.
func (j *journal) named(unique string) (record, bool) {
	i, ok := j.byUnique[unique]
	if !ok {
		return record{}, false
	}
	return j.records[i], true
}

func (j *journal) pick(idx []int) []record {
	rs := make([]record, len(idx))
	for i, n := range idx {
		rs[i] = j.records[n]
	}
	return rs
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
	for _, r := range recs {
		j.add(r)
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
// line says again.
func (j *journal) worthCompacting() bool {
	half := len(j.records) / 2
	// Of each identity one line lives at least, and those are counted already.
	return len(j.records) >= compactFrom && len(j.byID) < half && len(j.live()) < half
}

// live gives the records that compaction keeps, in order: of every identity and
// content the last one. No identity and no delivered digest is forgotten.
func (j *journal) live() []record {
	type version struct{ identity, content digest }
	last := make(map[version]int, len(j.records))
	for i, r := range j.records {
		last[version{r.Identity, r.Content}] = i
	}
	live := make([]record, 0, len(last))
	for i, r := range j.records {
		if last[version{r.Identity, r.Content}] == i {
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
