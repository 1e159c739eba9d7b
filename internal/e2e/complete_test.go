package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lektordir/lektor/internal/testkit/terminal"
	"github.com/lektordir/lektor/internal/testkit/testdir"
)

// These titles would have an effect if a shell expanded them.
const (
	hostileTitle  = "x$(touch ran)`touch ran`;touch ran&|<>*?[a]{b,c}~!#%\\ 'q' \"d\""
	controlsTitle = "y\x1b[2J\u202e\u2028z"
)

// completions returns a lektor-dir with names to complete.
func completions(t *testing.T) string {
	t.Helper()
	d := testdir.New(t)
	for url, title := range map[string]string{
		"https://kim.example/feed": "Kim's feed: a \"blog\"", "https://alone.example/feed": "Alone", "https://hostile.example/feed": hostileTitle, "https://controls.example/feed": controlsTitle,
	} {
		if _, err := d.Feed(url, "Name", "etc/fetch/url="+url, "etc/view/alias="+title); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := d.Feed("https://folder.example/feed", "F", "etc/fetch/url=https://folder.example/feed", "etc/categories=Tech/Go lang"); err != nil {
		t.Fatal(err)
	}
	if err := d.Create(); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(d.Path, "etc/view/query"), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(d.Path, "etc/view/query/Long reads"), []byte("x\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	return d.Path
}

// prompt is a shell on a terminal, with a user who presses the tab key.
type prompt struct {
	*terminal.Terminal
	t   *testing.T
	dir string
}

// newPrompt starts a shell with arguments. The shell has the completion from a file, and a
// function args, which writes its arguments to $OUT.
func newPrompt(t *testing.T, shell, rc, file string, args ...string) *prompt {
	t.Helper()
	path, err := exec.LookPath(shell)
	if err != nil {
		t.Skip(shell + " is not installed")
	}
	p := &prompt{Terminal: terminal.Open(t, 200, 50), t: t, dir: t.TempDir()}
	file, err = filepath.Abs(filepath.Join(samples, "completion", file))
	if err != nil {
		t.Fatal(err)
	}
	env := []string{
		"HOME=" + p.dir, "LEKTORDIR=" + completions(t), "PATH=" + build(t) + ":" + os.Getenv("PATH"), "OUT=" + filepath.Join(p.dir, "out"), "FILE=" + file, "FDIR=" + filepath.Dir(file),
		"TERM=xterm", "LC_ALL=C.UTF-8", "PS1=ready", "INPUTRC=/dev/null", "XDG_CONFIG_HOME=" + p.dir, "XDG_DATA_HOME=" + p.dir, "ZDOTDIR=" + p.dir, "GORACE=atexit_sleep_ms=0",
	}
	for name, text := range map[string]string{"rc": rc, ".zshrc": rc, "fish/config.fish": rc, "notes.txt": "", "fish/generated_completions/x": ""} {
		at := filepath.Join(p.dir, name)
		if err := os.MkdirAll(filepath.Dir(at), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for i, a := range args {
		args[i] = strings.ReplaceAll(a, "RC", filepath.Join(p.dir, "rc"))
	}
	cmd := p.Command(env, path, args...)
	cmd.Dir = p.dir
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	p.Await("ready")
	return p
}

// args types a line, with tabs as it has them, and returns the arguments of the completed line.
func (p *prompt) args(line string) []string {
	p.t.Helper()
	out := filepath.Join(p.dir, "out")
	os.Remove(out)
	p.Type(line)
	p.Type("\x01args \x05\r")
	for end := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		if text, err := os.ReadFile(out); err == nil {
			return strings.Split(strings.TrimSuffix(string(text), "\x00"), "\x00")
		}
		if time.Now().After(end) {
			p.t.Fatalf("%q was not run; on the screen is\n%q", line, p.Seen())
		}
	}
}

// want types a line, and compares the arguments.
func (p *prompt) want(line string, words ...string) {
	p.t.Helper()
	if got := p.args(line); !slices.Equal(got, words) {
		p.t.Errorf("%q becomes %q, not %q", line, got, words)
	}
	if _, err := os.Stat(filepath.Join(p.dir, "ran")); err == nil {
		p.t.Fatalf("%q: something was run", line)
	}
}

// words types lines that all shells complete alike.
func (p *prompt) words() {
	p.t.Helper()
	p.want("lektor-fetch imp\t", "lektor-fetch", "import")
	p.want("lektor-fetch update Alo\t", "lektor-fetch", "update", "Alone")
	p.want("lektor-fetch update Ki\t", "lektor-fetch", "update", `Kim's feed: a "blog"`)
	p.want("lektor-fetch update x\t", "lektor-fetch", "update", hostileTitle)
	p.want("lektor-fetch update https://c\t", "lektor-fetch", "update", "https://controls.example/feed")
	p.want("lektor-fetch ls --broken --cat\tTech/\t", "lektor-fetch", "ls", "--broken", "--category", "Tech/Go lang")
	p.want("lektor-fetch import --from sf\t", "lektor-fetch", "import", "--from", "sfeed")
	p.want("lektor-view ls feed:Alo\t", "lektor-view", "ls", "feed:Alone")
	p.want("lektor-view ls query:\t", "lektor-view", "ls", `query:"Long reads"`)
	p.want("lektor-view ls query:Lo\t", "lektor-view", "ls", `query:"Long reads"`)
	p.want("lektor-view ls feed:kim\t", "lektor-view", "ls", `feed:"Kim's feed: a \"blog\""`)
	p.want("lektor-view ls not:folder:Tech/\t", "lektor-view", "ls", `not:folder:"Tech/Go lang"`)
	p.want("lektor-fetch update alo\t", "lektor-fetch", "update", "Alone")
	p.want("lektor-view ls not:is:unr\t", "lektor-view", "ls", "not:is:unread")
	p.want("lektor-view ls --sort rel\t", "lektor-view", "ls", "--sort", "relevance")
	p.want("lektor-fetch import not\t", "lektor-fetch", "import", "notes.txt")
}

func TestBashCompletes(t *testing.T) {
	p := newPrompt(t, "bash", "PS1=ready\nargs() { printf '%s\\0' \"$@\" >\"$OUT.new\"; mv \"$OUT.new\" \"$OUT\"; }\n. \"$FILE\"\n", "lektor.bash", "--noprofile", "--rcfile", "RC", "-i")
	p.words()
	p.want("lektor-fetch update 'Ki\t", "lektor-fetch", "update", `Kim's feed: a "blog"`)
	p.want("lektor-fetch update \"Ki\t", "lektor-fetch", "update", `Kim's feed: a "blog"`)
	p.want("lektor-fetch update 'x\t", "lektor-fetch", "update", hostileTitle)
	p.want("lektor-view ls \"feed:Alo\t", "lektor-view", "ls", "feed:Alone")
	p.want("lektor-view ls 'query:\t", "lektor-view", "ls", `query:"Long reads"`)
	p.want("lektor-view ls folder:\\\"\t", "lektor-view", "ls", `folder:"Tech/Go lang"`)
	p.want("lektor-fetch ls --category=Tech/\t", "lektor-fetch", "ls", "--category=Tech/Go lang")
	p.want("./bin/lektor-fetch upd\t", "./bin/lektor-fetch", "update")
}

func TestZshCompletes(t *testing.T) {
	p := newPrompt(t, "zsh", "PS1=ready\nunsetopt zle_bracketed_paste prompt_sp beep bang_hist\nfpath=(\"$FDIR\" $fpath)\nautoload -Uz compinit\ncompinit -u -D\nbindkey -e\nunsetopt auto_menu\n"+
		"args() { printf '%s\\0' \"$@\" >\"$OUT.new\"; mv \"$OUT.new\" \"$OUT\"; }\n", "_lektor", "-i")
	p.words()
}

func TestFishCompletes(t *testing.T) {
	p := newPrompt(t, "fish", "set -g fish_greeting\nfunction fish_prompt; printf ready; end\nset -g fish_autosuggestion_enabled 0\nfunction args; printf '%s\\0' $argv >$OUT.new; mv $OUT.new $OUT; end\nsource $FILE\n", "lektor.fish", "-i")
	p.words()
}
