package feeddir

import (
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"github.com/lektordir/lektor/internal/atomicfile"
	"github.com/lektordir/lektor/internal/query"
	"github.com/lektordir/lektor/internal/termsafe"
	"github.com/lektordir/lektor/lektordir"
)

// Keep is what the user wants to keep of the entries of a feed that were read.
type Keep struct {
	All    bool   // whatever else is said
	Newest int    // so many of those read last
	Age    string // those read since, as a query has it ("90d"); "" for no others
}

// ParseKeep reads the setting keep: "all"; a number of entries; a time, as in "90d";
// or both, when what either keeps is kept.
func ParseKeep(v string) (Keep, error) {
	bad := fmt.Errorf("keep is all, a number of entries, a time such as 90d, or both, not %q", termsafe.Brief(v))
	fields := strings.FieldsFunc(v, func(r rune) bool { return r == ' ' || r == '\t' || r == ',' })
	if len(fields) == 1 && fields[0] == "all" {
		return Keep{All: true}, nil
	}
	k, numbers := Keep{}, 0
	for _, f := range fields {
		if strings.Trim(f, "0123456789") == "" {
			n, err := strconv.Atoi(f)
			if err != nil {
				return Keep{}, bad
			}
			k.Newest = n
			numbers++
			continue
		}
		if !query.IsTime(f) || k.Age != "" {
			return Keep{}, bad
		}
		k.Age = f
	}
	if len(fields) == 0 || numbers > 1 {
		return Keep{}, bad
	}
	return k, nil
}

func checkKeep(v string) error {
	_, err := ParseKeep(v)
	return err
}

// KeepOf gives the setting keep of a feed; ok is false where there is none. One that
// makes no sense is an error.
func KeepOf(d *lektordir.Dir, hash string) (k Keep, ok bool, err error) {
	path := d.Join("src", hash, keepFile)
	line, err := atomicfile.Line(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Keep{}, false, nil
	}
	if err == nil {
		k, err = ParseKeep(line)
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", path, err)
	}
	return k, true, err
}
