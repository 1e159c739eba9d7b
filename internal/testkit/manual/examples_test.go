package manual

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lektordir/lektor/internal/testkit/testdir"
)

// step describes how an example of a page is run and checked.
type step struct {
	starts string // the first two words of the example; a comment matches any
	except string // why it is not run as printed; the text is then only in $example
	needs  string // a program that it needs, which may not be installed

	terminal bool   // it is run on a terminal
	given    string // shell commands that prepare what the example assumes
	edit     string // an expression for sed without which it cannot run; the comment beside it has the reason

	library bool   // use the lektor-dir of the function library
	before  string // shell commands to run before it
	out     string // a regular expression for its output
	then    string // shell commands to run after it, in the same directory; they must succeed

	// until is for an example that does not end: when this shell command succeeds, the example
	// has done its work and is interrupted.
	until string
}

// place is an environment for the examples of one page.
type place struct {
	t    *testing.T
	home string
	dir  string // path of the lektor-dir
	env  []string
}

// newPlace makes a new home. variable is the environment variable with the path of the
// lektor-dir, "" for none. The lektor-dir does not exist yet.
func newPlace(t *testing.T, bin, variable string) *place {
	p := &place{t: t, home: t.TempDir()}
	work := filepath.Join(p.home, "work")
	stand := filepath.Join(p.home, "bin")
	for _, d := range []string{work, stand} {
		if err := os.Mkdir(d, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	// Notifications, a player and a mailer are replaced by scripts that record their use.
	for name, script := range map[string]string{
		"notify-send":     `printf '%s|%s\n' "$@" >>"$HOME/notified"`,
		"mpv":             `echo "$@" >>"$HOME/played"`,
		"lektor-bookmark": `echo "$@" >>"$HOME/bookmarked"`,
		"sendmail":        `echo "$@" >"$HOME/sent"; cat >>"$HOME/sent"; test ! -e "$HOME/refused"`,
	} {
		if err := os.WriteFile(filepath.Join(stand, name), []byte("#!/bin/sh\n"+script+"\n"), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	w := newWeb(t, work)
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	p.dir = filepath.Join(p.home, ".local/share/lektor")
	p.env = []string{
		"HOME=" + p.home, "PATH=" + bin + ":" + stand + ":" + os.Getenv("PATH"), "TZ=UTC", "LC_ALL=C", "USER=kim",
		"http_proxy=" + w.proxy.URL, "https_proxy=" + w.proxy.URL, "SSL_CERT_FILE=" + w.certs, "CURL_CA_BUNDLE=" + w.certs,
		"GORACE=atexit_sleep_ms=0", "TMPDIR=" + t.TempDir(),
		// These are for the shell of the test only.
		"example=" + filepath.Join(p.home, "example"), "root=" + root,
	}
	switch variable {
	case "LEKTORDIR":
		p.dir = filepath.Join(p.home, "feeds")
		p.env = append(p.env, "LEKTORDIR="+p.dir)
	case "XDG_DATA_HOME":
		p.dir = filepath.Join(p.home, "data/lektor")
		p.env = append(p.env, "XDG_DATA_HOME="+filepath.Dir(p.dir))
	}
	p.env = append(p.env, "D="+p.dir)
	return p
}

// command returns a shell with a script, in the directory in which the previous example ended.
func (p *place) command(ctx context.Context, flags, script string) *exec.Cmd {
	sh := "dash"
	if _, err := exec.LookPath(sh); err != nil {
		sh = "sh"
	}
	cmd := exec.CommandContext(ctx, sh, flags, "trap 'pwd >\"$HOME/.pwd\"' EXIT\n"+script)
	cmd.Env = p.env
	cmd.Dir = filepath.Join(p.home, "work")
	if last, err := os.ReadFile(filepath.Join(p.home, ".pwd")); err == nil {
		cmd.Dir = strings.TrimSpace(string(last))
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	return cmd
}

// sh runs a script and returns its output.
func (p *place) sh(t *testing.T, flags, script string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	cmd := p.command(ctx, flags, script)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Errorf("%v of\n%s\n%s%s", err, script, out, &errs)
	}
	if s := errs.String(); flags == "-euc" && complaint.MatchString(s) {
		t.Errorf("complaints of\n%s\n%s", script, s)
	}
	return string(out)
}

// getenv returns a variable of the place.
func (p *place) getenv(name string) string {
	for _, v := range p.env {
		if value, ok := strings.CutPrefix(v, name+"="); ok {
			return value
		}
	}
	return ""
}

// complaint matches messages that a correct example never causes.
var complaint = regexp.MustCompile("warning|hint|No such file|not found|usage")

// stay runs a script until the command until succeeds, and interrupts it.
func (p *place) stay(t *testing.T, script, until string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	cmd := p.command(ctx, "-c", script)
	var errs bytes.Buffer
	path := filepath.Join(p.home, "out")
	out, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	cmd.Stdout, cmd.Stderr = out, &errs
	// A shell may lose a signal that comes before its command runs.
	if p.command(ctx, "-c", until).Run() == nil {
		t.Errorf("so before the example runs: %s", until)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for p.command(ctx, "-c", until).Run() != nil {
		if ctx.Err() != nil {
			t.Errorf("not so after a minute: %s", until)
			break
		}
	}
	if err := syscall.Kill(-cmd.Process.Pid, syscall.SIGINT); err != nil {
		t.Error(err)
	}
	// The signal may end the shell, too.
	var exit *exec.ExitError
	if err := cmd.Wait(); err != nil && (!errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGINT) {
		t.Errorf("%v of\n%s\n%s", err, script, &errs)
	}
	printed, err := os.ReadFile(path)
	if err != nil {
		t.Error(err)
	}
	return string(printed)
}

// terminal returns a script that runs on a terminal, by script(1) of Linux. On other systems, the
// list is numbered by a flag.
func (p *place) terminal(t *testing.T, script string) string {
	t.Helper()
	if exec.Command("script", "-qec", "true", os.DevNull).Run() != nil {
		return strings.Replace(script, "lektor-view ls\n", "lektor-view ls --number\n", 1)
	}
	if err := os.WriteFile(filepath.Join(p.home, "typed"), []byte("set -eu\n"+script), 0o666); err != nil {
		t.Fatal(err)
	}
	return `script -qec 'sh "$HOME/typed"' /dev/null </dev/null >"$HOME/seen" || { cat "$HOME/seen"; exit 1; }
tr -d '\r' <"$HOME/seen"`
}

// run runs a step with the text of its example.
func (p *place) run(t *testing.T, s step, text string) {
	if s.needs != "" {
		if _, err := exec.LookPath(s.needs); err != nil {
			t.Skipf("%s is not installed", s.needs)
		}
	}
	if err := os.WriteFile(filepath.Join(p.home, "example"), []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	if s.library {
		if err := os.RemoveAll(p.dir); err != nil {
			t.Fatal(err)
		}
		library(t, &testdir.Dir{Path: p.dir})
	}
	if s.before != "" {
		p.sh(t, "-euxc", s.before)
	}
	var out string
	if s.except == "" {
		script, want := transcript(text)
		if s.edit != "" {
			sed := exec.Command("sed", os.Expand(s.edit, p.getenv))
			sed.Stdin = strings.NewReader(script)
			edited, err := sed.Output()
			if err != nil || string(edited) == script {
				t.Fatalf("%v: %s changes nothing", err, s.edit)
			}
			script = string(edited)
		}
		script = s.given + "\n" + script
		if s.terminal {
			script = p.terminal(t, script)
		}
		if s.until != "" {
			out = p.stay(t, script, s.until)
		} else {
			out = p.sh(t, "-euc", script)
		}
		if want != "" && out != want {
			t.Errorf("\n%s\nprinted\n%s\nand not\n%s", script, out, want)
		}
		if !regexp.MustCompile(s.out).MatchString(out) {
			t.Errorf("\n%s\nprinted\n%s\nand not %s", script, out, s.out)
		}
	}
	if s.then != "" {
		p.sh(t, "-euxc", s.then)
	}
}

// transcript separates the commands after prompts from their output.
func transcript(text string) (script, out string) {
	if !strings.HasPrefix(text, "$ ") {
		return text, ""
	}
	var commands, printed strings.Builder
	for line := range strings.Lines(text) {
		if command, ok := strings.CutPrefix(line, "$ "); ok {
			commands.WriteString(command)
		} else {
			printed.WriteString(line)
		}
	}
	return commands.String(), printed.String()
}

// TestExamples runs the examples of all pages as printed, in order. Each page has a new
// directory, and LEKTORDIR or XDG_DATA_HOME is set, or neither.
func TestExamples(t *testing.T) {
	bin := testdir.Bin(t)
	pages, err := filepath.Glob(filepath.Join(manDir, "*.[1-9]"))
	if err != nil || len(pages) == 0 {
		t.Fatal(pages, err)
	}
	pages = append(pages, filepath.Join(manDir, "../README.md"))
	for n, path := range pages {
		page := filepath.Base(path)
		found := examples(t, path)
		steps := allSteps[page]
		for i, e := range found {
			if i >= len(steps) || !begins(e.text, steps[i].starts) {
				t.Fatalf("%s:%d: there is no step for this example:\n%s", page, e.line, e.text)
			}
			if s := steps[i]; s.except == "" && s.out == "" && s.then == "" && s.until == "" {
				t.Errorf("%s:%d: the step checks nothing:\n%s", page, e.line, e.text)
			}
		}
		if len(steps) != len(found) {
			t.Fatalf("%s has %d examples, want %d", page, len(found), len(steps))
		}
		// Each page runs with one of these variables, and README with each.
		variables := []string{"", "LEKTORDIR", "XDG_DATA_HOME"}
		if page != "README.md" {
			variables = variables[n%3:][:1]
		}
		for _, variable := range variables {
			t.Run(page+" "+variable, func(t *testing.T) {
				t.Parallel()
				p := newPlace(t, bin, variable)
				for i, e := range found {
					t.Run(strconv.Itoa(e.line), func(t *testing.T) { p.run(t, steps[i], e.text) })
				}
			})
		}
	}
}

// begins reports whether an example begins with the same command.
func begins(text, starts string) bool {
	if strings.HasPrefix(starts, "#") {
		return strings.HasPrefix(text, "#")
	}
	words := strings.Fields(starts)
	words = words[:min(2, len(words))]
	line, _, _ := strings.Cut(text, "\n")
	return slices.Equal(words, strings.Fields(line)[:min(len(words), len(strings.Fields(line)))])
}

// example is a part of a page that a reader may type.
type example struct {
	line int // line in the page
	text string
}

// examples extracts the examples of a page, as a reader sees them.
func examples(t *testing.T, path string) []example {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if filepath.Ext(path) == ".md" {
		return indented(string(data))
	}
	return displays(string(data))
}

// indented returns the parts that are indented by four spaces, up to an empty line.
func indented(page string) []example {
	var found []example
	inside := false
	n := 0
	for line := range strings.Lines(page) {
		n++
		text, ok := strings.CutPrefix(line, "    ")
		if ok && !inside {
			found = append(found, example{line: n})
		}
		if ok {
			found[len(found)-1].text += text
		}
		inside = ok
	}
	return found
}

// displays returns the literal displays and the lines of a page in mdoc, and the items of
// examples that are queries.
func displays(page string) []example {
	var found []example
	inside, section := false, ""
	n := 0
	for line := range strings.Lines(page) {
		n++
		text := unescape.Replace(line)
		switch {
		case inside && !strings.HasPrefix(line, ".Ed"):
			found[len(found)-1].text += text
		case strings.HasPrefix(line, ".Bd -literal"):
			inside = true
			found = append(found, example{line: n + 1})
		case strings.HasPrefix(line, ".Ed"):
			inside = false
		case strings.HasPrefix(line, ".Sh "):
			section = strings.TrimSpace(line[4:])
		case strings.HasPrefix(line, ".Dl "):
			found = append(found, example{n, text[4:]})
		case section == "EXAMPLES" && strings.HasPrefix(line, ".It Li "):
			found = append(found, example{n, text[7:]})
		}
	}
	return found
}

// unescape replaces the escapes of roff that occur in examples.
var unescape = strings.NewReplacer(`\e`, `\`, `\&`, "", `\-`, "-", `\(aq`, "'", `\(dq`, `"`)

// TestPrinted: mandoc prints the extracted examples.
func TestPrinted(t *testing.T) {
	mandoc, err := exec.LookPath("mandoc")
	if err != nil {
		t.Skip("mandoc is not installed")
	}
	pages, err := filepath.Glob(filepath.Join(manDir, "*.[1-9]"))
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range pages {
		out, err := exec.Command(mandoc, "-T", "ascii", page).Output()
		if err != nil {
			t.Fatal(err)
		}
		// A letter, a backspace and the same letter is a bold letter.
		printed := strings.Join(strings.Fields(regexp.MustCompile(".\b").ReplaceAllString(string(out), "")), " ")
		for _, e := range examples(t, page) {
			if text := strings.Join(strings.Fields(e.text), " "); !strings.Contains(printed, text) {
				t.Errorf("%s:%d: mandoc does not print\n%s", filepath.Base(page), e.line, text)
			}
		}
	}
}

// TestReplica makes a copy without tmp/ and etc/fetch/, as lektor-dir(5) advises. Every command
// has the same effect on it as on the original.
func TestReplica(t *testing.T) {
	p := newPlace(t, testdir.Bin(t), "LEKTORDIR")
	p.sh(t, "-euxc", `lektor-fetch add https://example.org/feed
cp -R "$D" "$HOME/copy"
rm -r "$HOME/copy/etc/fetch"`)
	for _, tc := range []struct{ command, out string }{
		{"lektor-view ls -o title -n 1", `\AA frost\n\z`},
		{"lektor-view show --raw " + `"$(lektor-view ls -o path -n 1)"`, `\AText of number 1`},
		{"lektor-view next", `(?m)^Title: Fifth$`},
		{`lektor-view ls -o path -n 1 | lektor-view mark -s F -`, `;2,F\n\z`},
		{`lektor-view ls -o path -n 1 | lektor-view rm - && lektor-view count`, `\A3 unread of 4\n\z`},
		{"lektor-view digest", `(?m)^Tea at noon`},
		{"lektor-view publish --format json", `"Tea at noon"`},
		{"lektor-fetch ls -o url", `\Ahttps://example.org/feed\n\z`},
		// Entries that were delivered before are recognised.
		{"lektor-fetch update -a -o title", `\A\z`},
		{"lektor-ess nno", `https://example.org/feed,`},
		{"echo | lektor-fetch put --feed-id urn:x:a --id urn:x:1 --title Put", `/new/`},
		{"lektor-fetch check", `\A\z`},
		{"lektor-fetch export", `xmlUrl="https://example.org/feed"`},
		{"lektor-ess build https://example.org/feed", `\A[0-9]+,https://example.org/feed,\n`},
		{"lektor-cloudd status", `\A\z`},
		{"lektor-fetch rm --purge https://example.org/feed && lektor-view count", `\A1 unread of 1\n\z`},
	} {
		out := p.sh(t, "-euc", "export LEKTORDIR=\"$HOME/copy\"\nrm -rf \"$LEKTORDIR/tmp\"\n"+tc.command)
		if !regexp.MustCompile(tc.out).MatchString(out) {
			t.Errorf("%s printed\n%s\nand not %s", tc.command, out, tc.out)
		}
	}
}
