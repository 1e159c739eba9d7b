package entrystore

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/lektordir/lektor/internal/files/atomicfile"
	"github.com/lektordir/lektor/internal/protocol/query"
)

// labelsFile has a line for each [Label]: the flag, a tab and the name. Other lines, such as those that
// begin with #, are notes of the user.
const labelsFile = "etc/view/labels"

// maxLabels is the maximum size of the file in bytes.
const maxLabels = 1 << 20

// Label is a name of one of the user's flags, a to z, or with an empty flag a folder that may have no
// feeds yet.
type Label struct{ Flag, Name string }

func (l Label) String() string { return l.Flag + "\t" + l.Name }

// parseLabel parses a line of the file.
func parseLabel(line string) (l Label, ok bool) {
	l.Flag, l.Name, ok = strings.Cut(line, "\t")
	l.Name = strings.TrimSpace(l.Name)
	return l, ok && l.Name != "" && (l.Flag == "" || len(l.Flag) == 1 && l.Flag >= "a" && l.Flag <= "z")
}

// Labels returns the labels of the lektor-dir at a path.
func Labels(dir string) (all []Label, err error) {
	data, err := atomicfile.Optional(atomicfile.Read(filepath.Join(dir, labelsFile), maxLabels))
	for line := range strings.Lines(string(data)) {
		if l, ok := parseLabel(line); ok {
			all = append(all, l)
		}
	}
	return all, err
}

// EditLabels removes some labels of the lektor-dir at a path durably, and adds others.
func EditLabels(dir string, remove, add []Label) error {
	if err := atomicfile.NoLinks(dir, "etc/view"); err != nil {
		return err
	}
	path := filepath.Join(dir, labelsFile)
	data, err := atomicfile.Optional(atomicfile.Read(path, maxLabels))
	if err != nil {
		return err
	}
	var b strings.Builder
	for line := range strings.Lines(string(data)) {
		if l, ok := parseLabel(line); !ok || !slices.Contains(remove, l) {
			b.WriteString(strings.TrimSuffix(line, "\n") + "\n")
		}
	}
	for _, l := range add {
		b.WriteString(l.String() + "\n")
	}
	if b.String() == string(data) {
		return nil
	}
	return atomicfile.InDir(path, func() error { return atomicfile.Write(path, []byte(b.String())) })
}

// labelTerm returns the text of the query label:NAME.
func labelTerm(dir, name string) (string, error) {
	all, err := Labels(dir)
	if err != nil {
		return "", err
	}
	var names []string
	for _, l := range all {
		if l.Flag != "" && strings.EqualFold(l.Name, name) {
			return "flag:" + l.Flag, nil
		}
		if l.Flag != "" {
			names = append(names, "label:"+query.Value(l.Name))
		}
	}
	missing := &query.Error{Reason: fmt.Sprintf("no flag has the label %s", name), Hint: "name one in the file " +
		filepath.Join(dir, labelsFile) + ": the flag, a tab and the name"}
	if len(names) > 0 {
		missing.Hint = "there are " + strings.Join(names, ", ")
	}
	return "", missing
}
