package tui

import (
	"bytes"
	"context"
	"image"
	"image/color"
	"image/png"
	"strings"
	"testing"

	"golang.org/x/term"

	"github.com/lektordir/lektor/internal/app/viewer/tui/page"
	"github.com/lektordir/lektor/internal/testkit/terminal"
	"github.com/lektordir/lektor/lektordir"
)

// broken is a disk that panics when it reads a page.
type broken struct{ *memory }

func (broken) Page(context.Context, lektordir.Ref, int, bool) (*page.Entry, error) { panic("a defect") }

// A defect ends the reader, and leaves the terminal as it was.
func TestPanic(t *testing.T) {
	d := broken{newMemory(3)}
	close(d.gate)
	tty := terminal.Open(t, 80, 24)
	before, err := term.GetState(int(tty.TTY.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	o := usual(Options{In: tty.TTY, Out: tty.TTY, Keys: ParseKeys("test", nil), Width: 80})
	go func() { ended <- Run(t.Context(), d, o) }()
	tty.Await("Title 02")
	tty.Type("l\r")
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "defect") {
		t.Errorf("%v", err)
	}
	after, err := term.GetState(int(tty.TTY.Fd()))
	if err != nil || *after != *before {
		t.Errorf("the terminal is not as it was (%v)", err)
	}
	seen := tty.Output()
	if !strings.Contains(seen, "\x1b[?1049l") || strings.LastIndex(seen, "\x1b[?25h") < strings.LastIndex(seen, "\x1b[?25l") {
		t.Errorf("the screen is not restored: %q", seen[max(0, len(seen)-200):])
	}
}

// A reader that is ended while it starts restores the terminal, in the goroutine that was
// setting it up.
func TestEndedEarly(t *testing.T) {
	for i := range 30 {
		d := newMemory(3)
		close(d.gate)
		tty := terminal.Open(t, 80, 24)
		before, err := term.GetState(int(tty.TTY.Fd()))
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		o := usual(Options{In: tty.TTY, Out: tty.TTY, Keys: ParseKeys("test", nil), Width: 80})
		go func() { ended <- Run(ctx, d, o) }()
		if i%3 > 0 {
			tty.Await([]string{"", "\x1b[c", "\x1b[?1049h"}[i%3])
		}
		cancel()
		if err := <-ended; err == nil {
			t.Error("it ended by itself")
		}
		if after, err := term.GetState(int(tty.TTY.Fd())); err != nil || *after != *before {
			t.Errorf("the terminal is not as it was (%v)", err)
		}
	}
}

// A terminal that reports sixel or kitty graphics shows a picture when the key is pressed. The
// question is one that other terminals do not print.
func TestPicture(t *testing.T) {
	img := image.NewNRGBA(image.Rect(0, 0, 500, 250))
	for x := range 500 {
		img.Set(x, 10, color.NRGBA{R: 255, A: 255})
	}
	var file bytes.Buffer
	if err := png.Encode(&file, img); err != nil {
		t.Fatal(err)
	}
	const sixel, kitty, none = "\x1bP0;1", "\x1b_Gf=100,q=2", ""
	for answer, want := range map[string]string{
		"\x1b[?62;4;22;28;29c":                    sixel, // foot
		"\x1b[?63;1;2;4;6;9;15;22c":               sixel, // xterm -ti vt340
		"\x1b[?65;4;6;18;22;52c":                  sixel, // wezterm, which does not answer kitty's question
		"\x1b[?1;2;4c":                            sixel, // tmux in one of these
		"\x1b_Gi=31;OK\x1b\\\x1b[?62;52c":         kitty, // kitty
		"\x1b_Gi=31;OK\x1b\\\x1b[?62;1;4c":        kitty, // konsole, which has both
		"\x1b_Gi=31;ENOTSUPPORTED\x1b\\\x1b[?62c": none,
		"\x1b_Gi=7;OK\x1b\\\x1b[?62c":             none, // about another picture
		"\x1b[?64;1;2;6;9;15;16;17;18;21;22;28c":  none, // xterm
		"\x1b[?1;2c":                              none, // tmux, screen, VTE's console
		"\x1b[?6c":                                none, // Linux's console
		"\x1b[?4;6c":                              none, // a VT132, whose class is 4
		"\x1b[?c":                                 none,
		"":                                        none, // silence
	} {
		d := illustrated{newMemory(1), file.Bytes()}
		close(d.gate)
		tty := terminal.Open(t, 60, 12)
		ended := make(chan error, 1)
		o := usual(Options{In: tty.TTY, Out: tty.TTY, Keys: ParseKeys("test", nil), Width: 80, Getenv: func(string) string { return "xterm" }})
		ctx, cancel := context.WithCancel(t.Context())
		go func() { ended <- Run(ctx, d, o) }()
		tty.Await("\x1b[c")
		tty.Type(answer)
		tty.Await("Title 00")
		tty.Type("l\r")
		tty.Await("word")
		tty.Type("i")
		if want == "" {
			want = "this terminal cannot show pictures"
		}
		tty.Await(want)
		tty.Type("x")
		tty.Type(":q\r")
		if err := <-ended; err != nil {
			t.Errorf("%v", err)
		}
		cancel()
	}
}

// illustrated is a disk that has a picture.
type illustrated struct {
	*memory
	data []byte
}

func (p illustrated) Picture(context.Context, lektordir.Ref, string) ([]byte, error) {
	return p.data, nil
}
