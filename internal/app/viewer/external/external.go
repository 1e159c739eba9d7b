// Package external runs the user's commands for entries, without a shell. Untrusted text is passed
// in arguments and the environment, never in the text of a command.
package external

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/read/entrystore"
	"github.com/lektordir/lektor/internal/text/feedurl"
	"github.com/lektordir/lektor/internal/text/termsafe"
	"github.com/lektordir/lektor/lektordir"
)

// Argv is the arguments of a command that is run for entries. Arguments that are templates, as in
// -o, are filled in for each entry.
type Argv struct {
	words   []string
	columns []*cmdline.Printer[*entrystore.Record] // nil for a word that is not a template
	out     []*bytes.Buffer                        // output of columns
}

// New parses the templates of a command. The error is a [*cmdline.UsageError].
func New(words []string) (*Argv, error) {
	if len(words) == 0 || words[0] == "" {
		return nil, cmdline.Usagef("the command is missing")
	}
	a := &Argv{words: words, columns: make([]*cmdline.Printer[*entrystore.Record], len(words)),
		out: make([]*bytes.Buffer, len(words))}
	for i, w := range words {
		if !strings.Contains(w, "{{") {
			continue
		}
		if i == 0 {
			return nil, cmdline.Usagef("%s: the name of a command cannot be a template", w)
		}
		a.out[i] = &bytes.Buffer{}
		var err error
		if a.columns[i], err = cmdline.NewPrinter(a.out[i], cmdline.PrinterOptions{Format: w, Nul: true},
			entrystore.Columns()); err != nil {
			return nil, err
		}
	}
	return a, nil
}

// maxArgument is the maximum length of an argument or variable in bytes, a little less than systems
// accept.
const maxArgument = 64 << 10

// For returns the arguments for an entry. If the text of a template begins with a minus, a space
// is put in front, so that it is not taken for an option.
func (a *Argv) For(r *entrystore.Record) ([]string, error) {
	args := make([]string, len(a.words))
	for i, w := range a.words {
		p := a.columns[i]
		if p == nil {
			args[i] = w
			continue
		}
		a.out[i].Reset()
		if err := p.Print(r); err != nil {
			return nil, err
		}
		if err := p.Flush(); err != nil {
			return nil, err
		}
		arg := short(strings.TrimSuffix(a.out[i].String(), "\x00"))
		if strings.HasPrefix(arg, "-") && !strings.HasPrefix(w, "-") {
			arg = " " + arg
		}
		args[i] = arg
	}
	return args, nil
}

// short removes NUL bytes, and cuts text to maxArgument bytes at the end of a character.
func short(s string) string {
	s = strings.ReplaceAll(s, "\x00", "")
	if len(s) <= maxArgument {
		return s
	}
	s = s[:maxArgument]
	for len(s) > 0 {
		if r, n := utf8.DecodeLastRuneInString(s); r != utf8.RuneError || n != 1 {
			break
		}
		s = s[:len(s)-1]
	}
	return s
}

// Environ returns the environment variables that describe an entry. The manual lists them.
func Environ(s *entrystore.Store, r *entrystore.Record) []string {
	e := r.Get(lektordir.FieldID | lektordir.FieldLink | lektordir.FieldTitle |
		lektordir.FieldPubDate | lektordir.FieldEnclosures | lektordir.FieldCategories)
	var enclosure string
	if len(e.Enclosures) > 0 {
		enclosure = e.Enclosures[0].URL
	}
	env := []string{"LEKTORDIR=" + s.Dir.Path(), "LEKTOR_ENTRY=" + r.Path()}
	for _, f := range []struct{ name, value string }{
		{"TITLE", r.Title()},
		{"URL", r.URL()},
		{"FEED", r.Feed().Title()},
		{"FEEDID", feedurl.Public(r.Feed().ID)},
		{"AUTHOR", r.Author()},
		{"ID", e.ID},
		{"DATE", r.Date().UTC().Format(time.RFC3339)},
		{"FLAGS", r.Ref.Flags()},
		{"FOLDERS", strings.Join(s.Folders(r.Ref.Feed), ", ")},
		{"CATEGORIES", strings.Join(e.Categories, ", ")},
		{"ENCLOSURE", enclosure},
	} {
		env = append(env, "LEKTOR_"+f.name+"="+short(termsafe.Line(f.value)))
	}
	return env
}

// Words returns the command and its arguments, with the templates not filled in.
func (a *Argv) Words() []string { return a.words }

// Command returns a command with the environment of an entry and the output of s. When ctx ends, it
// gets SIGTERM, and is killed two seconds later.
func Command(ctx context.Context, s *entrystore.Store, r *entrystore.Record, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Env = append(os.Environ(), Environ(s, r)...)
	cmd.Stdout, cmd.Stderr = s.S.Out, s.S.Err
	if out := s.S.OutFile(); out != nil {
		cmd.Stdout = out
	}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 2 * time.Second
	return cmd
}

// Run runs the command for an entry. Its output goes to out, or to the output of s if out is nil.
func (a *Argv) Run(ctx context.Context, s *entrystore.Store, r *entrystore.Record, out io.Writer) error {
	args, err := a.For(r)
	if err != nil {
		return err
	}
	cmd := Command(ctx, s, r, args...)
	if out != nil {
		cmd.Stdout = out
	}
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s for %s: %w", args[0], r.Ref.Path(), err)
	}
	return nil
}
