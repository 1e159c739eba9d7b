package settings

import (
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"time"

	"github.com/lektordir/lektor/internal/feeds/feedfiles"
	"github.com/lektordir/lektor/internal/files/atomicfile"
	"github.com/lektordir/lektor/internal/protocol/query"
	"github.com/lektordir/lektor/internal/text/termsafe"
	"github.com/lektordir/lektor/lektordir"
)

// Keep selects the read entries of a feed that the user wants to keep.
type Keep struct {
	All    bool   // keep all, regardless of the other fields
	Newest int    // keep this number of entries, those that were read last
	Age    string // keep entries read since a time, in the syntax of a query ("90d"); "" keeps none
}

// ParseKeep parses the setting keep: "all"; a number of entries; a time, such as "90d"; or a number and a
// time, which keep the entries that either of them keeps.
func ParseKeep(v string) (Keep, error) {
	bad := fmt.Errorf("keep must be all, a number of entries, a time such as 90d, or both, not %q", termsafe.Brief(v))
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
		if _, ok := query.Time(f, time.Time{}); !ok || k.Age != "" {
			return Keep{}, bad
		}
		k.Age = f
	}
	if len(fields) == 0 || numbers > 1 {
		return Keep{}, bad
	}
	return k, nil
}

// KeepOf returns the setting keep of a feed; ok is false if it is not set. An invalid setting is an
// error.
func KeepOf(d *lektordir.Dir, hash string) (k Keep, ok bool, err error) {
	path := d.Join("src", hash, feedfiles.PathKeep)
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
