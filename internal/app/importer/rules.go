package importer

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/lektordir/lektor/internal/feeds/subscriptions"
	"github.com/lektordir/lektor/internal/files/atomicfile"
	"github.com/lektordir/lektor/internal/protocol/importfmt"
	"github.com/lektordir/lektor/internal/read/entrystore"
	"github.com/lektordir/lektor/internal/text/humanize"
	"github.com/lektordir/lektor/internal/text/termsafe"
)

// saveRules appends rules to the user's file of rules, except those that it already contains.
func (m *mover) saveRules(src *source) error {
	var lines []string
	for _, r := range src.Rules {
		line, err := ruleLine(src, r)
		if err != nil {
			m.s.Report.Warn("a rule cannot be translated: %v: %s", err, termsafe.Line(r.Source))
			continue
		}
		lines = append(lines, line)
	}
	if len(lines) == 0 {
		return nil
	}
	path := m.d.Join(entrystore.RulesFile)
	old, err := atomicfile.Optional(atomicfile.Read(path, entrystore.MaxRules))
	if err != nil {
		return err
	}
	text, have := string(old), strings.Split(string(old), "\n")
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	n := 0
	for _, line := range lines {
		if slices.Contains(have, line) {
			continue
		}
		have = append(have, line)
		text += line + "\n"
		n++
		if m.o.DryRun {
			m.s.Report.Info("rule %s", termsafe.Line(line))
		}
	}
	if n == 0 || m.o.DryRun {
		return nil
	}
	if err := atomicfile.InDir(path, func() error { return atomicfile.Write(path, []byte(text)) }); err != nil {
		return err
	}
	m.s.Report.Info("%s in %s: lektor-view rules apply trashes the entries that match", humanize.Count(n, "rule"),
		entrystore.RulesFile)
	return nil
}

// ruleLine writes a rule as a line of the file.
func ruleLine(src *source, r importfmt.Rule) (string, error) {
	if r.Err != nil {
		return "", r.Err
	}
	query := r.Query
	if r.Feed != "" {
		url := r.Feed
		for _, f := range src.Feeds {
			if f.Key == r.Feed {
				url = f.URL
			}
		}
		query = "feed:" + strconv.Quote(subscriptions.FeedURL(url)) + " (" + query + ")"
	}
	if strings.ContainsAny(query, "\r\n") {
		return "", errors.New("it has several lines")
	}
	return query + " -> trash", nil
}
