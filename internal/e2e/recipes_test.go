package e2e

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lektordir/lektor/internal/testkit/server"
	"github.com/lektordir/lektor/internal/testkit/terminal"
	"github.com/lektordir/lektor/internal/testkit/testdir"
)

// desk is an environment for the scripts: a lektor-dir with an odd title, the programs, and
// stand-ins for programs of a desktop.
type desk struct {
	t         *testing.T
	home, dir string
	env       []string
}

func newDesk(t *testing.T, programs map[string]string) *desk {
	t.Helper()
	d := testdir.New(t)
	const feed = "https://a.example/feed"
	if _, err := d.Feed(feed, "Feed <b>"); err != nil {
		t.Fatal(err)
	}
	for i, title := range []string{"First", hostileTitle + " <b>&amp;</b> --help"} {
		if _, err := d.Entry(feed, "new", testdir.Unique(1700000000+int64(i), i), "title="+title, "content=the text of "+title); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.Create(); err != nil {
		t.Fatal(err)
	}
	k := &desk{t: t, home: t.TempDir(), dir: d.Path}
	for name, script := range programs {
		k.write("bin/"+name, "#!/bin/sh\n"+script+"\n")
		if err := os.Chmod(filepath.Join(k.home, "bin", name), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	k.env = append(os.Environ(), "HOME="+k.home, "LEKTORDIR="+d.Path, "PATH="+filepath.Join(k.home, "bin")+":"+build(t)+":"+os.Getenv("PATH"), "XDG_CACHE_HOME="+k.home, "LC_ALL=C.UTF-8", "TZ=UTC", "GORACE=atexit_sleep_ms=0", "no_proxy=*")
	return k
}

func (k *desk) write(name, text string) {
	k.t.Helper()
	path := filepath.Join(k.home, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		k.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		k.t.Fatal(err)
	}
}

func (k *desk) read(name string) string {
	text, _ := os.ReadFile(filepath.Join(k.home, name))
	return string(text)
}

// start returns a command that runs a script of this directory by sh, in the home of the desk.
func (k *desk) start(script string, args ...string) *exec.Cmd {
	k.t.Helper()
	path, err := filepath.Abs(filepath.Join(samples, script))
	if err != nil {
		k.t.Fatal(err)
	}
	cmd := exec.Command("sh", append([]string{path}, args...)...)
	cmd.Env, cmd.Dir = k.env, k.home
	return cmd
}

// run runs a script to its end, and returns its output.
func (k *desk) run(script string, args ...string) string {
	k.t.Helper()
	cmd := k.start(script, args...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil || stderr.Len() > 0 {
		k.t.Errorf("got %s %q: %v\n%s; want err == nil and stderr.Len() == 0", script, args, err, stderr.String())
	}
	k.harmless()
	return string(out)
}

// view runs lektor-view.
func (k *desk) view(args ...string) string {
	k.t.Helper()
	cmd := exec.Command(filepath.Join(build(k.t), "lektor-view"), args...)
	cmd.Env = k.env
	out, err := cmd.Output()
	if err != nil {
		k.t.Errorf("lektor-view %q: %v", args, err)
	}
	return string(out)
}

// harmless fails the test if a title was run as a command.
func (k *desk) harmless() {
	k.t.Helper()
	if found, _ := filepath.Glob(filepath.Join(k.home, "ran*")); len(found) > 0 {
		k.t.Error("a title was run")
	}
}

// TestRecipesAreShort: the samples can be read in a minute.
func TestRecipesAreShort(t *testing.T) {
	for _, name := range []string{"lektor-fzf", "lektor-notify", "lektor-scrape", "lektor-logwatch", "lektor-status", "lektor-bookmark"} {
		text := read(t, samples, name)
		if n := strings.Count(text, "\n"); n >= 70 {
			t.Errorf("%s has %d lines", name, n)
		}
		if fi, err := os.Stat(filepath.Join(samples, name)); err != nil || fi.Mode()&0o111 == 0 || !strings.HasPrefix(text, "#!/bin/sh\n# usage: ") {
			t.Errorf("got %s: %v; want err == nil and fi.Mode() & 0o111 != 0 and strings.HasPrefix(text, \"#!/bin/sh\\n# usage: \")", name, err)
		}
	}
}

// TestFzf: the stand-in of fzf replaces placeholders by fields quoted for a shell, like fzf. It
// runs each command that it gets, and chooses the last entry.
func TestFzf(t *testing.T) {
	k := newDesk(t, map[string]string{
		"fzf": `cat >"$HOME/list"
path=$(tail -n 1 "$HOME/list" | cut -f 1)
for arg; do
	case $arg in
	'lektor-view show'*) { printf %s "$arg" | sed 's/{1}$//'; printf "'%s'\n" "$path"; } | sh >"$HOME/preview" ;;
	ctrl-*) printf '%s\n' "$arg" | sed 's/.*reload(\(.*\))$/\1/' | sh >"$HOME/again" ;;
	esac
done
[ ! -e "$HOME/picked" ] || exit 130
: >"$HOME/picked"
tail -n 1 "$HOME/list"`,
	})
	if out := k.run("lektor-fzf", "feed:Feed", "not:title:'x'"); !strings.Contains(out, "the text of x$(touch ran)") {
		t.Errorf("got %q; want strings.Contains(out, \"the text of x$(touch ran)\")", out)
	}
	if list := k.read("list"); strings.Count(list, "\n") != 1 || !strings.Contains(list, "First") {
		t.Errorf("the list that is left is %q", list)
	}
	if again := k.read("again"); !strings.HasSuffix(again, "First\n") {
		t.Errorf("reload prints %q", again)
	}
	if preview := k.read("preview"); !strings.Contains(preview, "the text of First") {
		t.Errorf("the preview is %q", preview)
	}
	if got := k.view("count"); !strings.Contains(got, "1 unread of 2") {
		t.Errorf("got %s; want strings.Contains(got, \"1 unread of 2\")", got)
	}
}

// TestFzfOnTerminal: a short text goes through the pager, too, since fzf would cover printed
// text. The preview has the width of its window.
func TestFzfOnTerminal(t *testing.T) {
	k := newDesk(t, map[string]string{
		"fzf": `list=$(cat)
[ ! -e "$HOME/picked" ] || exit 130
for arg; do
	case $arg in
	'lektor-view show'*) { printf %s "$arg" | sed 's/{1}$//'; printf '%s\n' "$list" | tail -n 1 | cut -f 1; } | FZF_PREVIEW_COLUMNS=30 sh >"$HOME/preview" ;;
	esac
done
printf '%s\n' "$list" | tail -n 1 | tee "$HOME/picked"`,
		"less": `{ printf '%s\n' "$LESS"; cat; } >"$HOME/less"`,
	})
	path, err := filepath.Abs(samples + "/lektor-fzf")
	if err != nil {
		t.Fatal(err)
	}
	tty := terminal.Open(t, 100, 40)
	cmd := tty.Command(nil, "sh", path)
	cmd.Env = append(k.env, "PAGER=", "LEKTOR_PAGER=", "LESS=iF")
	if err := cmd.Run(); err != nil {
		t.Errorf("%v: %s", err, tty.Output())
	}
	if got := k.read("less"); !strings.HasPrefix(got, "iF -+F -R\n") || !strings.Contains(got, "the text of") {
		t.Errorf("the pager got %q", got)
	}
	if got := k.read("preview"); !strings.Contains(got, "the text of x$(touch\n") {
		t.Errorf("the preview is %q", got)
	}
}

func TestNotify(t *testing.T) {
	k := newDesk(t, map[string]string{"notify-send": `printf '%s\n' "$#" "$@" >>"$HOME/notified"`})
	cmd := k.start("lektor-notify", "-n", "2")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(time.Minute); strings.Count(k.read("notified"), "\n--\n") < 2 && time.Now().Before(end); {
		time.Sleep(10 * time.Millisecond)
	}
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM)
	_ = cmd.Wait()
	k.harmless()
	want := "5\n--app-name\nlektor\n--\nFeed <b>\nFirst\n5\n--app-name\nlektor\n--\nFeed <b>\n" + strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(hostileTitle+" <b>&amp;</b> --help") + "\n"
	if got := k.read("notified"); got != want {
		t.Errorf("%q, not\n%q", got, want)
	}
}

// TestScrape: by the setting filter, a page becomes a feed. Its links become entries with
// absolute URLs, each once.
func TestScrape(t *testing.T) {
	s, err := server.New("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	s.Handle("/", server.Doc("text/html", `<html><body><A class=x HREF="/news/1?a=1&amp;b=2">One &amp; <b>two</b></a> <a
 href='/news/2'>Two
 lines $(touch ran) it&#8217;s &lt;3</A><a href="/other">no</a><a href="/news/1?a=1&amp;b=2">again</a><a href="/news/4"></a><a href=/news/5>]]> five</a>
 <a href="/news/6">not closed`))
	k := newDesk(t, nil)
	script, err := filepath.Abs(samples + "/lektor-scrape")
	if err != nil {
		t.Fatal(err)
	}
	fetch := func(args ...string) {
		t.Helper()
		cmd := exec.Command(filepath.Join(build(t), "lektor-fetch"), args...)
		cmd.Env, cmd.Dir = k.env, k.home
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%q: %v\n%s", args, err, out)
		}
	}
	fetch("add", "--no-fetch", "--as-is", s.URL("/"))
	fetch("set", s.URL("/"), "filter", "sh '"+script+"' /news/")
	fetch("update", "--gap", "0", s.URL("/"))
	k.harmless()
	got := k.view("ls", "-o", "{{.title}}|{{.url}}", "--sort", "title", "feed:127.0.0.1")
	want := "]]> five|" + s.URL("/news/5") + "\nnot closed|" + s.URL("/news/6") + "\nOne & two|" + s.URL("/news/1?a=1&b=2") + "\nTwo lines $(touch ran) it’s <3|" + s.URL("/news/2") + "\n"
	if got != want {
		t.Errorf("%q, not\n%q", got, want)
	}
}

func TestLogwatch(t *testing.T) {
	k := newDesk(t, nil)
	titles := func(want string) {
		t.Helper()
		if got := k.view("ls", "-a", "-o", "title", "--sort", "delivered", "feed:Mail"); got != want {
			t.Errorf("%q, not %q", got, want)
		}
	}
	k.write("a log", "one\nerror: $(touch ran) \x1b[2J \x00 two\nerror: three\nerror: half")
	k.run("lektor-logwatch", "-n", "Mail", "a log", "^error")
	titles("2: error: $(touch ran) [2J two\n")
	k.run("lektor-logwatch", "-n", "Mail", "a log", "^error") // without new lines
	titles("2: error: $(touch ran) [2J two\n")
	f, err := os.OpenFile(filepath.Join(k.home, "a log"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(" a line\nfine\n"); err != nil {
		t.Fatal(err)
	}
	f.Close()
	state, _ := filepath.Glob(filepath.Join(k.dir, "etc/logwatch/*"))
	if len(state) != 1 {
		t.Fatal(state)
	}
	before, _ := os.ReadFile(state[0])
	k.run("lektor-logwatch", "-n", "Mail", "a log", "^error")
	titles("2: error: $(touch ran) [2J two\n1: error: half a line\n")
	// The script was killed before it recorded its position.
	if err := os.WriteFile(state[0], before, 0o666); err != nil {
		t.Fatal(err)
	}
	k.run("lektor-logwatch", "-n", "Mail", "a log", "^error")
	titles("2: error: $(touch ran) [2J two\n1: error: half a line\n")
	// The log was rotated: another file has its name.
	k.write("new", "error: new\n")
	if err := os.Rename(filepath.Join(k.home, "new"), filepath.Join(k.home, "a log")); err != nil {
		t.Fatal(err)
	}
	k.run("lektor-logwatch", "-n", "Mail", "a log", "^error")
	titles("2: error: $(touch ran) [2J two\n1: error: half a line\n1: error: new\n")
	// If the log does not exist, an error says so.
	cmd := k.start("lektor-logwatch", "no log")
	var said strings.Builder
	cmd.Stderr = &said
	_ = cmd.Run()
	if cmd.ProcessState.ExitCode() != 1 || !strings.HasSuffix(said.String(), "/no log is not a file that can be read\n") || strings.Count(said.String(), "\n") != 1 {
		t.Errorf("without the log: %v, %q", cmd.ProcessState, said.String())
	}
	for _, args := range [][]string{{}, {"-x", "f"}, {"a", "b", "c"}} {
		cmd := k.start("lektor-logwatch", args...)
		_ = cmd.Run()
		if cmd.ProcessState.ExitCode() != 2 {
			t.Errorf("got %q: %v; want cmd.ProcessState.ExitCode() == 2", args, cmd.ProcessState)
		}
	}
}

func TestStatus(t *testing.T) {
	k := newDesk(t, map[string]string{"sleep": "exec /bin/sleep 0.1"}) // shortens the pause of a minute
	if got := k.run("lektor-status"); !strings.HasPrefix(got, "2 Feed b : x (touch ran) touch ran ;touch ran ") || strings.ContainsAny(got, "<>&${}`%\"\\") || strings.Count(got, "\n") != 1 {
		t.Errorf("%q", got)
	}
	if got := k.run("lektor-status", "title:first"); got != "1 Feed b : First\n" {
		t.Errorf("got %q, want %q", got, "1 Feed b : First\n")
	}
	k.view("mark", "--set", "S", strings.TrimSpace(k.view("ls", "-o", "path", "title:first")))
	if got := k.run("lektor-status", "title:first"); got != "\n" {
		t.Errorf("got %q, want %q", got, "\n")
	}
	cmd := k.start("lektor-status", "-i")
	r, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL); _ = cmd.Wait() }()
	lines := make(chan string, 1000)
	go func() {
		buf := make([]byte, 4096)
		for {
			n, err := r.Read(buf)
			if err != nil {
				close(lines)
				return
			}
			lines <- string(buf[:n])
		}
	}()
	await := func(begin string) {
		t.Helper()
		for end := time.After(time.Minute); ; {
			select {
			case got := <-lines:
				if strings.Contains(got, begin) {
					return
				}
			case <-end:
				t.Fatalf("no line begins with %q", begin)
			}
		}
	}
	await("1 Feed")
	if _, err := (&testdir.Dir{Path: k.dir}).Entry("https://a.example/feed", "new", testdir.Unique(1700000009, 9), "title=Later"); err != nil {
		t.Fatal(err)
	}
	await("2 Feed b : Later")
}

// TestStatusEnds: a status bar ends only the script, and the processes of the script end with it.
func TestStatusEnds(t *testing.T) {
	k := newDesk(t, map[string]string{"sleep": "exec /bin/sleep 3600"})
	alive, inherited, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer alive.Close()
	out, err := os.Create(filepath.Join(k.home, "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	cmd := k.start("lektor-status", "-i")
	cmd.Stdout, cmd.ExtraFiles, cmd.SysProcAttr = out, []*os.File{inherited}, &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	inherited.Close()
	defer func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }()
	// When an arrival makes a line, all processes of the script run.
	n := 0
	for end := time.Now().Add(time.Minute); strings.Count(k.read("out"), "\n") < 2; time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("there are no lines")
		}
		n++
		if _, err := (&testdir.Dir{Path: k.dir}).Entry("https://a.example/feed", "new", testdir.Unique(1700001000+int64(n), n), "title=Later"); err != nil {
			t.Fatal(err)
		}
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	// All processes inherit the pipe, which ends with the last of them.
	if err := alive.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if _, err := alive.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("something runs on: %v", err)
	}
}
