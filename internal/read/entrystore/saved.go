package entrystore

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/lektordir/lektor/internal/files/atomicfile"
	"github.com/lektordir/lektor/internal/protocol/query"
)

// savedDir holds the user's saved queries, a file each, named like the query.
const savedDir = "etc/view/query"

// maxSaved is the maximum size of a saved query in bytes.
const maxSaved = 64 << 10

// Saved is a saved query of the user.
type Saved struct {
	Name  string
	Query *query.Query // nil if Err is set
	Err   error        // why the query is invalid
}

// SavedQueries returns the saved queries of the lektor-dir at a path, sorted by name. It ignores
// files with invalid names, for example an editor's copies, and anything that is not a regular file.
// If the directory does not exist, it returns none.
func SavedQueries(dir string) ([]Saved, error) {
	names, err := savedNames(dir)
	var all []Saved
	for _, name := range names {
		s := Saved{Name: name}
		s.Query, s.Err = query.ParseWith(query.SavedTerm(name), SavedIn(dir))
		all = append(all, s)
	}
	return all, err
}

// RulesFile is the file of the user's rules, relative to the lektor-dir. Its maximum size is
// [MaxRules] bytes.
const (
	RulesFile = "etc/view/rules"
	MaxRules  = 1 << 20
)

// SavedPath returns the path of a saved query in the lektor-dir dir.
func SavedPath(dir, name string) string { return filepath.Join(dir, savedDir, name) }

// savedNames returns the names of the saved queries, sorted.
func savedNames(dir string) ([]string, error) {
	ents, err := atomicfile.Optional(os.ReadDir(filepath.Join(dir, savedDir)))
	var names []string
	for _, e := range ents {
		// Follow symbolic links, as reading the query does.
		if query.CheckName(e.Name()) == nil && (e.Type().IsRegular() || e.Type() == fs.ModeSymlink) {
			names = append(names, e.Name())
		}
	}
	return names, err
}

// SavedIn returns a function that reads saved queries and labels of a lektor-dir by name.
func SavedIn(dir string) query.Saved {
	return func(name string) (string, error) {
		if label, ok := strings.CutPrefix(name, query.LabelPrefix); ok {
			return labelTerm(dir, label)
		}
		data, err := atomicfile.Read(filepath.Join(dir, savedDir, name), maxSaved)
		if !errors.Is(err, fs.ErrNotExist) {
			return string(data), err
		}
		missing := &query.Error{Reason: "there is no saved query " + name, Hint: "save one as the file " +
			filepath.Join(dir, savedDir, name)}
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
