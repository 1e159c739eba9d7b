package page

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"reflect"
	"testing"

	"github.com/lektordir/lektor/internal/app/viewer/tui/part"
	"github.com/lektordir/lektor/internal/app/viewer/tui/texts"
	"github.com/lektordir/lektor/lektordir"
)

// Without a program of the user, the terminal copies.
func TestCopy(t *testing.T) {
	none := func(string) string { return "" }
	p := &Programs{Env: &part.Env{Ctx: t.Context(), Printer: texts.New(none)}, Getenv: none}
	e := p.copy(lektordir.Ref{}, "URL", "http://x.example/")
	if v := reflect.ValueOf(e[1].(part.Run)()); v.Kind() != reflect.String || v.String() != "http://x.example/" {
		t.Errorf("%v", v)
	}
}

// Pictures are shrunk, and what is none is refused.
func TestEncode(t *testing.T) {
	img := image.NewNRGBA(image.Rect(0, 0, 500, 250))
	for x := range 500 {
		img.Set(x, 10, color.NRGBA{R: 255, A: 255})
	}
	var file bytes.Buffer
	if err := png.Encode(&file, img); err != nil {
		t.Fatal(err)
	}
	if got := shrink(img, 80, 80).Bounds(); got.Dx() != 80 || got.Dy() != 40 {
		t.Errorf("%v", got)
	}
	for _, bad := range []string{"", "GIF89a", "<svg onload=alert(1)/>", file.String()[:60]} {
		if _, err := encode([]byte(bad), false, 100, 100); err == nil {
			t.Errorf("%q is a picture", bad)
		}
	}
}
