package external

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"

	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/files/atomicfile"
	"github.com/lektordir/lektor/internal/read/entrystore"
	"github.com/lektordir/lektor/internal/text/termsafe"
	"github.com/lektordir/lektor/lektordir"
)

// schemesFile lists the schemes of URLs that may be passed to programs besides http and https, one
// a line.
const schemesFile = "etc/view/schemes"

// Helper is a program that opens URLs, a browser or a player, or one that reads its standard input.
type Helper struct {
	what      string
	variables []string // environment variables that may name it
	several   bool     // a variable may hold several programs, separated by colons
	others    []string // programs to try if no variable is set, with their options
}

// Browser, Player and Clipboard are the helpers. Clipboard copies its standard input.
var (
	Clipboard = &Helper{"clipboard program", []string{"LEKTOR_CLIPBOARD"}, false, nil}
	Browser   = &Helper{"browser", []string{"LEKTOR_BROWSER", "BROWSER"}, true,
		[]string{"xdg-open", "x-www-browser", "www-browser", "firefox", "chromium", "w3m", "lynx"}}
	Player = &Helper{"player", []string{"LEKTOR_PLAYER"}, false,
		[]string{"mpv --save-position-on-quit", "vlc", "mplayer", "ffplay"}}
)

// HandOver runs a helper with a URL of an entry, and waits for it to end. set may change the
// command before it starts.
func (h *Helper) HandOver(ctx context.Context, s *entrystore.Store, r *entrystore.Record, url string,
	set func(*exec.Cmd)) error {
	argv, err := h.For(s, r, url)
	if err != nil {
		return err
	}
	cmd := Command(ctx, s, r, argv...)
	set(cmd)
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w", argv[0], err)
	}
	return nil
}

// For returns the command of a helper for a URL of an entry. The player gets the file that was saved from the URL, if
// there is one. It fails if the scheme of the URL is not allowed.
func (h *Helper) For(s *entrystore.Store, r *entrystore.Record, u string) ([]string, error) {
	if path := r.Saved(u); h == Player && path != "" {
		u = path
	} else if link, err := allowed(s.Dir, u); err == nil {
		u = link
	} else {
		return nil, err
	}
	argv, err := h.Find()
	if err != nil {
		return nil, err
	}
	return with(argv, u), nil
}

// Find returns the command of a helper without the URL.
func (h *Helper) Find() ([]string, error) {
	for _, name := range h.variables {
		value := strings.TrimSpace(os.Getenv(name))
		if value == "" {
			continue
		}
		texts := []string{value}
		if h.several {
			texts = strings.Split(value, ":")
		}
		for _, text := range texts {
			argv, err := cmdline.Words(text)
			if err != nil {
				return nil, fmt.Errorf("%s is %s: %w", name, value, err)
			}
			if len(argv) == 0 {
				continue
			}
			if _, err := exec.LookPath(argv[0]); err == nil {
				return argv, nil
			}
		}
		return nil, cmdline.Hint(fmt.Errorf("%s is %s, but there is no such program", name, value),
			"set it to a program that exists, with its arguments; it is not run by a shell")
	}
	others := h.others
	if runtime.GOOS == "darwin" {
		others = append([]string{"open"}, others...) // on other systems, open is another program
	}
	for _, name := range others {
		argv := strings.Fields(name)
		if _, err := exec.LookPath(argv[0]); err == nil {
			return argv, nil
		}
	}
	return nil, cmdline.Hint(fmt.Errorf("no %s was found", h.what), "set the variable %s to one", h.variables[0])
}

// bookmarkVariable names the command that bookmarks an entry.
const bookmarkVariable = "LEKTOR_BOOKMARK"

// Bookmarker returns the user's command that bookmarks an entry. If it has no templates, it gets
// the URL and the title as its last arguments.
func Bookmarker() (*Argv, error) {
	text := os.Getenv(bookmarkVariable)
	words, err := cmdline.Words(text)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s is %s: %w", bookmarkVariable, text, err)
	case len(words) == 0:
		return nil, cmdline.Hint(errors.New("no command for bookmarks is set"),
			"set the variable %s to one; it gets the URL and the title of an entry", bookmarkVariable)
	case !strings.Contains(text, "{{"):
		words = append(words, "{{.url}}", "{{.title}}")
	}
	a, err := New(words)
	if err != nil {
		return nil, fmt.Errorf("%s is %s: %w", bookmarkVariable, text, err)
	}
	return a, nil
}

// with adds a URL to a command: in the place of %s, or as the last argument.
func with(argv []string, u string) []string {
	argv = slices.Clone(argv)
	found := false
	for i, w := range argv {
		if i > 0 && strings.Contains(w, "%s") {
			argv[i] = strings.ReplaceAll(w, "%s", u)
			found = true
		}
	}
	if !found {
		argv = append(argv, u)
	}
	return argv
}

// allowed returns a URL in a form that is safe to pass to a program. It fails unless the scheme is
// http, https or one in schemesFile. The result begins with a letter, so that it is not an option,
// and characters that are special in a shell script with bad quoting are escaped.
func allowed(d *lektordir.Dir, text string) (string, error) {
	text = strings.TrimSpace(text)
	u, err := url.Parse(text)
	if err != nil {
		return "", fmt.Errorf("%s is not a URL", termsafe.Brief(text))
	}
	switch scheme := strings.ToLower(u.Scheme); {
	case scheme == "http" || scheme == "https":
		if u.Host == "" {
			return "", fmt.Errorf("%s is not a URL", termsafe.Brief(text))
		}
	case scheme == "":
		return "", fmt.Errorf("%s is not a URL", termsafe.Brief(text))
	default:
		list, err := schemes(d)
		if err != nil {
			return "", err
		}
		if !slices.Contains(list, scheme) {
			err := fmt.Errorf("cannot open %s: its scheme is not allowed", termsafe.Brief(text))
			return "", cmdline.Hint(err, "to allow it, add a line %s to %s", scheme, d.Join(schemesFile))
		}
	}
	var b strings.Builder
	for _, c := range []byte(text) {
		if c <= ' ' || c == 0x7f || strings.IndexByte("\"'<>\\^`{|}", c) >= 0 {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String(), nil
}

// schemes returns the schemes in schemesFile.
func schemes(d *lektordir.Dir) ([]string, error) {
	data, err := atomicfile.Optional(atomicfile.Read(d.Join(schemesFile), entrystore.MaxRules))
	var list []string
	for line := range strings.Lines(string(data)) {
		line = strings.ToLower(strings.TrimSuffix(strings.TrimSpace(line), ":"))
		if line != "" && line[0] != '#' {
			list = append(list, line)
		}
	}
	return list, err
}
