package fullscreen

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/lektordir/lektor/internal/app/viewer"
	"github.com/lektordir/lektor/internal/app/viewer/external"
	"github.com/lektordir/lektor/internal/app/viewer/tui/cells"
	"github.com/lektordir/lektor/internal/app/viewer/tui/page"
	command "github.com/lektordir/lektor/internal/app/viewer/undo"
	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/files/atomicfile"
	"github.com/lektordir/lektor/internal/files/values"
	"github.com/lektordir/lektor/internal/http/fetch"
	"github.com/lektordir/lektor/internal/http/httpmsg"
	"github.com/lektordir/lektor/internal/protocol/query"
	"github.com/lektordir/lektor/internal/read/entrystore"
	"github.com/lektordir/lektor/internal/read/undo"
	"github.com/lektordir/lektor/lektordir"
)

// outputBuffer collects the output and messages of a command, for the last line of the screen.
type outputBuffer struct{ out, messages bytes.Buffer }

// streams returns streams that write to the buffer and have no terminal.
func (t *outputBuffer) streams() *cmdline.Streams {
	return cmdline.NewStreams("lektor-view", strings.NewReader(""), &t.out, &t.messages)
}

// text returns the messages as one line.
func (t *outputBuffer) text() string {
	return strings.Join(linesOf(&t.messages, "lektor-view: "), "; ")
}

// linesOf returns messages without the name of the program before each.
func linesOf(messages *bytes.Buffer, name string) (lines []string) {
	for l := range strings.Lines(messages.String()) {
		lines = append(lines, strings.TrimPrefix(strings.TrimSpace(l), name))
	}
	return lines
}

// err returns an error with the messages before it, nil if there are neither.
func (t *outputBuffer) err(err error) error {
	switch messages := t.text(); {
	case messages == "":
		return err
	case err == nil:
		return errors.New(messages)
	default:
		return fmt.Errorf("%s; %w", messages, err)
	}
}

func (l *disk) Mark(ctx context.Context, refs []lektordir.Ref, set, unset string, done func()) ([]lektordir.Ref,
	error) {
	t := &outputBuffer{}
	m := undo.Moving(l.storeFor(t), "tui")
	var moved []lektordir.Ref
	for i, ref := range refs {
		if ctx.Err() != nil {
			break
		}
		if strings.Contains(set, "T") {
			doomed, err := m.WithOlder(ctx, ref)
			if err != nil {
				m.Failed(err)
			}
			m.RemoveAll(doomed, (*undo.Mover).Trash)
		} else {
			m.Announce(refs[i:], set, unset)
			to, err := m.SetFlags(ref, set, unset)
			switch {
			case err == nil:
				moved = append(moved, to)
			case !undo.Removed(err) || len(refs) == 1:
				m.Failed(err)
			}
		}
		done()
	}
	m.Close()
	return moved, t.err(ctx.Err())
}

func (l *disk) Undo(ctx context.Context) (string, []lektordir.Ref, error) {
	t := &outputBuffer{}
	err := command.Undo(ctx, command.Options{Common: l.o.Common}, t.streams())
	var moved []lektordir.Ref
	for path := range strings.Lines(t.out.String()) {
		if rel, err := filepath.Rel(l.dir.Path(), strings.TrimSuffix(path, "\n")); err == nil {
			if ref, err := lektordir.ParsePath(rel); err == nil {
				moved = append(moved, l.dir.Timed(ref))
			}
		}
	}
	if err != nil {
		return "", moved, t.err(err)
	}
	return t.text(), moved, nil
}

// savedDir holds the saved queries, a file each.
const savedDir = viewDir + "/query"

func (l *disk) Saved(context.Context) ([]entrystore.Saved, error) {
	return entrystore.SavedQueries(l.dir.Path())
}

func (l *disk) Save(_ context.Context, name, text string) error {
	if _, err := l.parse(text); err != nil {
		return err
	}
	if err := query.CheckName(name); err != nil {
		return err
	}
	if _, err := os.Lstat(l.dir.Join(savedDir, name)); err == nil {
		return fmt.Errorf("a saved query %s exists already", name)
	}
	return l.write(savedDir, name, text+"\n")
}

// write writes a file in a directory below etc/view, which it makes if it is missing.
func (l *disk) write(dir, name, text string) error {
	if err := atomicfile.NoLinks(l.dir.Path(), viewDir, dir); err != nil {
		return err
	}
	if err := os.MkdirAll(l.dir.Join(dir), 0o777); err != nil {
		return err
	}
	return atomicfile.Write(l.dir.Join(dir, name), []byte(text))
}

// viewDir holds the user's files of the keys and the look, and the settings of the screen that the reader remembers.
const viewDir, keysFile, lookFile, screenFile = "etc/view", "keys", "look", "screen"

// read returns the path of a file in viewDir, and its text; there is none if it does not exist.
func read(d *lektordir.Dir, name string) (path string, text []byte, err error) {
	path = d.Join(viewDir, name)
	text, err = atomicfile.Optional(atomicfile.Read(path, 1<<20))
	return path, text, err
}

func (l *disk) Look(_ context.Context, typed string) (*cells.Look, error) {
	path, text, err := read(l.dir, lookFile)
	return cells.ParseLook(path, append(text, typed...)), err
}

// settings returns the settings of the screen that Remember has saved.
func (l *disk) settings() (*values.Values, error) {
	_, text, err := read(l.dir, screenFile)
	return values.Parse(text, '='), err
}

func (l *disk) Remember(_ context.Context, name, value string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	// The file is read again, so that two readers lose a setting only if both save at once.
	v, err := l.settings()
	if err != nil {
		return err
	}
	v.Set(name, value)
	return l.write(viewDir, screenFile, string(v.Text()))
}

func (l *disk) Command(_ context.Context, ref lektordir.Ref, of page.Program,
	words []string) (argv, env []string, err error) {
	s := l.store()
	r := s.Record(ref)
	var a *external.Argv
	switch of {
	case page.Browser:
		url := words[0]
		if url == "" {
			url, err = viewer.PageOf(r)
		}
		if err == nil {
			argv, err = external.Browser.For(s, r, url)
		}
	case page.URLPlayer:
		argv, err = external.Player.For(s, r, words[0])
	case page.FilePlayer:
		argv, err = external.Player.Find()
		argv = append(argv, words...)
	case page.Clipboard:
		argv, err = external.Clipboard.Find()
	case page.Bookmarker:
		if a, err = external.Bookmarker(); err == nil {
			_, err = viewer.PageOf(r)
		}
	default:
		a, err = external.New(words)
	}
	if err == nil && a != nil {
		argv, err = a.For(r)
	}
	if err != nil {
		return nil, nil, err
	}
	return argv, external.Environ(s, r), nil
}

// Limits for fetching a picture, as the user waits for it.
const (
	pictureBytes = 20 << 20
	pictureTime  = 30 * time.Second
)

func (l *disk) Picture(ctx context.Context, ref lektordir.Ref, url string) ([]byte, error) {
	config := l.o.Fetch
	config.Gap, config.Deadline, config.MaxBytes, config.MaxDecoded = 0, pictureTime, pictureBytes, pictureBytes
	if !strings.HasPrefix(url, "http://") && !strings.HasPrefix(url, "https://") {
		return nil, errors.New("only pictures with http and https URLs can be shown")
	}
	client := fetch.NewClient(config)
	defer client.Close()
	feed := l.dir.FeedOf(ref)
	res, err := client.Get(ctx, &httpmsg.Request{URL: url, Origin: cmp.Or(feed.ID, feed.Link), Last: true})
	if err != nil {
		return nil, err
	}
	return res.Body, nil
}

// fetcherName is the program that makes every change of src/ for the reader.
const fetcherName = "lektor-fetch"

// Fetcher runs lektor-fetch in a session of its own, off the reader's terminal. It is never
// killed: SIGTERM ends it when the feeds that it is delivering are whole.
func (l *disk) Fetcher(ctx context.Context, in string, args []string, line func(string)) ([]string, error) {
	path, err := cmdline.Program(fetcherName)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, path, append([]string{"--dir", l.dir.Path()}, args...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.Stdin = strings.NewReader(in)
	var messages bytes.Buffer
	cmd.Stderr = &messages
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return nil, err
	}
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, math.MaxInt) // titles are from feeds
	for lines.Scan() {
		line(lines.Text())
	}
	err = cmd.Wait()
	var all []string
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && !exit.Exited() {
		all = append(all, fetcherName+": "+err.Error()) // the signal that killed it
	}
	return append(all, linesOf(&messages, fetcherName+": ")...), err
}
