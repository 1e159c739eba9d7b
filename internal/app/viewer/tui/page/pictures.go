package page

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/color"
	_ "image/gif" // decoders for encode
	_ "image/jpeg"
	_ "image/png"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	uv "github.com/charmbracelet/ultraviolet"
	"github.com/charmbracelet/x/ansi"
	"github.com/charmbracelet/x/ansi/kitty"
	"github.com/charmbracelet/x/ansi/sixel"

	"github.com/lektordir/lektor/internal/app/viewer/tui/cells"
	"github.com/lektordir/lektor/internal/app/viewer/tui/part"
)

// Pictures shows pictures of entries, by the graphics protocols of the terminal.
type Pictures struct {
	*part.Env
	Disk Disk
	// Pixels returns the size of the screen for pictures, in pixels.
	Pixels func() (width, height int)

	On      bool // a picture is shown
	Caption string

	kitty, sixel bool
	number       int // index of the picture in its entry, from 0
}

// Can reports whether the terminal shows pictures.
func (p *Pictures) Can() bool { return p.kitty || p.sixel }

// Questions to the terminal, and kitty's command to delete pictures. A terminal with kitty's
// protocol answers askKitty; all terminals answer askDevice, which lists sixel if they have it.
const (
	askedKitty = 31 // the picture id of askKitty

	askKitty  = "\x1b_Gi=31,s=1,v=1,a=q,t=d,f=24;AAAA\x1b\\"
	dropKitty = "\x1b_Ga=d,d=A\x1b\\"
	askDevice = ansi.RequestPrimaryDeviceAttributes
)

// Ask asks the terminal for its graphics protocols. It omits askKitty for multiplexers,
// which take it for a title, and for the Linux console, which prints it.
func (p *Pictures) Ask(getenv func(string) string) tea.Cmd {
	ask := askDevice
	name := getenv("TERM")
	if getenv("TMUX") == "" && getenv("STY") == "" && !strings.HasPrefix(name, "screen") &&
		!strings.HasPrefix(name, "tmux") && name != "linux" {
		ask = askKitty + ask
	}
	return tea.Raw(ask)
}

// Answer takes an answer of the terminal; it ignores other messages.
func (p *Pictures) Answer(msg tea.Msg) {
	switch msg := msg.(type) {
	case uv.KittyGraphicsEvent:
		p.kitty = msg.Options.ID == askedKitty && string(msg.Payload) == "OK"
	case uv.PrimaryDeviceAttributesEvent:
		// The first number is the class of the terminal, and 4 means a VT132 there.
		p.sixel = len(msg) > 1 && slices.Contains(msg[1:], 4)
	}
}

// settle is the delay before a picture is drawn, so that the screen is blank by then.
const settle = time.Second / 12

// Show fetches a picture of the open entry and shows it: first the first one, then the next,
// or the one of the count. Pictures are fetched for this key only.
func (p *Pictures) Show(of *Page, g part.Given) part.Effects {
	number, n := 0, len(of.Entry.Pictures)
	if p.On {
		number = p.number + 1
	}
	if g.Count > 0 {
		number = g.Count - 1
	}
	switch {
	case n == 0:
		return p.Say("the entry has no pictures")
	case !p.Can():
		return p.Say("this terminal cannot show pictures (it has neither sixel nor kitty graphics); their links are in the text")
	case g.Count > n:
		return p.Say("the entry has %d pictures", n)
	case number >= n:
		return p.Drop()
	}
	drop := p.drop()
	url, ref := of.Entry.Pictures[number], of.Ref
	caption := cells.Plain(p.Trf("picture %d of %d: %s", number+1, n, url))
	waiting, kittyProtocol := caption+" …", p.kitty
	p.On, p.number, p.Caption = true, number, waiting
	width, height := p.Pixels()
	return part.Effects{part.Run(part.InOrder(drop, func() tea.Msg {
		data, err := p.Disk.Picture(p.Ctx, ref, url)
		shown := ""
		if err == nil {
			shown, err = encode(data, kittyProtocol, width, height)
		}
		return part.Then(func() part.Effects {
			switch {
			case waiting != p.Caption || !p.On:
				return nil
			case err != nil:
				return append(p.Fail(fmt.Errorf("%s: %w", url, err)), p.Drop()...)
			}
			p.Caption = caption
			return part.Effects{part.Run(p.After(settle, tea.RawMsg{Msg: "\x1b7\x1b[H" + shown + "\x1b8"}))}
		})
	}))}
}

// Drop shows the text again, if a picture is shown.
func (p *Pictures) Drop() part.Effects { return part.Effects{part.Run(p.drop())} }

// drop returns the command that shows the text again, nil if no picture is shown.
func (p *Pictures) drop() tea.Cmd {
	if !p.On {
		return nil
	}
	p.On = false
	if p.kitty {
		return part.InOrder(tea.Raw(dropKitty), tea.ClearScreen)
	}
	return tea.ClearScreen
}

// maxPixels is the size above which a picture is not decoded, as all its pixels would be in
// memory at once.
const maxPixels = 40 << 20

// encode shrinks a picture to at most width by height pixels, and encodes it for kitty's
// protocol or as sixel.
func encode(data []byte, kittyProtocol bool, width, height int) (string, error) {
	config, format, err := image.DecodeConfig(bytes.NewReader(data))
	if err != nil {
		return "", errors.New("the picture is not a PNG, JPEG or GIF")
	}
	if config.Width <= 0 || config.Height <= 0 || config.Width > maxPixels/config.Height {
		return "", fmt.Errorf("the picture is too large to be shown: %d by %d pixels", config.Width, config.Height)
	}
	img, _, err := image.Decode(bytes.NewReader(data))
	if err != nil {
		return "", fmt.Errorf("cannot decode the %s picture: %w", strings.ToUpper(format), err)
	}
	img = shrink(img, width, height)
	var b bytes.Buffer
	if kittyProtocol {
		o := kitty.Options{Action: kitty.TransmitAndPut, Format: kitty.PNG, Transmission: kitty.Direct, Quiet: 2,
			DoNotMoveCursor: true, Chunk: true}
		if err := kitty.EncodeGraphics(&b, img, &o); err != nil {
			return "", err
		}
		return b.String(), nil
	}
	if err := new(sixel.Encoder).Encode(&b, img); err != nil {
		return "", err
	}
	return ansi.SixelGraphics(0, 1, 0, b.Bytes()), nil
}

// shrink scales a picture down to at most width by height pixels. Each pixel is the mean of the
// pixels that it covers.
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
	to := image.NewRGBA(image.Rect(0, 0, tw, th))
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
			n := uint64((y1 - y0) * (x1 - x0))
			to.SetRGBA64(x, y, color.RGBA64{R: uint16(sum[0] / n), G: uint16(sum[1] / n), B: uint16(sum[2] / n),
				A: uint16(sum[3] / n)})
		}
	}
	return to
}
