package entries

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/lektordir/lektor/internal/atomicfile"
	"github.com/lektordir/lektor/internal/query"
)

// savedDir holds the queries that the user saved, a file each, of that name. What reads
// them writes none.
const savedDir = "etc/view/query"

// maxSaved is the most that a saved query may have, in bytes.
const maxSaved = 64 << 10

// Saved is a query that the user saved.
type Saved struct {
	Name  string
	Query *query.Query // what query:NAME means; nil with Err
	Err   error        // why it is none
}

// SavedQueries gives the saved queries of the lektor-dir at a path, by name. Names that
// no query can have, as those of an editor's copies, are left out, and so is what is no
// file. Without the directory there are none.
func SavedQueries(dir string) ([]Saved, error) {
	names, err := savedNames(dir)
	var all []Saved
	for _, name := range names {
		s := Saved{Name: name}
		s.Query, s.Err = query.ParseSaved(name, SavedIn(dir))
		all = append(all, s)
	}
	return all, err
}

// RulesFile is the file of the user's rules, relative to the lektor-dir. It has
// [MaxRules] bytes at the most.
const (
	RulesFile = "etc/view/rules"
	MaxRules  = 1 << 20
)

// SavedPath is where the query of a name is saved in the lektor-dir at a path.
func SavedPath(dir, name string) string { return filepath.Join(dir, savedDir, name) }

// savedNames gives the names of the saved queries, in order.
func savedNames(dir string) ([]string, error) {
	ents, err := os.ReadDir(filepath.Join(dir, savedDir))
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	var names []string
	for _, e := range ents {
		// A link to a file is one, as it is where it is read.
		if query.CheckName(e.Name()) == nil && (e.Type().IsRegular() || e.Type() == fs.ModeSymlink) {
			names = append(names, e.Name())
		}
	}
	return names, err
}

// SavedIn reads the saved queries of a lektor-dir.
func SavedIn(dir string) query.Saved {
	return func(name string) (string, error) {
		data, err := atomicfile.Read(filepath.Join(dir, savedDir, name), maxSaved)
		if !errors.Is(err, fs.ErrNotExist) {
			return string(data), err
		}
		missing := &query.Error{Reason: "there is no saved query " + name, Hint: "save one as the file " + filepath.Join(dir, savedDir, name)}
		if names, err := savedNames(dir); err == nil && len(names) > 0 {
			const most = 20
			if len(names) > most {
				names = append(names[:most:most], "…")
			}
			for i, name := range names[:min(most, len(names))] {
				names[i] = query.SavedTerm(name)
			}
			missing.Hint = "there are " + strings.Join(names, ", ")
		}
		return "", missing
	}
}
