package index

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"io/fs"
	"math/bits"
	"os"
	"sync"
	"unsafe"

	"modernc.org/libc"
	sqlite3 "modernc.org/sqlite/lib"
)

// SQLite does not verify the bytes of a page. Therefore each page of the file ends with a checksum,
// as with SQLite's extension cksumvfs, which the library lacks. The VFS is the system's, with other
// functions to read and write pages. A page with a wrong checksum, or beyond the end of the file,
// is the error SQLITE_IOERR_DATA.

// vfsName is the name of the VFS for SQLite.
const vfsName = "lektor-checksum"

const (
	// reserved is the number of bytes at the end of a page that SQLite leaves alone.
	reserved = 8
	// minPage is the smallest page size; shorter reads are reads of the header.
	minPage = 512
)

// methods are the system's methods of a file, three of them replaced by ours.
type methods struct {
	sqlite3.Tsqlite3_io_methods
	system sqlite3.Tsqlite3_io_methods
}

type (
	openFunc func(tls *libc.TLS, vfs, name, file uintptr, flags int32, outFlags uintptr) int32
	pageFunc func(tls *libc.TLS, file, page uintptr, size int32, at int64) int32
	bitsFunc func(tls *libc.TLS, file uintptr) int32
)

// checksums registers the VFS, once.
var checksums = sync.OnceValue(func() error {
	tls := libc.NewTLS()
	defer tls.Close()
	system := pointer[sqlite3.Tsqlite3_vfs](sqlite3.Xsqlite3_vfs_find(tls, 0))
	vfs := new(sqlite3.Tsqlite3_vfs)
	at, err := outside(vfs)
	if err != nil {
		return err
	}
	name, err := libc.CString(vfsName)
	if err != nil {
		return err
	}
	*at, crcTable = *system, crc32.MakeTable(crc32.Castagnoli)
	at.FzName, at.FpNext = name, 0
	systemOpen := *function[openFunc](&system.FxOpen)
	known := map[uintptr]uintptr{} // methods by the system's
	var mu sync.Mutex
	open := openFunc(func(tls *libc.TLS, vfs, name, file uintptr, flags int32, outFlags uintptr) int32 {
		code := systemOpen(tls, vfs, name, file, flags, outFlags)
		f := pointer[sqlite3.Tsqlite3_file](file)
		if code != sqlite3.SQLITE_OK || flags&sqlite3.SQLITE_OPEN_MAIN_DB == 0 || f.FpMethods == 0 {
			return code
		}
		mu.Lock()
		defer mu.Unlock()
		if known[f.FpMethods] == 0 {
			m, err := outside(new(methods))
			if err != nil {
				return sqlite3.SQLITE_NOMEM
			}
			m.system = *pointer[sqlite3.Tsqlite3_io_methods](f.FpMethods)
			m.Tsqlite3_io_methods = m.system
			m.FxRead, m.FxWrite = *function[uintptr](&readPage), *function[uintptr](&writePage)
			m.FxDeviceCharacteristics = *function[uintptr](&deviceBits)
			known[f.FpMethods] = address(m)
		}
		f.FpMethods = known[f.FpMethods]
		return code
	})
	opened = open
	at.FxOpen = *function[uintptr](&opened)
	if code := sqlite3.Xsqlite3_vfs_register(tls, address(at), 0); code != sqlite3.SQLITE_OK {
		return errors.New("SQLite takes no VFS")
	}
	return nil
})

// SQLite holds these functions by their addresses.
var (
	opened     openFunc
	readPage   pageFunc = readChecked
	writePage  pageFunc = writeChecked
	deviceBits bitsFunc = wholePages
	crcTable   *crc32.Table
)

// pointer returns a pointer to SQLite's value at an address.
func pointer[T any](at uintptr) *T { return *(**T)(unsafe.Pointer(&at)) }

// address returns the address of memory that Go does not manage, for SQLite.
func address[T any](p *T) uintptr { return uintptr(unsafe.Pointer(p)) }

// function converts a function pointer between the types of Go and SQLite.
func function[T, F any](f *F) *T { return (*T)(unsafe.Pointer(f)) }

// outside returns memory of the size of a value that Go does not manage.
func outside[T any](*T) (*T, error) {
	tls := libc.NewTLS()
	defer tls.Close()
	at := libc.Xcalloc(tls, 1, libc.Tsize_t(unsafe.Sizeof(*new(T))))
	if at == 0 {
		return nil, errors.New("out of memory")
	}
	return pointer[T](at), nil
}

func methodsOf(file uintptr) *methods {
	return pointer[methods](pointer[sqlite3.Tsqlite3_file](file).FpMethods)
}

// checksum returns the checksum of a page, without its reserved end, at an offset of the file.
func checksum(page []byte, at int64) uint32 {
	where := binary.LittleEndian.AppendUint64(nil, uint64(at))
	return crc32.Update(crc32.Checksum(page[:len(page)-reserved], crcTable), crcTable, where)
}

func readChecked(tls *libc.TLS, file, page uintptr, size int32, at int64) int32 {
	m := methodsOf(file)
	code := (*function[pageFunc](&m.system.FxRead))(tls, file, page, size, at)
	b := unsafe.Slice(pointer[byte](page), size)
	switch {
	case size < minPage:
		// A new file gets the size of pages and of their ends from its header, see section
		// 1.3 of SQLite's file format.
		if code == sqlite3.SQLITE_IOERR_SHORT_READ && at == 0 && size > 20 && binary.BigEndian.Uint16(b[16:]) == 0 {
			binary.BigEndian.PutUint16(b[16:], pageSize)
			b[20] = reserved
		}
		return code
	case code == sqlite3.SQLITE_IOERR_SHORT_READ, code == sqlite3.SQLITE_OK &&
		binary.LittleEndian.Uint32(b[size-4:]) != checksum(b, at):
		return sqlite3.SQLITE_IOERR_DATA
	}
	return code
}

func writeChecked(tls *libc.TLS, file, page uintptr, size int32, at int64) int32 {
	if size >= minPage {
		b := unsafe.Slice(pointer[byte](page), size)
		binary.LittleEndian.PutUint32(b[size-4:], checksum(b, at))
	}
	m := methodsOf(file)
	return (*function[pageFunc](&m.system.FxWrite))(tls, file, page, size, at)
}

// wholePages prevents reads of a part of a page, which cannot be verified.
func wholePages(tls *libc.TLS, file uintptr) int32 {
	bits := (*function[bitsFunc](&methodsOf(file).system.FxDeviceCharacteristics))(tls, file)
	return bits &^ sqlite3.SQLITE_IOCAP_SUBPAGE_READ
}

// journalWhole reports whether the journal at a path is undamaged. The header of the file must have
// been read before. SQLite uses the frames before the damage, which may be older than the pages in
// the file. An incomplete end, as after a kill, is not damage. But if the journal ends before a
// commit that the file contains, it was cut off. See section 4 of SQLite's file format.
func journalWhole(path string, file header) (bool, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	defer f.Close()
	for {
		var head, again [32]byte
		if n, err := io.ReadFull(f, head[:]); n == 0 || errors.Is(err, io.ErrUnexpectedEOF) {
			return true, nil
		}
		whole := framesWhole(f, head[:], file.commits())
		// Another process may have restarted the journal meanwhile.
		if _, err := f.ReadAt(again[:], 0); whole || err != nil || again == head {
			return whole, nil
		}
		if _, err := f.Seek(0, io.SeekStart); err != nil {
			return false, err
		}
	}
}

// framesWhole reports whether the frames of a journal are undamaged. inFile is the number of
// commits in the file.
func framesWhole(r io.Reader, head []byte, inFile uint32) bool {
	sum := journalSum{swap: head[3]&1 != 0}
	if sum.add(head[:24]); !sum.is(head[24:]) {
		return false
	}
	frame := make([]byte, 24+pageSize)
	newest, last := inFile, inFile // the count of the newest first page, and as of the last commit
	for whole := true; ; {
		if _, err := io.ReadFull(r, frame); err != nil {
			missing := (inFile - last) % countedCommits
			return missing == 0 || missing > countedCommits/2
		}
		ours, commits := bytes.Equal(frame[8:16], head[16:24]), binary.BigEndian.Uint32(frame[4:]) != 0
		if whole {
			sum.add(frame[:8])
			sum.add(frame[24:])
			whole = ours && sum.is(frame[16:])
		}
		if !whole && (ours && commits || !ours && !older(frame, head)) {
			return false
		}
		if whole && binary.BigEndian.Uint32(frame) == 1 {
			newest = header(frame[24:]).commits()
		}
		if whole && commits {
			last = newest
		}
	}
}

// journalSum is the checksum of a journal, see section 4.2 of SQLite's file format.
type journalSum struct {
	a, b uint32
	swap bool // numbers are big-endian
}

func (s *journalSum) add(data []byte) {
	a, b := s.a, s.b
	for ; len(data) >= 8; data = data[8:] {
		x, y := binary.LittleEndian.Uint32(data), binary.LittleEndian.Uint32(data[4:])
		if s.swap {
			x, y = bits.ReverseBytes32(x), bits.ReverseBytes32(y)
		}
		a += x + b
		b += y + a
	}
	s.a, s.b = a, b
}

func (s *journalSum) is(data []byte) bool {
	return binary.BigEndian.Uint32(data) == s.a && binary.BigEndian.Uint32(data[4:]) == s.b
}

// older reports whether a frame is of a journal that this one overwrites from its
// beginning. Each adds 1 to the first salt, see walRestartHdr in SQLite. A frame that is
// neither of this journal nor older, such as zeros, was damaged: without it, and what stood
// behind it, the frames before may have older pages than the file.
func older(frame, head []byte) bool {
	age := binary.BigEndian.Uint32(head[16:]) - binary.BigEndian.Uint32(frame[8:])
	return age > 0 && age < 1<<24 && binary.BigEndian.Uint32(frame) > 0
}
