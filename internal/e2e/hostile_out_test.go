package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lektordir/lektor/internal/testkit/must"
)

// These tests pass hostile entries to output other than pages and screens: mail, records,
// arguments and environment of commands, file names, completions, and the sample scripts.

// hostileMaildir reads each message of a maildir.
func hostileMaildir(t *testing.T, canary string, command func(...string) []byte, entries int) {
	to := filepath.Join(t.TempDir(), "mail")
	for line := range strings.Lines(string(command("lektor-view", "maildir", "-o", "file,messageid,title", to))) {
		harmless(t, "output of maildir", line)
		if n := strings.Count(line, "\t"); n != 2 {
			t.Errorf("%d tabs in %.200q", n, line)
		}
	}
	messages := glob(t, to, "new", "*")
	if len(messages) != entries || len(glob(t, to, "cur", "*"))+len(glob(t, to, "tmp", "*")) != 0 {
		t.Errorf("%d messages of %d entries", len(messages), entries)
	}
	for _, path := range messages {
		text := read(t, path)
		for line := range strings.Lines(text) {
			if len(strings.TrimRight(line, "\r\n")) > 998 {
				t.Errorf("%s: a line of %d bytes: %.100q", path, len(line), line)
			}
		}
		message(t, filepath.Base(path), canary, text)
	}
	if again := command("lektor-view", "maildir", "-o", "file", to); len(again) > 0 {
		t.Errorf("a second time: %.300q", again)
	}
}

// hostileRecords checks records with another decoder than ours.
func hostileRecords(t *testing.T, command func(...string) []byte, entries int) {
	for _, args := range [][]string{
		{"lektor-view", "ls", "-o", "json"}, {"lektor-view", "ls", "-a", "-o", "{{. | json}}"},
		{"lektor-view", "count", "-f", "-o", "json"}, {"lektor-view", "count", "--by", "author", "-o", "json"}, {"lektor-view", "count", "--by", "folder", "-o", "json"},
		{"lektor-view", "stats", "-o", "json"},
	} {
		what := strings.Join(args, " ")
		n := 0
		for line := range bytes.Lines(command(args...)) {
			var value any
			if err := json.Unmarshal(line, &value); err != nil {
				t.Errorf("%s: %v: %.200q", what, err, line)
			}
			everyText(value, func(text string) { harmless(t, what, text) })
			n++
		}
		if n == 0 || args[1] == "ls" && args[0] == "lektor-view" && n != entries {
			t.Errorf("%s: %d records", what, n)
		}
	}
	// Any field is one field, and any record is one line.
	fields := "title,feed,author,url,id,categories,enclosures,folder,image,source,summary,content,comments,contributors,language"
	out := string(command("lektor-view", "ls", "-o", fields))
	if n := strings.Count(out, "\n"); n != entries {
		t.Errorf("%d lines of %d entries", n, entries)
	}
	for line := range strings.Lines(out) {
		harmless(t, fields, line)
		if got, want := strings.Count(line, "\t"), strings.Count(fields, ","); got != want {
			t.Errorf("%d tabs, not %d: %.300q", got, want, line)
		}
	}
	for _, args := range [][]string{{"lektor-fetch", "ls"}, {"lektor-fetch", "ls", "-o", "tsv"}, {"lektor-view", "count", "--by", "author"}, {"lektor-view", "count", "--by", "day"}} {
		harmless(t, strings.Join(args, " "), string(command(args...)))
	}
	opml := command("lektor-fetch", "export")
	for d := xml.NewDecoder(bytes.NewReader(opml)); ; {
		if _, err := d.Token(); err == io.EOF {
			break
		} else if err != nil {
			t.Errorf("export: %v: %.500q", err, opml)
			break
		}
	}
}

// everyText calls f for each string in a value of JSON, including names.
func everyText(value any, f func(string)) {
	switch v := value.(type) {
	case string:
		f(v)
	case []any:
		for _, e := range v {
			everyText(e, f)
		}
	case map[string]any:
		for k, e := range v {
			f(k)
			everyText(e, f)
		}
	}
}

// hostileRun lets follow run a command for each entry. It checks that the arguments of the
// command are not options, and that its variables have one line.
func hostileRun(t *testing.T, dir string, entries int) {
	// This marks the end of the output of a command; no untrusted text contains it.
	const end = "\x01end"
	cmd := exec.Command(filepath.Join(build(t), "lektor-view"), "follow", "-n", fmt.Sprint(entries), "--run",
		"sh", "-c", `printf '%s\000' "$@" "$LEKTOR_TITLE" "$LEKTOR_URL" "$LEKTOR_FEED" "$LEKTOR_FEEDID" "$LEKTOR_AUTHOR" "$LEKTOR_ID" "$LEKTOR_CATEGORIES" "$LEKTOR_ENCLOSURE" "$(printf '\001end')"`,
		"sh", "{{.feed}}", "{{.title}}", "{{.author}}", "{{.url}}", "{{.content}}", "--title={{.title}}")
	cmd.Env = append(os.Environ(), "LEKTORDIR="+dir, "LC_ALL=C.UTF-8", "GORACE=atexit_sleep_ms=0")
	var said bytes.Buffer
	cmd.Stderr = &said
	out := must.Get(cmd.StdoutPipe())
	must.Do(cmd.Start())
	watch := time.AfterFunc(2*time.Minute, func() { _ = cmd.Process.Kill() })
	defer watch.Stop()
	texts := bufio.NewReader(out)
	for n := range entries {
		var args []string
		for {
			text, err := texts.ReadString(0)
			if err != nil {
				t.Fatalf("after %d of %d entries: %v\n%.2000s", n, entries, err, said.String())
			}
			if text = strings.TrimSuffix(text, "\x00"); text == end {
				break
			}
			args = append(args, text)
		}
		if len(args) != 6+8 {
			t.Fatalf("%d texts: %.1000q", len(args), args)
		}
		for i, a := range args {
			harmless(t, fmt.Sprintf("text %d that a command gets", i), a)
			if i < 5 && strings.HasPrefix(a, "-") {
				t.Errorf("argument %d is an option: %.200q", i, a)
			}
			if i != 4 && strings.Contains(a, "\n") {
				t.Errorf("text %d has lines: %.200q", i, a)
			}
		}
	}
	must.Do(cmd.Process.Signal(os.Interrupt))
	if _, err := io.Copy(io.Discard, texts); err != nil {
		t.Error(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v\n%.1000s", err, said.String())
	}
	harmless(t, "output of follow", said.String())
}

// TestHostileFileNames: save makes file names of hostile titles, feed names and types. All files
// are below the directory, and every program accepts their names.
func TestHostileFileNames(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Disposition", `attachment; filename="../../owned.sh"`)
		fmt.Fprint(w, r.URL.Path)
	}))
	defer server.Close()
	bin, home := build(t), t.TempDir()
	dir, to := filepath.Join(home, "feeds"), filepath.Join(home, "saved")
	run := func(stdin []byte, args ...string) string {
		t.Helper()
		cmd := exec.Command(filepath.Join(bin, args[0]), args[1:]...)
		cmd.Env = append(os.Environ(), "LEKTORDIR="+dir, "LC_ALL=C.UTF-8", "no_proxy=*", "XDG_CACHE_HOME="+home)
		cmd.Stdin = bytes.NewReader(stdin)
		var said bytes.Buffer
		cmd.Stderr = &said
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%q: %v\n%.2000s", args, err, said.String())
		}
		harmless(t, strings.Join(args, " ")+", what it says", said.String())
		return string(out)
	}
	const types = "audio/../../x|audio/mpeg\r\nX: y|\x1b[2J|text/html;charset=../../x||application/x-sh"
	count := 0
	var titles []string
	for _, e := range hostileEntries() {
		if e.title != "" {
			titles = append(titles, e.title)
		}
	}
	for feed, name := range []string{titles[0], titles[5]} { // a title with escapes for a terminal, and a path
		var items []map[string]any
		for i, title := range titles {
			kinds := strings.Split(types, "|")
			path := []string{"/a.mp3", "/..%2f..%2fowned.sh", "/x.%00sh", "/" + strings.Repeat("y", 3000) + ".ogg"}[i%4]
			items = append(items, map[string]any{
				"id": fmt.Sprint(i), "title": title, "content_text": "x", "attachments": []any{map[string]any{"url": fmt.Sprintf("%s%s?%d", server.URL, path, i), "mime_type": kinds[i%len(kinds)]}},
			})
		}
		doc := must.Get(json.Marshal(map[string]any{"version": "https://jsonfeed.org/version/1.1", "title": name, "items": items}))
		run(doc, "lektor-fetch", "deliver", "--id", fmt.Sprintf("urn:x:%d", feed))
		count += len(titles)
	}
	names := strings.Split(strings.TrimSuffix(run(nil, "lektor-view", "save", "--allow", "127.0.0.1", "--gap", "0", "--query", "has:enclosure", to), "\n"), "\n")
	if len(names) != count {
		t.Errorf("%d files of %d enclosures", len(names), count)
	}
	found := 0
	must.Do(filepath.WalkDir(home, func(path string, e fs.DirEntry, err error) error {
		must.Do(err)
		if path == dir {
			return filepath.SkipDir
		}
		if path == home || path == to || filepath.Dir(path) == home && !strings.Contains(path, "owned") {
			return nil
		}
		name := e.Name()
		harmless(t, "a name", name)
		if strings.ContainsAny(name, "\\:*?\"<>|\n\t") || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "-") || strings.HasPrefix(name, "~") || len(name) > 255 || strings.TrimSpace(name) != name {
			t.Errorf("the name %q", name)
		}
		switch rel := must.Get(filepath.Rel(to, path)); {
		case strings.HasPrefix(rel, ".."), strings.Count(rel, "/") > 1, !e.IsDir() && !e.Type().IsRegular():
			t.Errorf("it is at %s", rel)
		case !e.IsDir():
			found++
			if info := must.Get(e.Info()); info.Mode()&0o111 != 0 {
				t.Errorf("%s can be run", rel)
			}
		}
		return nil
	}))
	if found != count {
		t.Errorf("%d files there of %d", found, count)
	}
}

// hostileWords checks the completions for a shell.
func hostileWords(t *testing.T, command func(...string) []byte) {
	for _, program := range []string{"lektor-view", "lektor-fetch"} {
		for _, words := range [][]string{{"ls", "feed:"}, {"ls", "author:"}, {"count", ""}, {"set", ""}, {"update", ""}, {"show", ""}} {
			harmless(t, "words", string(command(append([]string{program, "__complete", "words"}, words...)...)))
			out := string(command(program, "__complete", "bash", program+" "+strings.Join(words, " "), " \t\n\"'><=;|&(:"))
			harmless(t, "words for bash", out)
		}
	}
}

// hostileScripts runs the samples that do not move entries.
func hostileScripts(t *testing.T, dir string, entries int) {
	k := &desk{t: t, home: t.TempDir(), dir: dir}
	for name, script := range map[string]string{
		// The stand-in gets a list, and previews each line like fzf.
		"fzf":         `cat >"$HOME/list"; cut -f 1 "$HOME/list" | head -n 20 | while read -r path; do lektor-view show --no-pager "$path"; done >"$HOME/shown"; exit 130`,
		"notify-send": `printf '%s\000' "$@" >>"$HOME/notified"; printf '\001\000' >>"$HOME/notified"`,
	} {
		k.write("bin/"+name, "#!/bin/sh\n"+script+"\n")
		must.Do(os.Chmod(filepath.Join(k.home, "bin", name), 0o777))
	}
	k.env = append(os.Environ(), "HOME="+k.home, "LEKTORDIR="+dir, "PATH="+filepath.Join(k.home, "bin")+":"+build(t)+":"+os.Getenv("PATH"), "XDG_CACHE_HOME="+k.home, "LC_ALL=C.UTF-8", "TZ=UTC", "GORACE=atexit_sleep_ms=0", "no_proxy=*")

	if line := k.run("lektor-status"); !strings.HasPrefix(line, fmt.Sprint(entries, " ")) || strings.Count(line, "\n") != 1 || strings.ContainsAny(line, "<>&%#\"'`$\\") {
		t.Errorf("lektor-status: %q", line)
	} else {
		harmless(t, "lektor-status", line)
	}
	k.run("lektor-fzf")
	list := k.read("list")
	harmless(t, "lektor-fzf", list)
	harmless(t, "its preview", k.read("shown"))
	if strings.Count(list, "\n") != entries || strings.Count(list, "\t") != entries || k.read("shown") == "" {
		t.Errorf("lektor-fzf: %d lines, %d tabs", strings.Count(list, "\n"), strings.Count(list, "\t"))
	}

	notify := k.start("lektor-notify", "-n", "40")
	must.Do(notify.Start())
	for end := time.Now().Add(time.Minute); strings.Count(k.read("notified"), "\x01\x00") < 40; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("lektor-notify: %d of 40", strings.Count(k.read("notified"), "\x01\x00"))
		}
	}
	must.Do(notify.Process.Signal(os.Interrupt))
	_ = notify.Wait()
	for message := range strings.SplitSeq(strings.TrimSuffix(k.read("notified"), "\x01\x00"), "\x01\x00") {
		args := strings.Split(strings.TrimSuffix(message, "\x00"), "\x00")
		if len(args) != 5 || strings.Join(args[:3], " ") != "--app-name lektor --" || strings.ContainsAny(args[4], "<>\n") || len(args[4]) > 2000 {
			t.Errorf("notify-send is told %.500q", args)
		}
		for _, a := range args {
			harmless(t, "notify-send", a)
		}
	}

	// Pages and logs are untrusted, too.
	var page strings.Builder
	for _, e := range hostileEntries() {
		fmt.Fprintf(&page, "<a href=\"%s\">%s</a>\n%s\n<a href='/news/%s'>x</a>\n", e.url, e.title, e.content, strings.ReplaceAll(e.title, "'", ""))
	}
	k.write("page", page.String())
	scrape := k.start("lektor-scrape")
	scrape.Stdin = strings.NewReader(page.String())
	doc := must.Get(scrape.Output())
	deliver := exec.Command(filepath.Join(build(t), "lektor-fetch"), "--dir", filepath.Join(k.home, "scraped"), "deliver", "--id", "http://page.example/", "-o", "title")
	deliver.Stdin, deliver.Env = bytes.NewReader(doc), k.env
	out, err := deliver.CombinedOutput()
	if err != nil || len(out) == 0 {
		t.Errorf("the feed of lektor-scrape: %v: %.500q", err, out)
	}
	harmless(t, "lektor-scrape", string(out))
	must.Do(exec.Command("cp", filepath.Join(k.home, "page"), filepath.Join(k.home, "log")).Run())
	k.dir = filepath.Join(k.home, "logged")
	k.env = append(k.env, "LEKTORDIR="+k.dir)
	k.run("lektor-logwatch", filepath.Join(k.home, "log"))
	logged := exec.Command(filepath.Join(build(t), "lektor-view"), "ls", "-o", "title,content")
	logged.Env = k.env
	harmless(t, "lektor-logwatch", string(must.Get(logged.Output())))
}

// hostileViewer runs the sample viewer, which moves all remaining entries.
func hostileViewer(t *testing.T, dir string) {
	digest := run(t, "sh", dir, "lektor-digest")
	if strings.Count(digest, "In feed ") < 2 || len(glob(t, dir, "new/*/*")) > 0 {
		t.Errorf("lektor-digest: %.500q", digest)
	}
	// A terminal that reads UTF-8 ignores invalid bytes.
	harmless(t, "lektor-digest", strings.ToValidUTF8(digest, "?"))
}

// TestDigestTakesOutWhatItPutsTogether: after a sequence is removed, the characters around it
// must not form another one.
func TestDigestTakesOutWhatItPutsTogether(t *testing.T) {
	shells(t, func(t *testing.T, sh string) {
		dir := t.TempDir()
		entry(t, filepath.Join(dir, "new", "f", "1.x.h"), "a\xc2\xe2\x80\xae\x9b2Jb\xe2\x80\xe2\x81\xa6\xaec\xe2\xc2\x9b\x80\xaed\xc2\x00\x9be\n", "")
		if got, want := run(t, sh, dir, "lektor-digest"), "In feed f:\n\na2Jbcde\n\n"; got != want {
			t.Errorf("got %q\nwant %q", got, want)
		}
	})
}
