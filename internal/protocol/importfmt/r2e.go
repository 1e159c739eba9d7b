package importfmt

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/lektordir/lektor/internal/text/humanize"
)

// R2E reads the configuration of rss2email, an INI file with a section "feed.NAME" for
// each feed.
func R2E(config string) *Library {
	lib := &Library{}
	var f *Feed
	end := func() {
		if f == nil {
			return
		}
		if f.URL == "" {
			lib.Notes = append(lib.Notes, fmt.Sprintf("the feed %s has no url", f.Title))
		} else {
			lib.add(*f)
		}
		f = nil
	}
	for line := range strings.Lines(config) {
		line = strings.TrimRight(line, "\r\n")
		trimmed := strings.TrimSpace(line)
		switch {
		case trimmed == "" || trimmed[0] == '#' || trimmed[0] == ';':
		case trimmed[0] == '[' && line[0] == '[':
			end()
			section, _, _ := strings.Cut(trimmed[1:], "]")
			if name, ok := strings.CutPrefix(section, "feed."); ok {
				f = &Feed{Title: oneLine(name), Key: name}
			}
		case f == nil || line[0] == ' ' || line[0] == '\t': // the value continues
		default:
			at := strings.IndexAny(trimmed, "=:")
			if at < 0 {
				continue
			}
			key, value := strings.ToLower(strings.TrimSpace(trimmed[:at])), strings.TrimSpace(trimmed[at+1:])
			value = strings.ReplaceAll(value, "%%", "%") // as Python's configparser has it
			lib.r2e(f, key, value)
		}
	}
	end()
	return lib
}

// r2e sets a value of a feed.
func (lib *Library) r2e(f *Feed, key, value string) {
	switch key {
	case "url":
		f.URL = value
	case "active":
		f.Off = slices.Contains([]string{"false", "no", "off", "0"}, strings.ToLower(value))
	case "post-process", "digest-post-process":
		if value != "" {
			lib.Notes = append(lib.Notes, fmt.Sprintf("%s: its setting %s is not imported", f.Title, key))
		}
	}
}

// R2ESeen reads rss2email's data, which is JSON: for each feed the entries that were mailed, which
// count as read. If an entry has no identifier, rss2email stores only a digest of its text, and
// R2ESeen cannot return an item; notes hold the numbers of such entries.
func R2ESeen(data []byte) (items []Item, notes []string, err error) {
	var file struct {
		Feeds []struct {
			Name string                     `json:"name"`
			Seen map[string]json.RawMessage `json:"seen"`
		} `json:"feeds"`
	}
	if err := json.Unmarshal(data, &file); err != nil {
		return nil, nil, fmt.Errorf("not the data of rss2email: %w", err)
	}
	for _, f := range file.Feeds {
		digests := 0
		for guid, value := range f.Seen {
			var state struct{ Hash string }
			if json.Unmarshal(value, &state) == nil && guid == state.Hash { // the first versions had a string here
				digests++
				continue
			}
			i := Item{Feed: f.Name, ID: guid, Read: true}
			if isWeb(guid) {
				i.URL = guid
			}
			items = append(items, i)
		}
		if digests > 0 {
			notes = append(notes,
				fmt.Sprintf("%s: %s without an identifier were mailed; if the feed still lists them, they stay unread",
					oneLine(f.Name), humanize.Count(digests, "entry")))
		}
	}
	return items, notes, nil
}

func isWeb(s string) bool {
	return strings.HasPrefix(s, "http://") || strings.HasPrefix(s, "https://")
}
