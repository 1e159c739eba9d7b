package tui

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"image"
	_ "image/gif"  // a picture's format
	_ "image/jpeg" // and another
	"image/png"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	uv "github.com/charmbracelet/ultraviolet"
	"github.com/charmbracelet/x/ansi"
	"github.com/charmbracelet/x/ansi/sixel"
	"github.com/lektordir/lektor/internal/units"
	"github.com/lektordir/lektor/lektordir"
)

// graphics is what the terminal can show of pictures, and the one that is shown.
type graphics struct {
	kitty, sixel bool
	picture      *int // which of the entry's; nil for none
	next         int  // the one that the key shows
	caption      string
	seq          int
}

func (g *graphics) can() bool { return g.kitty || g.sixel }

// A terminal that knows kitty's protocol answers this, and then as all do what it is;
// those that know sixel say so there.
const (
	askedKitty = 31 // a picture that there is not

	askKitty  = "\x1b_Gi=31,s=1,v=1,a=q,t=d,f=24;AAAA\x1b\\"
	dropKitty = "\x1b_Ga=d,d=A\x1b\\"
	askDevice = ansi.RequestPrimaryDeviceAttributes
)

// askGraphics asks the terminal what it can show. A multiplexer takes kitty's question
// for a title, and a console prints it.
func (m *model) askGraphics() tea.Cmd {
	ask := askDevice
	name := m.o.env("TERM")
	if m.o.env("TMUX") == "" && m.o.env("STY") == "" && !strings.HasPrefix(name, "screen") && !strings.HasPrefix(name, "tmux") && name != "linux" {
		ask = askKitty + ask
	}
	return tea.Raw(ask)
}

type pictureMsg struct {
	seq     int
	data    string // for the terminal
	caption string
	err     error
}

func (m *model) graphicsMsg(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case uv.KittyGraphicsEvent:
		m.shown.kitty = msg.Options.ID == askedKitty && string(msg.Payload) == "OK"
	case uv.PrimaryDeviceAttributesEvent:
		// The first says which terminal it is, or says it is: 4 is a VT132 there.
		m.shown.sixel = len(msg) > 1 && slices.Contains(msg[1:], 4)
	case pictureMsg:
		g := &m.shown
		if msg.seq != g.seq || g.picture == nil {
			return nil
		}
		if msg.err != nil {
			m.fail(msg.err)
			return m.dropPicture()
		}
		g.caption = msg.caption
		// Drawn when the screen is blank, which takes a frame or two.
		draw := tea.Tick(settle, func(time.Time) tea.Msg {
			return tea.RawMsg{Msg: "\x1b7\x1b[H" + msg.data + "\x1b8"}
		})
		return draw
	}
	return nil
}

// settle is longer than a screen takes to be drawn.
const settle = 10 * frame

// picture fetches a picture of the entry and shows it: the first one, then the next; with
// a number that one. Nothing is fetched but by this key.
func (m *model) picture(n int) tea.Cmd {
	return m.onPage(func(p *Page, ref lektordir.Ref) tea.Cmd {
		g := &m.shown
		switch {
		case len(p.Pictures) == 0:
			m.say("the entry has no pictures")
			return nil
		case !g.can():
			m.say("this terminal shows no pictures (neither sixel nor kitty's); their links are in the text")
			return nil
		case n > len(p.Pictures):
			m.say("the entry has %s", units.Count(len(p.Pictures), "picture"))
			return nil
		case n > 0:
			g.next = n - 1
		}
		at := g.next
		if at >= len(p.Pictures) {
			return m.dropPicture()
		}
		cmd := m.clearPicture()
		g.picture, g.next = &at, at+1
		g.seq++
		url := p.Pictures[at]
		caption := Plain(fmt.Sprintf("picture %d of %d: %s", at+1, len(p.Pictures), url))
		g.caption = caption + " …"
		ctx, d, seq, kitty := m.ctx, m.disk, g.seq, g.kitty
		columns, lines := m.width, m.height-1
		cell := m.o.cell
		return inOrder(cmd, func() tea.Msg {
			data, err := fetchPicture(ctx, d, ref, url, kitty, columns, lines, cell)
			if err != nil {
				err = fmt.Errorf("%s: %w", url, err)
			}
			return pictureMsg{seq, data, caption, err}
		})
	})
}

// clearPicture takes a picture off the screen.
func (m *model) clearPicture() tea.Cmd {
	if m.shown.picture == nil {
		return nil
	}
	m.shown.picture = nil
	if m.shown.kitty {
		return inOrder(tea.Raw(dropKitty), tea.ClearScreen)
	}
	return tea.ClearScreen
}

// dropPicture goes back to the text.
func (m *model) dropPicture() tea.Cmd {
	m.shown.next = 0
	return m.clearPicture()
}

// A picture that is larger than this is not decoded: its colours are in memory at once.
const maxPixels = 40 << 20

// fetchPicture gives what shows a picture on so many columns and lines.
func fetchPicture(ctx context.Context, d Disk, ref lektordir.Ref, url string, kitty bool, columns, lines int, cell func() (int, int)) (string, error) {
	data, err := d.Picture(ctx, ref, url)
	if err != nil {
		return "", err
	}
	width, height := cell()
	return encodePicture(data, kitty, columns*width, lines*height)
}

// encodePicture makes a picture fit, and puts it into what the terminal understands.
func encodePicture(data []byte, kitty bool, width, height int) (string, error) {
	config, format, err := image.DecodeConfig(bytes.NewReader(data))
	if err != nil {
		return "", errors.New("it is no PNG, JPEG or GIF")
	}
	if config.Width <= 0 || config.Height <= 0 || config.Width > maxPixels/config.Height {
		return "", fmt.Errorf("it is too large: %d by %d", config.Width, config.Height)
	}
	img, _, err := image.Decode(bytes.NewReader(data))
	if err != nil {
		return "", fmt.Errorf("it is no good %s: %w", format, err)
	}
	img = shrink(img, width, height)
	var b bytes.Buffer
	if !kitty {
		var six bytes.Buffer
		if err := new(sixel.Encoder).Encode(&six, img); err != nil {
			return "", err
		}
		return ansi.SixelGraphics(0, 1, 0, six.Bytes()), nil
	}
	var file bytes.Buffer
	if err := png.Encode(&file, img); err != nil {
		return "", err
	}
	text := base64.StdEncoding.EncodeToString(file.Bytes())
	const most = 4096 // of one message
	for first := true; first || text != ""; first = false {
		part := text[:min(most, len(text))]
		text = text[len(part):]
		more, how := 0, ""
		if text != "" {
			more = 1
		}
		if first {
			how = "a=T,f=100,q=2,C=1,"
		}
		fmt.Fprintf(&b, "\x1b_G%sm=%d;%s\x1b\\", how, more, part)
	}
	return b.String(), nil
}

// shrink gives a picture that is no larger, each point the mean of those it stands for.
func shrink(img image.Image, width, height int) image.Image {
	from := img.Bounds()
	w, h := from.Dx(), from.Dy()
	if w <= width && h <= height {
		return img
	}
	tw, th := width, max(1, h*width/w)
	if th > height {
		tw, th = max(1, w*height/h), height
	}
	to := image.NewNRGBA(image.Rect(0, 0, tw, th))
	for y := range th {
		y0, y1 := y*h/th, max((y+1)*h/th, y*h/th+1)
		for x := range tw {
			x0, x1 := x*w/tw, max((x+1)*w/tw, x*w/tw+1)
			var sum [4]uint64
			for sy := y0; sy < y1; sy++ {
				for sx := x0; sx < x1; sx++ {
					r, g, b, a := img.At(from.Min.X+sx, from.Min.Y+sy).RGBA()
					sum[0] += uint64(r)
					sum[1] += uint64(g)
					sum[2] += uint64(b)
					sum[3] += uint64(a)
				}
			}
			i := to.PixOffset(x, y)
			n := uint64((y1 - y0) * (x1 - x0))
			if alpha := sum[3] / n; alpha > 0 {
				for c := range 3 {
					to.Pix[i+c] = uint8(min(sum[c]/n*0xffff/alpha, 0xffff) >> 8)
				}
				to.Pix[i+3] = uint8(alpha >> 8)
			}
		}
	}
	return to
}
