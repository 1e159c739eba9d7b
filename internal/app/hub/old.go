package hub

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/lektordir/lektor/internal/atomicfile"
)

// adopt takes over the jobs of an earlier version: notifications in pending/, and pings in
// pings/. A file is removed after its jobs are in the log.
func (h *engine) adopt() {
	for sub, translate := range map[string]func(string) (string, error){"pending": oldRound, "pings": oldPing} {
		oldNames, err := names(filepath.Join(h.dir, sub))
		if err != nil {
			h.report.Warn("%v", err)
		}
		// By time of writing: nanoseconds have the same number of digits until 2286.
		slices.SortFunc(oldNames, func(a, b string) int {
			return strings.Compare(a[strings.IndexByte(a, '.')+1:], b[strings.IndexByte(b, '.')+1:])
		})
		for _, name := range oldNames {
			path := filepath.Join(h.dir, sub, name)
			lines, err := translate(path)
			if err == nil {
				err = h.jobs.adopt(lines, h.now())
			}
			if err == nil {
				err = atomicfile.Remove(path)
			}
			if err != nil {
				h.report.Warn("%v", err)
			}
		}
	}
}

// oldPing returns the log line for a file of pings/. Its name is the hash of the feed.
func oldPing(path string) (line string, err error) {
	hash := filepath.Base(path)
	v, err := readValues(path)
	a := job{url: v.Get("url"), caller: v.Get("caller"), tries: max(v.Int("tries"), 0), at: v.Time("at")}
	if err == nil && (hashOf(a.url) != hash || checkFeed(a.url) != nil) {
		err = fmt.Errorf("%s: not a ping", path)
	}
	return a.line(hash, pingKey), err
}

// oldRound returns the log lines for a file of pending/. Its name begins with the hash of
// the feed. It holds the URL of the feed, the key of each subscriber, an empty line, and
// lines in the form of the log without FEED. An even older version wrote these lines:
//
//	KEY failed  one more attempt has failed
//	KEY newer   a later file has the subscriber
//	again TIME  the next attempts are due at TIME
func oldRound(path string) (lines string, err error) {
	hash, serial, _ := strings.Cut(filepath.Base(path), ".")
	if _, err := strconv.ParseUint(strings.ReplaceAll(serial, "-", ""), 10, 64); err != nil || !isKey(hash) {
		return "", fmt.Errorf("%s: not a file of pending notifications", path)
	}
	data, err := atomicfile.Read(path, maxJobs)
	if err != nil {
		return "", err
	}
	_, rest, _ := strings.Cut(string(data), "\n")
	all, results, ok := strings.Cut("\n"+rest, "\n\n")
	if !ok {
		return "", fmt.Errorf("%s: the file is cut off", path)
	}
	var b strings.Builder
	for key := range strings.FieldsSeq(all) {
		b.WriteString((&job{}).line(hash, key))
	}
	tries := map[string]int{}
	for line := range strings.Lines(results[:strings.LastIndexByte(results, '\n')+1]) {
		key, mark, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		switch {
		case key == "again":
			for key, n := range tries {
				b.WriteString((&job{tries: n, at: when(mark)}).line(hash, key))
			}
		case mark == "failed":
			tries[key]++
			b.WriteString((&job{tries: tries[key]}).line(hash, key))
		case mark == "newer":
			b.WriteString(hash + "\t" + key + "\n")
		default:
			delete(tries, key)
			b.WriteString(hash + "\t" + line)
		}
	}
	return b.String(), nil
}
