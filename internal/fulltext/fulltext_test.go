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

// Whatever becomes of the program, it is an error about the page, or about the program
// if there is none; and never more.
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

func TestJudge(t *testing.T) {
	const story = "The council voted on Tuesday to close the bridge across the river for repairs until spring. Engineers found cracks in the pillars during their inspection, and the mayor said that waiting was out of the question."
	const consent = "We value your privacy. We and our partners store and access information on your device, such as unique identifiers, to personalise advertising, to measure audiences and to develop services. With your consent we use precise location data."
	for _, c := range []struct {
		name, article string
		own           Own
		refused       string
	}{
		{"longer", "<p>" + story, Own{"Bridge", "The council voted on Tuesday to close the bridge.", "", ""}, ""},
		{"no text in the feed", "<p>" + story, Own{Title: "Bridge"}, ""},
		{"a play on words", "<p>" + story, Own{Title: "Troubled water"}, ""},
		{"markup counts for nothing", "<p>Short.<span></span><span></span><span></span><span></span>", Own{Content: "<b>Not that short.</b>", Type: "text/html"}, "no longer"},
		{"the same", "<div> " + story, Own{Content: story}, "no longer"},
		{"none", "<img src=x>", Own{}, "no article"},
		{"consent", consent, Own{"Bridge closed", "The council voted on Tuesday to close the bridge across the river for repairs until spring.", "", ""}, "something else"},
		{"consent, by the summary", consent, Own{"Bridge closed", "", "", "The council voted on Tuesday to close the bridge across the river for repairs until spring."}, "something else"},
		{"inflected", "Der Stadtrat beschloss, dass die alten Brücken über den Fluss gesperrt werden. Bei der Prüfung fanden Ingenieure Risse in den Pfeilern, und die Bürgermeisterin warnte davor, zu warten. Die Reparaturen dauern Monate.",
			Own{Title: "Brücke gesperrt", Content: "Stadträtin warnt: Reparatur der Brücke dauert; Ingenieurin prüfte Pfeiler monatelang, Bürgermeister abwesend, Gespräche vertagt."}, ""},
		{"without spaces", strings.Repeat("市議会は火曜日に古い橋を閉鎖することを決定した。", 5), Own{Title: "橋の閉鎖", Content: "市の橋、春まで通行止め。交通への影響は大きいとみられ、住民は説明を求めている。"}, ""},
		{"few words", strings.Repeat("An entirely different text. ", 10), Own{Title: "Bridge closed", Content: "Read more"}, ""},
		{"broken UTF-8", "caf\xe9 " + story, Own{Content: "\xff\xfe"}, ""},
	} {
		got := Judge(&Article{Content: c.article}, c.own)
		if (got == "") != (c.refused == "") || !strings.Contains(got, c.refused) {
			t.Errorf("%s: %q, want %q", c.name, got, c.refused)
		}
	}
}
