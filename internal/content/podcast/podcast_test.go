package podcast

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/lektordir/lektor/lektordir"
)

// element returns an element; attributes are names and values in turn.
func element(name, text string, attributes ...string) lektordir.Element {
	e := lektordir.Element{Name: name, Text: text}
	for i := 0; i < len(attributes); i += 2 {
		e.Attributes = append(e.Attributes, lektordir.Attribute{Name: attributes[i], Value: attributes[i+1]})
	}
	return e
}

func TestFields(t *testing.T) {
	e := &lektordir.Entry{Duration: time.Hour + 2*time.Minute + 3*time.Second, Season: 2, Episode: 3, Elements: lektordir.Elements{
		element("podcast:liveItem", "", "status", "pending", "start", "2026-05-01T18:00:00Z"),
		element("itunes:episodeType", "bonus"), element("itunes:explicit", "yes"),
		element("podcast:season", "2", "name", "At night"), element("podcast:episode", "3"),
		element("podcast:person", "Wren", "href", "https://b.example/wren"), element("podcast:person", "Robin", "role", "guest"),
		element("podcast:alternateEnclosure", "", "type", "audio/opus", "bitrate", "16000.4", "title", "Low"),
		element("podcast:alternateEnclosure/podcast:source", "", "uri", "https://b.example/low.opus"),
		element("podcast:alternateEnclosure", "", "type", "video/mp4"),
		element("podcast:soundbite", "The hoot", "startTime", "33.833", "duration", "60"),
		element("podcast:transcript", "", "url", "https://b.example/3.vtt", "type", "text/vtt", "language", "en"),
		element("podcast:chapters", "", "url", "https://b.example/3.json"),
		element("podcast:socialInteract", "", "uri", "https://s.example/3"), element("podcast:socialInteract", "", "protocol", "disabled"),
		element("podcast:license", "cc-by-4.0"),
	}}
	var got []string
	for _, f := range Fields(e) {
		got = append(got, f.Name+": "+f.Value())
	}
	const want = `Live: pending, 2026-05-01T18:00:00Z
Duration: 1:02:03
Episode: season 2 (At night), episode 3, bonus
Explicit: yes
Person: https://b.example/wren (Wren, host)
Person: Robin, guest
Alternative: https://b.example/low.opus (audio/opus, 16 kbit/s, Low)
Alternative: video/mp4
Soundbite: 0:33, The hoot
Transcript: https://b.example/3.vtt (text/vtt, en)
Chapters: https://b.example/3.json
Discussion: https://s.example/3
License: cc-by-4.0`
	if text := strings.Join(got, "\n"); text != want {
		t.Errorf("got\n%s", text)
	}
	if list := Fields(&lektordir.Entry{}); len(list) > 0 {
		t.Errorf("of nothing: %v", list)
	}
}

// TestFeedFields: of a feed, its own properties come before those that entries have, too.
func TestFeedFields(t *testing.T) {
	list := lektordir.Elements{
		element("podcast:guid", "917393e3"), element("podcast:medium", "music"), element("podcast:locked", "yes", "owner", "ann@b.example"), element("itunes:explicit", "no"),
		element("podcast:person", "Wren"), element("podcast:funding", "Give", "url", "https://b.example/give"), element("podcast:podroll", ""),
		element("podcast:podroll/podcast:remoteItem", "", "feedGuid", "g1", "feedUrl", "https://f.example/feed", "title", "Frogs"), element("podcast:podroll/podcast:remoteItem", "", "feedUrl", "https://t.example/feed"),
		element("podcast:podroll/podcast:remoteItem", "", "feedGuid", "g3"), element("podcast:podroll/podcast:remoteItem", ""),
		element("itunes:category", "", "text", "Leisure"), element("itunes:category/itunes:category", "", "text", "Hobbies"), element("itunes:category/itunes:category", "", "text", "Games"), element("itunes:category", "", "text", "News"),
	}
	const want = `Category: Leisure, Hobbies, Games
Category: News
Medium: music
Locked: yes
GUID: 917393e3
Funding: https://b.example/give (Give)
Recommends: https://f.example/feed (Frogs)
Recommends: https://t.example/feed
Recommends: g3
Person: Wren, host`
	var got []string
	for _, f := range FeedFields(list) {
		got = append(got, f.Name+": "+f.Value())
	}
	if text := strings.Join(got, "\n"); text != want {
		t.Errorf("got\n%s", text)
	}
}

// TestChapters: a kept list comes before that of the feed. What is no list of chapters is ignored.
func TestChapters(t *testing.T) {
	e := &lektordir.Entry{Elements: lektordir.Elements{
		element("podcast:chapters", "", "url", "u"), element("psc:chapters", ""),
		element("psc:chapters/psc:chapter", "", "start", "00:03:20.500", "title", "Owls"),
		element("psc:chapters/psc:chapter", "", "start", "x", "title", "Start"),
		element("psc:chapters/psc:chapter", "", "start", "1"),
	}}
	for kept, want := range map[string]string{
		"":    "[{3m20.5s Owls} {0s Start}]",
		"[1]": "[{3m20.5s Owls} {0s Start}]",
		`{"version":"1.2.0","chapters":[{"startTime":0,"title":"Hello"},{"startTime":168.5,"title":" Frost ","img":"http://x"},{"startTime":9,"title":"Ad","toc":false},{"startTime":1e300,"title":"Late"},{"startTime":-5}]}`: "[{0s Hello} {2m48.5s Frost} {0s Late}]",
		// Times as texts, or missing.
		`{"chapters":[{"startTime":"12.5","title":"A"},{"startTime":"01:02:03","title":"B"},{"startTime":null,"title":"C"},{"title":"D"}]}`: "[{12.5s A} {1h2m3s B} {0s C} {0s D}]",
	} {
		if got := fmt.Sprint(Chapters(e, func(string) []byte { return []byte(kept) })); got != want {
			t.Errorf("%s: %s", kept, got)
		}
	}
	many := `{"chapters":[` + strings.Repeat(`{"title":"x"},`, 1999) + `{"title":"x"}]}`
	if got := len(Chapters(e, func(string) []byte { return []byte(many) })); got != maxChapters {
		t.Errorf("%d chapters", got)
	}
}

func TestTranscript(t *testing.T) {
	long := strings.Repeat("word ", longParagraph/5) + "end."
	for _, c := range []struct{ mime, kept, want, kind string }{
		{"text/plain", "Hello.\n", "Hello.\n", "text/plain"},
		{"text/html", "<p>Hello</p>", "<p>Hello</p>", "text/html"},
		{"text/vtt; charset=utf-8", "WEBVTT - x\r\n\r\nNOTE no\r\n\r\n1\r\n00:00.000 --> 00:02.000 align:start\r\n<v.loud Ann>Hi &amp; <i>bye</i>\r\nall.\r\n\r\n00:02.000 --> 00:03.000\r\n<v Bob>Yes.\r\n", "Ann: Hi & bye all.\n\nBob: Yes.", "text/plain"},
		{"application/x-subrip", "1\n00:00:00,000 --> 00:00:02,000\nOne\n\n2\n00:00:02,000 --> 00:00:03,000\ntwo.\n", "One two.", "text/plain"},
		{"application/srt", "1\n0 --> 1\n" + long + "\n\n2\n1 --> 2\nNext", long + "\n\nNext", "text/plain"},
		{"application/json", `{"version":"1.0.0","segments":[{"speaker":"Ann","startTime":0.5,"body":"Hi"},{"speaker":"Ann","body":"all."},{"speaker":"Bob","body":"Yes"},{"body":""}]}`, "Ann: Hi all.\n\nBob: Yes", "text/plain"},
		{"application/json", `[`, "", ""},
		{"text/vtt", "", "", ""},
	} {
		e := &lektordir.Entry{Elements: lektordir.Elements{element("podcast:transcript", "", "url", "other"), element("podcast:transcript", "", "url", "u", "type", c.mime)}}
		text, kind := Transcript(e, func(url string) []byte {
			if url != "u" {
				return nil
			}
			return []byte(c.kept)
		})
		if text != c.want || kind != c.kind {
			t.Errorf("%s: %q %q, want %q", c.mime, kind, text, c.want)
		}
	}
}
