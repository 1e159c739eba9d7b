package lektordir

import (
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lektordir/lektor/internal/dir/dirfs"
)

// Extras that other programs write are read as lektor-dir(5) says.
func TestExtras(t *testing.T) {
	for text, want := range map[string]Entry{
		"":                                               {},
		"link\thttp://a.example/":                        {Link: "http://a.example/"},
		"link\t\nlink\ta\nlink\tb\n":                     {Link: "a"},
		"link\ta\tb\tc\n":                                {Link: "a"},
		"Link\ta\n link\ta\nlink a\n":                    {},
		"mine\tx\n\n\t\tx\nlink\ta\n":                    {Link: "a"},
		"category\tb\ncategory\n":                        {Categories: []string{"b"}},
		"category\ta\\tb\ncategory\t\n":                  {Categories: []string{"a\tb"}},
		"category\tC:\\dir\n":                            {Categories: []string{`C:\dir`}},
		"summary\tone\\ntwo\\\\n\n":                      {Summary: "one\ntwo\\n"},
		"updated\tsoon\nupdated\t2026-01-31 12:00:00Z\n": {Updated: time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)},
		"enclosure\ta\nenclosure\tb\taudio/x\nenclosure\tc\t\t7\tmore\nenclosure\td\t\t-7\nenclosure\t\taudio/x\t9\n": {
			Enclosures: []Enclosure{{"a", "", -1}, {"b", "audio/x", -1}, {"c", "", 7}, {"d", "", -1}}},
		"source\turn:s\n": {Source: Source{ID: "urn:s"}},
		"episode\t0\nepisode\t 3 \nseason\t-1\nduration\t1h\nduration\t90\n": {Episode: 3, Duration: 90 * time.Second},
		"language\tde-AT\r\n": {Language: "de-AT\r"},
		"image\t\xff\n":       {Image: "\uFFFD"},
	} {
		d := &Dir{fs: dirfs.New(t.TempDir(), dirfs.Options{})}
		r := Ref{Feed: "feed", Unique: "1.a.b"}
		write(t, d.abs(r)+"/extras", text)
		got, err := d.ReadEntry(r, Extras)
		if err != nil || !reflect.DeepEqual(*got, want) {
			t.Errorf("%q is read as %+v, %v", text, got, err)
		}
		// Reading the fields one by one returns the same values.
		var each Entry
		for f := FieldLink; f <= FieldSeason; f <<= 1 {
			if got, err = d.ReadEntry(r, f); err != nil {
				t.Fatal(err)
			}
			each.Merge(got, f)
		}
		if !reflect.DeepEqual(each, want) {
			t.Errorf("%q is read one by one as %+v", text, each)
		}
	}
}

// If extras is not a regular file, reading it returns an error and does not block.
func TestExtrasPlanted(t *testing.T) {
	for what, plant := range map[string]func(path string) error{
		"a pipe":      func(path string) error { return unix.Mkfifo(path, 0o666) },
		"a directory": func(path string) error { return os.Mkdir(path, 0o777) },
	} {
		d, _ := newDir(t)
		r := deliver(t, d, sample("1", "A"))[0]
		os.Remove(d.abs(r) + "/extras")
		if err := plant(d.abs(r) + "/extras"); err != nil {
			t.Fatal(err)
		}
		e, err := d.ReadEntry(r, AllFields)
		if err == nil || !strings.Contains(err.Error(), r.Path()+"/extras") || e.Title == "" {
			t.Errorf("%s: %+v, %v", what, e, err)
		}
	}
}

func TestCheckExtras(t *testing.T) {
	for text, want := range map[string]string{
		"link\ta\nmine\t\nmore\tx\ty": "",
		"":                            "",
		"link a\n\n\tx\nlink\ta\n":    "3 of its lines are malformed",
		"link\t\xff\n":                "not valid UTF-8",
		"link\ta\x00\n":               "not valid UTF-8",
	} {
		d, _ := newDir(t)
		r := deliver(t, d, sample("1", "A"))[0]
		write(t, d.abs(r)+"/extras", text)
		ps, err := d.Check(ctx, true)
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case want == "" && len(ps) == 0:
		case len(ps) != 1 || want == "" || ps[0].Path != r.Path()+"/extras" || ps[0].Safe || !strings.Contains(ps[0].What, want):
			t.Errorf("%q: %v", text, ps)
		}
		if got := read(t, d.abs(r)+"/extras"); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
}
