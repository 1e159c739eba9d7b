package manual

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/lektordir/lektor/internal/testkit/testdir"
)

// richRSS and richAtom have data for every file of a feed and an entry.
const (
	richRSS = `<?xml version="1.0"?><rss version="2.0" xmlns:itunes="http://www.itunes.com/dtds/podcast-1.0.dtd" xmlns:podcast="https://podcastindex.org/namespace/1.0"><channel>
<podcast:locked>yes</podcast:locked><title>Cast</title><link>http://example.org/</link><generator>g</generator><description>d</description><language>de</language><copyright>c</copyright>
<managingEditor>m@example.org (M)</managingEditor><image><url>http://example.org/i.png</url><title>x</title><link>http://example.org/</link></image>
<item><title>One</title><link>http://example.org/1</link><guid>urn:x:1</guid><author>a@example.org (A)</author><category>c</category>
<comments>http://example.org/c</comments><pubDate>yesterday</pubDate><source url="http://s.example/">S</source>
<enclosure url="http://e.example/1.mp3" type="audio/mpeg" length="5"/><itunes:duration>1:00</itunes:duration><itunes:episode>3</itunes:episode>
<itunes:season>1</itunes:season><itunes:image href="http://example.org/1.png"/><description>text</description>
<podcast:transcript url="http://example.org/1.vtt" type="text/vtt"/></item>
</channel></rss>`
	richAtom = `<feed xmlns="http://www.w3.org/2005/Atom" xml:lang="de"><title>Atom</title><id>urn:x:f</id><updated>2026-01-02T00:00:00Z</updated>
<entry xml:lang="en" xmlns:thr="http://purl.org/syndication/thread/1.0"><title>Two</title><id>urn:x:2</id><link href="http://example.org/2"/>
<thr:in-reply-to ref="urn:x:1" href="http://example.org/1" type="text/html" source="http://example.org/feed"/>
<link rel="via" href="http://example.org/v" type="text/html" title="V"/><rights>r</rights><published>2026-01-01T00:00:00Z</published>
<updated>2026-01-02T00:00:00Z</updated><author><name>A</name><uri>http://example.org/a</uri></author><contributor><name>C</name></contributor>
<summary>short</summary><content type="html">VERSION</content></entry></feed>`
)

// TestFiles: lektor-dir(5) lists exactly the files of feeds and entries that the programs write.
func TestFiles(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(manDir, "lektor-dir.5"))
	if err != nil {
		t.Fatal(err)
	}
	p := newPlace(t, testdir.Bin(t), "LEKTORDIR")
	for name, text := range map[string]string{
		"rss.xml":   richRSS,
		"atom1.xml": strings.Replace(richAtom, "VERSION", "one", 1),
		"atom2.xml": strings.Replace(richAtom, "VERSION", "two", 1),
	} {
		if err := os.WriteFile(filepath.Join(p.home, "work", name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	p.sh(t, "-euxc", `
lektor-fetch add --category Tech/Go --alias Cast https://me.example/rss.xml
lektor-fetch set https://me.example/rss.xml keep 20
lektor-fetch deliver --id http://example.org/atom <atom1.xml
lektor-fetch deliver --id http://example.org/atom <atom2.xml
lektor-fetch add --no-fetch https://daringfireball.net/feed
lektor-fetch set https://daringfireball.net/feed fulltext on
lektor-fetch update https://daringfireball.net/feed`)
	for section, where := range map[string]string{"Feeds": "src/*", "Entries": "new/*/*"} {
		_, text, _ := strings.Cut(string(page), ".Ss "+section+"\n")
		text, _, _ = strings.Cut(text, "\n.Ss ")
		named := map[string]bool{}
		for _, line := range regexp.MustCompile(`(?m)^\.It Pa .*`).FindAllString(text, -1) {
			for name := range strings.FieldsSeq(strings.ReplaceAll(line[len(".It Pa "):], ",", " ")) {
				named[strings.TrimSuffix(name, "/")] = true
				// Other pages describe directories of other programs.
				if other, ok := strings.CutSuffix(name, "/"); ok && other != "etc/fetch" {
					continue
				}
				if found, err := filepath.Glob(filepath.Join(p.dir, where, name)); err != nil || len(found) == 0 {
					t.Errorf("%s: %s is nowhere (%v)", section, name, err)
				}
			}
		}
		for _, glob := range []string{"*", "etc/*"} {
			found, err := filepath.Glob(filepath.Join(p.dir, where, glob))
			if err != nil || len(found) == 0 && (glob == "*" || section == "Feeds") {
				t.Error(found, err)
			}
			for _, path := range found {
				parent, name := filepath.Split(path)
				if glob == "etc/*" {
					name = "etc/" + filepath.Base(path)
				}
				if name != "etc" && !named[name] && name != "etc/view" {
					t.Errorf("%s: the page does not name %s of %s", section, name, parent)
				}
			}
		}
	}
}

// TestState: lektor-state(5) names the private files of viewers and lektor-share, by the first
// word of their names.
func TestState(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(manDir, "lektor-state.5"))
	if err != nil {
		t.Fatal(err)
	}
	p := newPlace(t, testdir.Bin(t), "LEKTORDIR")
	p.sh(t, "-euxc", `
lektor-fetch add https://example.org/feed
mkdir -p "$D/etc/view"
echo 'title:first -> flag F' >"$D/etc/view/rules"
lektor-view rules apply
lektor-view ls -o path | head -n 1 | lektor-view mark --set S -
lektor-view expire --read 1y
lektor-share init ~/Sync/lektor
lektor-share sync`)
	first := func(name string) string {
		return strings.FieldsFunc(name, func(r rune) bool { return r == '/' || r == '.' })[0]
	}
	for section, where := range map[string]string{"VIEWING": "etc/view", "SHARING": "etc/share", "FEED HISTORY": "src/*/etc/history"} {
		_, text, _ := strings.Cut(string(page), ".Sh "+section+"\n")
		text, _, _ = strings.Cut(text, "\n.Sh ")
		named := map[string]bool{"complete": section == "FEED HISTORY"} // in lektor-dir(5)
		for _, line := range regexp.MustCompile(`(?m)^\.It Pa .*`).FindAllString(text, -1) {
			for name := range strings.FieldsSeq(strings.ReplaceAll(line[len(".It Pa "):], ",", " ")) {
				named[first(name)] = true
			}
		}
		found, err := filepath.Glob(filepath.Join(p.dir, where, "*"))
		if err != nil || len(found) == 0 && section != "FEED HISTORY" {
			t.Errorf("%s: got %q, %v; want files", section, found, err)
		}
		for _, path := range found {
			if !named[first(filepath.Base(path))] {
				t.Errorf("%s: the page does not name %s", section, path)
			}
		}
	}
}

// TestExtras: lektor-dir(5) lists exactly the extras that the programs write, with as many
// fields.
func TestExtras(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(manDir, "lektor-dir.5"))
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(page), ".Ss Extras\n")
	text, _, _ = strings.Cut(text, "\n.Ss ")
	named := map[string]bool{}
	for _, line := range regexp.MustCompile(`(?m)^\.It Cm .*`).FindAllString(text, -1) {
		for name := range strings.FieldsSeq(strings.ReplaceAll(line[len(".It Cm "):], ",", " ")) {
			named[name] = true
		}
	}
	p := newPlace(t, testdir.Bin(t), "LEKTORDIR")
	for name, text := range map[string]string{
		"rss.xml":   richRSS,
		"atom1.xml": strings.Replace(richAtom, "VERSION", "one", 1),
		"atom2.xml": strings.Replace(richAtom, "VERSION", "two", 1),
	} {
		if err := os.WriteFile(filepath.Join(p.home, "work", name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	p.sh(t, "-euxc", `
lektor-fetch deliver --id http://example.org/rss <rss.xml
lektor-fetch deliver --id http://example.org/atom <atom1.xml
lektor-fetch deliver --id http://example.org/atom <atom2.xml
lektor-fetch add --no-fetch https://daringfireball.net/feed
lektor-fetch set https://daringfireball.net/feed fulltext on
lektor-fetch update https://daringfireball.net/feed`)
	fields := map[string]int{"enclosure": 3, "source": 4, "fulltext": 2, "person": 4, "relation": 4, "in-reply-to": 4, "element": 4}
	found, err := filepath.Glob(filepath.Join(p.dir, "new/*/*/extras"))
	if err != nil || len(found) != 7 {
		t.Fatal(found, err)
	}
	written := map[string]bool{}
	for _, file := range found {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for l := range strings.Lines(string(data)) {
			name, rest, _ := strings.Cut(strings.TrimSuffix(l, "\n"), "\t")
			written[name] = true
			if got := strings.Count(rest, "\t") + 1; got != max(fields[name], 1) {
				t.Errorf("%d fields in %q", got, l)
			}
		}
	}
	for name := range named {
		if !written[name] {
			t.Errorf("%s is in no extras", name)
		}
	}
	for name := range written {
		if !named[name] {
			t.Errorf("the page does not name %s", name)
		}
	}
}

// TestLinks: the files to which README links exist.
func TestLinks(t *testing.T) {
	root := filepath.Join(manDir, "..")
	readme, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile("\\]\\(([^):]+)\\)|`((?:docs|scripts|internal|man|cmd)/[^`*]*)`").FindAllStringSubmatch(string(readme), -1)
	if len(found) < 10 {
		t.Fatalf("%d links", len(found))
	}
	for _, m := range found {
		if _, err := os.Stat(filepath.Join(root, m[1]+m[2])); err != nil {
			t.Error(err)
		}
	}
}

// TestHelp: the commands and flags in the examples of --help exist.
func TestHelp(t *testing.T) {
	bin := testdir.Bin(t)
	help := func(args ...string) string {
		t.Helper()
		out, err := exec.Command(filepath.Join(bin, args[0]), append(args[1:], "--help")...).Output()
		if err != nil {
			t.Fatalf("%v of %q", err, args)
		}
		return string(out)
	}
	call := regexp.MustCompile(`(lektor-[a-z]+)((?: +(?:'[^']*'|"[^"]*"|[^|;&><)'"\s]+))*)`)
	command := regexp.MustCompile(`(?m)^ {3,5}([a-z]+)  `)
	option := regexp.MustCompile(`(?m)(?:^   |, )(--?[a-z0-9-]+)`)
	// flags are the flags of a program or of one of its commands.
	flags := map[string][]string{}
	flagsOf := func(words ...string) []string {
		key := strings.Join(words, " ")
		if flags[key] == nil {
			for _, m := range option.FindAllStringSubmatch(help(words...), -1) {
				flags[key] = append(flags[key], m[1])
			}
		}
		return flags[key]
	}
	examples := 0
	check := func(where, text string) {
		_, text, _ = strings.Cut(text, "\nDESCRIPTION:\n")
		text, _, _ = strings.Cut(text, "OPTIONS:\n")
		text, _, _ = strings.Cut(text, "\nCOMMANDS:\n")
		for line := range strings.Lines(text) {
			if !strings.HasPrefix(line, "      ") {
				continue // prose
			}
			for _, m := range call.FindAllStringSubmatch(line, -1) {
				if _, err := os.Stat(filepath.Join(manDir, "../scripts", m[1])); err == nil {
					continue // a sample, which has no flags
				}
				words := []string{m[1]}
				examples++
				for i, word := range strings.Fields(m[2]) {
					if i == 0 && !strings.HasPrefix(word, "-") {
						words = append(words, word)
					}
					if flag, _, _ := strings.Cut(word, "="); len(flag) > 1 && flag[0] == '-' && !slices.Contains(flagsOf(words...), flag) {
						t.Errorf("%s: %q takes no %s", where, strings.Join(words, " "), flag)
					}
				}
				flagsOf(words...) // checks that the command exists
			}
		}
	}
	for _, program := range []string{"lektor-fetch", "lektor-view", "lektor-ess", "lektor-cloudd", "lektor-share", "lektor-serve", "lektor-pages", "lektor-import", "lektor-article"} {
		text := help(program)
		check(program, text)
		_, list, _ := strings.Cut(text, "\nCOMMANDS:\n")
		list, _, _ = strings.Cut(list, "OPTIONS:\n")
		for _, m := range command.FindAllStringSubmatch(list, -1) {
			check(program+" "+m[1], help(program, m[1]))
		}
	}
	if examples < 30 {
		t.Errorf("%d examples", examples)
	}
}
