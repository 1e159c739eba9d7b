package stage

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"iter"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/lektordir/lektor/internal/dir/commit"
	"github.com/lektordir/lektor/internal/dir/dirfs"
	"github.com/lektordir/lektor/internal/dir/journal"
	"github.com/lektordir/lektor/internal/files/atomicfile"
)

// properties holds digests of the properties of an entry that do not decide whether it has changed:
// its dates, and the others. The feed's record of its last document holds those of each entry. There,
// "!" follows a digest for each of the last documents in which it changed.
type properties struct{ dates, others string }

// The numbers of successive documents in which a change of dates or of other properties is taken.
// Afterwards, it is taken when it stays.
const dateChanges, otherChanges = 1, 5

// propertiesOf returns the properties of an entry from its files. The source is not one of them,
// because in an aggregated feed its date moves whenever the source has a new entry.
func propertiesOf(files iter.Seq2[string, []byte]) properties {
	var dates, others []string
	for name, data := range files {
		switch name {
		case "author":
			others = append(others, string(data))
		case "pubdate":
			dates = append(dates, string(data))
		case "extras":
			for line := range bytes.Lines(data) {
				switch extra, _, _ := bytes.Cut(line, []byte{'\t'}); string(extra) {
				case "link", "replaces", "source", "fulltext":
				case "updated", "pubdate-raw":
					dates = append(dates, string(line))
				default:
					others = append(others, string(line))
				}
			}
		}
	}
	return properties{digestOf(dates), digestOf(others)}
}

// digestOf returns a digest of lines in any order. The scheme of URLs does not count.
func digestOf(lines []string) string {
	slices.Sort(lines)
	return journal.DigestOf(strings.ReplaceAll(strings.Join(lines, ""), "http://", "https://")).String()[:8]
}

// follow compares the properties of the items with the record of the last document, and notes which of
// known items may differ from the delivered version. So entries need not be read at each fetch.
//
// Dates of a build move in most entries, so dates count only if they moved in at most half of them.
func (t *Stager) follow(items []*item, known []*journal.Record) {
	if t.next == nil {
		t.last, t.next = t.readProperties(), map[string]properties{}
	}
	listed, moved := 0, 0
	for i, it := range items {
		it.now = propertiesOf(it.entry.Files(""))
		if old, ok := t.last[it.lineage(known[i])]; ok {
			listed++
			if strings.TrimRight(old.dates, "!") != it.now.dates {
				moved++
			}
		}
	}
	for i, it := range items {
		next := it.now
		old, ok := t.last[it.lineage(known[i])]
		if it.checkOthers = !ok; ok {
			next.others, it.checkOthers = nextProperty(old.others, next.others, otherChanges)
			if 2*moved <= listed {
				next.dates, it.checkDates = nextProperty(old.dates, next.dates, dateChanges)
			}
		}
		t.next[it.lineage(known[i])] = next
	}
}

// nextProperty returns the record of a digest, given the old record. suspect reports whether the entry is to
// be compared: if the digest has changed, but not in too many successive documents, or if it stays
// after that.
func nextProperty(old, digest string, limit int) (next string, suspect bool) {
	was := strings.TrimRight(old, "!")
	changes := len(old) - len(was)
	if digest == was {
		return digest, changes > limit
	}
	return digest + strings.Repeat("!", min(changes, limit)+1), changes < limit
}

// amend stages a version of an unchanged item in place of the delivered one, if that is in new/ and
// has other properties. The new version keeps content and digests of the old one, so the journal can
// be compacted. amend reports whether it has staged the version.
func (t *Stager) amend(ctx context.Context, it *item, newest journal.Record, doc *Document) (bool, error) {
	if !it.checkDates && !it.checkOthers || doc.Policy == Ignore {
		return false, nil
	}
	files := map[string][]byte{}
	for _, name := range entryFiles {
		data, err := dirfs.ReadFile(t.Dir().Join("new", t.Feed(), newest.Unique, name))
		if err == nil {
			files[name] = data
		} else if !errors.Is(err, fs.ErrNotExist) || name == "title" {
			return false, nil // a viewer has taken the entry, or it cannot be read
		}
	}
	was := propertiesOf(maps.All(files))
	if !(it.checkDates && was.dates != it.now.dates || it.checkOthers && was.others != it.now.others) {
		return false, nil
	}
	if late, err := t.datesAllow(it, newest, doc.Dates); err != nil || !late {
		return false, err
	}
	fulltext := regexp.MustCompile(`(?m)^fulltext\t.*\n`).Find(files["extras"])
	for _, name := range entryFiles[keptFiles:] {
		delete(files, name)
	}
	for name, data := range it.entry.Files(newest.Unique) {
		if slices.Index(entryFiles, name) >= keptFiles {
			files[name] = data
		}
	}
	files["extras"] = append(files["extras"], fulltext...)
	v := it.version(newest.Lineage(), newest.Unique)
	v.Replaces = newest.Unique
	v.Files = func(yield func(string, []byte) bool) {
		for _, name := range entryFiles {
			if data, ok := files[name]; ok && !yield(name, data) {
				return
			}
		}
	}
	unique, err := t.Add(ctx, v)
	t.amended[unique] = true
	return err == nil, err
}

// entryFiles lists the files of an entry. An amended version keeps the first keptFiles of them.
var entryFiles = []string{"title", "id", "type", "content", "feed-content", "author", "pubdate", "extras"}

const keptFiles = 5

// readProperties reads the record of the last document. Lines that are not valid, and a file that
// cannot be read, only mean that entries are compared with their files.
func (t *Stager) readProperties() map[string]properties {
	data, _ := dirfs.ReadFile(t.Dir().Join(commit.PropertiesPath(t.Feed())))
	last := map[string]properties{}
	for line := range strings.Lines(string(data)) {
		if f := strings.Fields(line); len(f) == 3 {
			last[f[0]] = properties{f[1], f[2]}
		}
	}
	return last
}

// saveProperties replaces the record of the last document after its commit: if it did so before, a
// kill between would lose a difference. The record is not synced, and a failure loses nothing.
func (t *Stager) saveProperties() {
	if t.next == nil || maps.Equal(t.next, t.last) {
		return
	}
	var b strings.Builder
	for _, lineage := range slices.Sorted(maps.Keys(t.next)) {
		p := t.next[lineage]
		b.WriteString(lineage + " " + p.dates + " " + p.others + "\n")
	}
	_ = atomicfile.CreateUnsynced(t.Dir().Join(commit.PropertiesPath(t.Feed())), []byte(b.String()))
}
