package ess

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/text/termsafe"
)

// TestInterrupt checks that a command ends at once, even while it waits for a pipe.
func TestInterrupt(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Skip(err)
	}
	for name, run := range map[string]func(ctx context.Context, s *cmdline.Streams) error{
		"top, a pipe": func(ctx context.Context, s *cmdline.Streams) error {
			return Top(ctx, TopOptions{Documents: []string{fifo}, N: 1}, s)
		},
		"top, stdin": func(ctx context.Context, s *cmdline.Streams) error {
			return Top(ctx, TopOptions{Documents: []string{"-"}, N: 1}, s)
		},
		"decode, a pipe": func(ctx context.Context, s *cmdline.Streams) error {
			return Decode(ctx, DocumentOptions{Documents: []string{fifo}}, s)
		},
		"decode, stdin": func(ctx context.Context, s *cmdline.Streams) error {
			return Decode(ctx, DocumentOptions{}, s)
		},
		"checksum": func(ctx context.Context, s *cmdline.Streams) error {
			return Checksums(ctx, ChecksumOptions{Titles: []string{"-"}}, s)
		},
		"from a document": func(ctx context.Context, s *cmdline.Streams) error {
			return Build(ctx, BuildOptions{FromDocument: true, URL: "http://e.com/"}, s)
		},
	} {
		t.Run(name, func(t *testing.T) {
			in, w := io.Pipe()
			defer w.Close()
			ctx, cancel := context.WithCancelCause(t.Context())
			stopped := errors.New("stopped")
			s := cmdline.NewStreams("lektor-ess", cmdline.NewReader(ctx, in), io.Discard, io.Discard)
			done := make(chan error)
			go func() { done <- run(ctx, s) }()
			cancel(stopped)
			if err := <-done; !errors.Is(err, stopped) {
				t.Errorf("got %v; want errors.Is(err, stopped)", err)
			}
		})
	}
	// End every reader that still waits for the pipe.
	if fd, err := unix.Open(fifo, unix.O_RDWR|unix.O_NONBLOCK, 0); err == nil {
		t.Cleanup(func() { unix.Close(fd) })
	}
	_ = os.Remove(fifo)
}

// TestCheckOfAnOddName: the name of a document can neither split a line nor act on a terminal. For other
// programs it is unchanged.
func TestCheckOfAnOddName(t *testing.T) {
	name := filepath.Join(t.TempDir(), "a\x1b[31m\nb\x9b.ess")
	if err := os.WriteFile(name, []byte("x\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	for format, want := range map[string]string{"": termsafe.Line(name) + ": line 1, ", "document": name + "\n"} {
		var out bytes.Buffer
		o := DocumentOptions{Documents: []string{name}, Print: cmdline.PrinterOptions{Format: format}}
		if err := Check(t.Context(), o, cmdline.NewStreams("lektor-ess", nil, &out, io.Discard)); err == nil || !strings.HasPrefix(out.String(), want) {
			t.Errorf("%q: %v, %q", format, err, &out)
		}
	}
}
