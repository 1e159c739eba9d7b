package fulltext

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestExtract: any failure of the program is an error about the page, or about a missing program.
func TestExtract(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	extract := func(script string) (*Article, error) {
		path := filepath.Join(dir, Program)
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script+"\n"), 0o777); err != nil {
			t.Fatal(err)
		}
		return Extract(context.Background(), []byte("<p>page"), "http://a.example/", "text/html")
	}
	a, err := extract(`[ "$*" = "--json --url=http://a.example/ --content-type=text/html" ] && [ "$(cat)" = "<p>page" ] && echo '{"content":"<p>x","refresh":"http://b.example/"}'`)
	if err != nil || a.Content != "<p>x" || a.Refresh != "http://b.example/" {
		t.Errorf("got %+v, %v; want err == nil and a.Content == \"<p>x\" and a.Refresh == \"http://b.example/\"", a, err)
	}
	for script, want := range map[string]string{
		`echo "lektor-article: it is $(printf '\033')[31mbad" >&2; exit 1`: "it is",
		`kill -9 $$`:                            "killed",
		`echo '{"content":'`:                    "unexpected end",
		`echo no`:                               "invalid character",
		`yes`:                                   "too long",
		`head -c 1000000 /dev/zero >&2; exit 3`: "exit status 3",
	} {
		a, err := extract(script)
		if err == nil || !strings.Contains(err.Error(), want) || strings.ContainsAny(err.Error(), "\x1b\n\x00") || errors.As(err, new(*MissingError)) {
			t.Errorf("%s: %+v, %v", script, a, err)
		}
	}
	if err := os.Remove(filepath.Join(dir, Program)); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir)
	if _, err := Extract(context.Background(), nil, "http://a.example/", ""); !errors.As(err, new(*MissingError)) || Installed() == nil {
		t.Errorf("without the program: %v", err)
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	mine := errors.New("mine")
	if err := os.WriteFile(filepath.Join(dir, Program), []byte("#!/bin/sh\nwhile :; do :; done\n"), 0o777); err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(50*time.Millisecond, func() { cancel(mine) })
	if _, err := Extract(ctx, nil, "http://a.example/", ""); !errors.Is(err, mine) {
		t.Errorf("when it is stopped: %v", err)
	}
}
