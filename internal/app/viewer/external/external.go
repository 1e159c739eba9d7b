// Package external runs commands of the user for entries, without a shell: what strangers
// wrote is an argument or stands in the environment, and is never a part of a command's
// text.
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

	"github.com/lektordir/lektor/internal/command"
	"github.com/lektordir/lektor/internal/entries"
	"github.com/lektordir/lektor/internal/feedurl"
	"github.com/lektordir/lektor/internal/termsafe"
	"github.com/lektordir/lektor/lektordir"
)

// Argv are the arguments of a command that is run for entries. Those that are
// templates, as of -o, are made of each.
type Argv struct {
	words   []string
	columns []*command.Printer[*entries.Record] // nil for a word that is no template
	made    []*bytes.Buffer
}

// New prepares a command. The error is a [*command.UsageError].
func New(words []string) (*Argv, error) {
	if len(words) == 0 || words[0] == "" {
		return nil, command.Usagef("there is no command to run")
	}
	a := &Argv{words: words, columns: make([]*command.Printer[*entries.Record], len(words)), made: make([]*bytes.Buffer, len(words))}
	for i, w := range words {
		if !strings.Contains(w, "{{") {
			continue
		}
		if i == 0 {
			return nil, command.Usagef("%s: an entry does not say which command is run", w)
		}
		a.made[i] = &bytes.Buffer{}
		var err error
		if a.columns[i], err = command.NewPrinter(a.made[i], command.PrinterOptions{Format: w, Nul: true}, entries.Columns()); err != nil {
			return nil, err
		}
	}
	return a, nil
}

// maxArgument is the longest argument and variable, in bytes. A system takes a little
// more; what is longer is a stranger's joke.
const maxArgument = 64 << 10

// For makes the arguments for an entry. One that the entry made begins with no minus, as
// that would be an option: it gets a space in front.
func (a *Argv) For(r *entries.Record) ([]string, error) {
	args := make([]string, len(a.words))
	for i, w := range a.words {
		p := a.columns[i]
		if p == nil {
			args[i] = w
			continue
		}
		a.made[i].Reset()
		if err := p.Print(r); err != nil {
			return nil, err
		}
		if err := p.Flush(); err != nil {
			return nil, err
		}
		arg := short(strings.TrimSuffix(a.made[i].String(), "\x00"))
		if strings.HasPrefix(arg, "-") && !strings.HasPrefix(w, "-") {
			arg = " " + arg
		}
		args[i] = arg
	}
	return args, nil
}

// short cuts off what is more than a system takes, and makes it one that it takes.
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

// Environ is what a command that works on an entry finds in its environment. The manual
// lists it.
func Environ(s *entries.Store, r *entries.Record) []string {
	e := r.Get(lektordir.FieldID | lektordir.FieldLink | lektordir.FieldTitle | lektordir.FieldPubDate | lektordir.FieldEnclosures | lektordir.FieldCategories)
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

// Words are the command and its arguments, of which some may be templates.
func (a *Argv) Words() []string { return a.words }

// Command prepares a command that is told of an entry. It ends with ctx, by SIGTERM
// first, and prints where we do.
func Command(ctx context.Context, s *entries.Store, r *entries.Record, args ...string) *exec.Cmd {
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

// Run runs the command for an entry, and its error says how it failed. What it prints goes
// to out, or if that is nil where ours goes.
func (a *Argv) Run(ctx context.Context, s *entries.Store, r *entries.Record, out io.Writer) error {
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
