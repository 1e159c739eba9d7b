package pages

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/testkit/must"
	"github.com/lektordir/lektor/internal/testkit/schema"
	"github.com/lektordir/lektor/lektordir"
)

// TestSchema: the schema in docs/ describes -o json of messages. It has the fields of the schema of
// entries, word for word, and two more.
func TestSchema(t *testing.T) {
	var view, mail struct{ Properties map[string]any }
	must.Do(json.Unmarshal(must.Get(os.ReadFile("../../../docs/lektor-view.schema.json")), &view))
	must.Do(json.Unmarshal(must.Get(os.ReadFile("../../../docs/lektor-pages.schema.json")), &mail))
	for name, property := range view.Properties {
		if fmt.Sprint(property) != fmt.Sprint(mail.Properties[name]) {
			t.Errorf("%s is %v of an entry, and %v of its message", name, property, mail.Properties[name])
		}
	}
	want := schema.Open(t, "lektor-pages.schema.json")
	var names []string
	for _, c := range mailColumns() {
		if !c.Extra || c.Full {
			names = append(names, c.Name)
		}
	}
	slices.Sort(names)
	if got := want.Properties(); !slices.Equal(got, names) {
		t.Errorf("the schema has\n%q\nand -o json\n%q", got, names)
	}

	home := t.TempDir()
	d := must.Get(lektordir.Create(filepath.Join(home, "feeds"), nil))
	must.Get(d.Deliver(t.Context(), &lektordir.Feed{ID: "http://a.example/", Name: "A"}, lektordir.UpdateNew,
		lektordir.Entry{ID: "urn:x:1", Title: "One", Content: []byte("<p>x"), Type: "text/html", PubDate: time.Unix(1700000000, 0), Link: "http://a.example/1", Enclosures: []lektordir.Enclosure{{URL: "http://a.example/1.mp3", Length: -1}}},
		lektordir.Entry{ID: "urn:x:2"}))
	for what, run := range map[string]func(Common, cmdline.PrinterOptions, *cmdline.Streams) error{
		"maildir": func(c Common, p cmdline.PrinterOptions, s *cmdline.Streams) error {
			return Maildir(t.Context(), MaildirOptions{Common: c, To: filepath.Join(home, "mail"), Print: p}, s)
		},
	} {
		var out, messages strings.Builder
		if err := run(Common{Dir: d.Path()}, cmdline.PrinterOptions{Format: "json"}, cmdline.NewStreams("lektor-pages", strings.NewReader(""), &out, &messages)); err != nil {
			t.Fatal(err, messages.String())
		}
		lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
		if len(lines) != 2 {
			t.Fatalf("%s: %q", what, out.String())
		}
		for _, line := range lines {
			if err := want.Check([]byte(line)); err != nil {
				t.Errorf("%s: %s\n%v", what, line, err)
			}
			var record struct{ File, MessageID string }
			must.Do(json.Unmarshal([]byte(line), &record))
			if text := string(must.Get(os.ReadFile(record.File))); !strings.Contains(strings.ToLower(text), "\nmessage-id: <"+strings.ToLower(record.MessageID)+">") {
				t.Errorf("%s: no message %s in %s", what, record.MessageID, record.File)
			}
			for _, name := range want.Required() {
				var without map[string]any
				must.Do(json.Unmarshal([]byte(line), &without))
				if delete(without, name); want.Check(must.Get(json.Marshal(without))) == nil {
					t.Errorf("a record without %s is not wrong", name)
				}
			}
		}
	}
}
