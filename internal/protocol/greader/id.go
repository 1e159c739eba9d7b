// Package greader implements the messages of the Google Reader API in the form that clients use
// today: ids, names of streams, parameters, paths, and answers as JSON, XML and Atom. It touches
// neither disk nor network.
package greader

import (
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"
	"time"

	"github.com/lektordir/lektor/internal/dir/entryname"
)

// ID is the id of an item. From 1977 to 2049 its decimal form has 16 digits, as in FreshRSS: Readrops
// makes the long form from it with as many hexadecimal digits, and finds no item if these are not 16.
type ID uint64

const (
	perMicro  = 4 // ids of a microsecond
	perSecond = 1_000_000 * perMicro
	maxID     = 1<<60 - 1 // so that no client reads an id as a negative number
)

// longPrefix begins the long form of an id.
const longPrefix = "tag:google.com,2005:reader/item/"

// IDOf returns the id of an entry by its unique name and the time of its delivery: four times the
// microseconds of that, and the last 2 bits of the identity. So ids rise in the order of delivery, and stay
// when an entry is moved. For a name in another form, a hash of the name stands for the part of the second.
// Two entries that were delivered in the same microsecond may have the same id.
func IDOf(unique string, delivered time.Time) ID {
	seconds := min(max(delivered.Unix(), 0), 1<<32-1)
	var part uint64
	if p, ok := entryname.Split(unique); ok {
		b, _ := strconv.ParseUint(p.Identity[len(p.Identity)-1:], 16, 64)
		part = uint64(min(p.Micros, 999_999))*perMicro + b%perMicro
	} else {
		h := fnv.New64a()
		h.Write([]byte(unique))
		part = h.Sum64() % perSecond
	}
	return max(ID(uint64(seconds)*perSecond+part), 1)
}

// FirstOf returns the lowest id of entries that were delivered in a second of Unix time, or later.
func FirstOf(seconds int64) ID {
	return ID(min(max(seconds, 0), 1<<32)) * perSecond
}

// ParseID reads an id in any of the forms that clients send: long, with or without leading
// zeros; 16 hexadecimal digits; or decimal.
func ParseID(s string) (ID, bool) {
	s = strings.TrimSpace(s)
	var n uint64
	var err error
	if digits, long := strings.CutPrefix(s, longPrefix); long {
		n, err = parseHex(digits)
	} else if len(s) == 16 && (s[0] == '0' || s[0] > '9') {
		n, err = parseHex(s)
	} else if n, err = strconv.ParseUint(s, 10, 64); err != nil && len(s) == 16 {
		n, err = parseHex(s)
	}
	return ID(n), err == nil && n > 0 && n <= maxID
}

// parseHex parses 1 to 16 hexadecimal digits.
func parseHex(digits string) (uint64, error) {
	if len(digits) > 16 {
		return 0, strconv.ErrRange
	}
	return strconv.ParseUint(digits, 16, 64)
}

// Short returns the decimal form of an id.
func (id ID) Short() string { return strconv.FormatUint(uint64(id), 10) }

// Long returns the long form of an id.
func (id ID) Long() string { return fmt.Sprintf("%s%016x", longPrefix, uint64(id)) }
