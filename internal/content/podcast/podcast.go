// Package podcast shows what only podcasts have: numbers, persons, chapters and transcripts.
package podcast

import (
	"cmp"
	"encoding/json"
	"fmt"
	"html"
	"math"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/lektordir/lektor/internal/text/textfile"
	"github.com/lektordir/lektor/lektordir"
)

// Kept returns the file that was saved from a URL, nil if there is none.
type Kept func(url string) []byte

// Field is a property of an entry or a feed to show. Text or URL may be empty.
type Field struct{ Name, Text, URL string }

// Value returns the field as text.
func (f Field) Value() string {
	if f.URL == "" || f.Text == "" {
		return f.URL + f.Text
	}
	return f.URL + " (" + f.Text + ")"
}

// property is an element that is shown: the name of its field, the attribute that is a URL, and those that are
// texts, see value.
type property struct{ name, element, url, texts string }

// Elements of entries and feeds, and of feeds alone.
var (
	ofAll = []property{
		{"Explicit", "itunes:explicit", "", "explicit"},
		{"Person", "podcast:person", "href", ". role"},
		{"Alternative", "podcast:alternateEnclosure", "source", "type bitrate lang title"},
		{"Soundbite", "podcast:soundbite", "", "startTime ."},
		{"Transcript", lektordir.Transcript, "url", "type language"},
		{"Chapters", lektordir.Chapters, "url", "type"},
		{"Discussion", "podcast:socialInteract", "uri", "accountId"},
		{"License", "podcast:license", "url", "."},
	}
	ofFeeds = []property{
		{"Category", "itunes:category", "", "text"},
		{"Medium", "podcast:medium", "", "."},
		{"Locked", "podcast:locked", "", "."},
		{"GUID", "podcast:guid", "", "."},
		{"Funding", "podcast:funding", "url", "."},
		{"Recommends", "podcast:podroll/podcast:remoteItem", "feedUrl", "title feedGuid"},
	}
)

// Fields returns the properties of an entry.
func Fields(e *lektordir.Entry) (list []Field) {
	live := e.Elements.Live()
	list = appendField(list, "Live", "", live.Get("status"), live.Get("start"), live.Get("end"))
	if e.Duration > 0 {
		list = appendField(list, "Duration", "", Clock(e.Duration))
	}
	number := func(what string, n int, name string) string {
		switch {
		case n > 0 && name != "":
			return fmt.Sprintf("%s %d (%s)", what, n, name)
		case n > 0:
			return fmt.Sprintf("%s %d", what, n)
		case name != "":
			return what + " (" + name + ")"
		}
		return ""
	}
	list = appendField(list, "Episode", "", number("season", e.Season, e.Elements.First("podcast:season").Get("name")),
		number("episode", e.Episode, e.Elements.First("podcast:episode").Get("display")),
		e.Elements.First("itunes:episodeType").Text)
	return properties(list, e.Elements, ofAll)
}

// FeedFields returns the properties of a feed by its elements.
func FeedFields(elements lektordir.Elements) []Field {
	return properties(properties(nil, elements, ofFeeds), elements, ofAll)
}

// properties adds the fields of elements.
func properties(list []Field, elements lektordir.Elements, kinds []property) []Field {
	for _, p := range kinds {
		for x, inside := range elements.Named(p.element) {
			var texts []string
			for name := range strings.FieldsSeq(p.texts) {
				texts = append(texts, value(x, inside, name))
			}
			list = appendField(list, p.name, value(x, inside, p.url), texts...)
		}
	}
	return list
}

// value returns an attribute of an element as it is shown; "." is the text of the element.
func value(x *lektordir.Element, inside lektordir.Elements, name string) string {
	text := x.Get(name)
	switch name {
	case ".":
		return x.Text
	case "explicit":
		if yes := strings.ToLower(x.Text); yes == "true" || yes == "yes" || yes == "explicit" {
			return "yes"
		}
	case "role":
		return cmp.Or(text, "host")
	case "source":
		return inside.First(x.Name + "/podcast:source").Get("uri")
	case "bitrate":
		bits, _ := strconv.ParseFloat(text, 64)
		if text = ""; bits > 0 {
			text = fmt.Sprintf("%.0f kbit/s", bits/1000)
		}
	case "startTime":
		return Clock(seconds(text))
	case "text": // of a category, which has others inside
		for c := range inside.Named(x.Name + "/itunes:category") {
			text += ", " + c.Get("text")
		}
	case "feedGuid":
		if x.Get("feedUrl") != "" {
			return ""
		}
	}
	return text
}

// appendField appends a field with the texts that are not empty, unless nothing is known.
func appendField(list []Field, name, url string, texts ...string) []Field {
	var some []string
	for _, t := range texts {
		if t = strings.TrimSpace(t); t != "" {
			some = append(some, t)
		}
	}
	if len(some) == 0 && url == "" {
		return list
	}
	return append(list, Field{name, strings.Join(some, ", "), url})
}

// Clock returns a time as M:SS or H:MM:SS.
func Clock(d time.Duration) string {
	s := int(d / time.Second)
	if s < 3600 {
		return fmt.Sprintf("%d:%02d", s/60, s%60)
	}
	return fmt.Sprintf("%d:%02d:%02d", s/3600, s/60%60, s%60)
}

// seconds reads a time: seconds, M:S or H:M:S, with a fraction.
func seconds(s string) time.Duration {
	total := 0.0
	for part := range strings.SplitSeq(s, ":") {
		n, err := strconv.ParseFloat(strings.TrimSpace(part), 64)
		if total = total*60 + n; err != nil || !(total >= 0 && total < 1e9) {
			return 0
		}
	}
	return time.Duration(math.Round(total * float64(time.Second)))
}

// Chapter is a part of an entry.
type Chapter struct {
	Start time.Duration
	Title string
}

// maxChapters is the maximum number of chapters of an entry; others are left out.
const maxChapters = 1000

// Chapters returns the chapters of an entry: those of a kept list, or else those in the feed.
func Chapters(e *lektordir.Entry, kept Kept) (list []Chapter) {
	add := func(start time.Duration, title string) {
		if title = strings.TrimSpace(title); title != "" && len(list) < maxChapters {
			list = append(list, Chapter{start, title})
		}
	}
	for x := range e.Elements.Named(lektordir.Chapters) {
		var document struct {
			Chapters []struct {
				StartTime any // a number, or a text with it
				Title     string
				TOC       *bool
			}
		}
		if json.Unmarshal(kept(x.Get("url")), &document) != nil {
			continue
		}
		for _, c := range document.Chapters {
			if c.TOC == nil || *c.TOC {
				add(seconds(fmt.Sprint(c.StartTime)), c.Title)
			}
		}
		if len(list) > 0 {
			return list
		}
	}
	for x := range e.Elements.Named(lektordir.ChapterList + "/psc:chapter") {
		add(seconds(x.Get("start")), x.Get("title"))
	}
	return list
}

// Transcript returns the first kept transcript of an entry and its type, which is text/html or
// text/plain; "" if there is none.
func Transcript(e *lektordir.Entry, kept Kept) (text, mime string) {
	for x := range e.Elements.Named(lektordir.Transcript) {
		data := kept(x.Get("url"))
		switch kind := textfile.BaseType(x.Get("type")); {
		case len(data) == 0:
			continue
		case kind == "text/html":
			return string(data), kind
		case strings.HasSuffix(kind, "json"):
			text = fromJSON(data)
		case kind == "text/vtt", strings.HasSuffix(kind, "srt"), strings.HasSuffix(kind, "subrip"):
			text = fromCues(string(data))
		default:
			text = string(data)
		}
		if strings.TrimSpace(text) != "" {
			return text, "text/plain"
		}
	}
	return "", ""
}

// speech is the text of a transcript. A paragraph ends where the speaker changes, or where it is long
// and a sentence ends.
type speech struct {
	strings.Builder
	speaker string
	length  int // of the paragraph
}

const longParagraph = 400

func (s *speech) add(speaker, text string) {
	text = strings.Join(strings.Fields(text), " ")
	switch {
	case text == "":
		return
	case s.Len() > 0 && (speaker != s.speaker || s.length == 0):
		s.WriteString("\n\n")
		s.length = 0
	case s.Len() > 0:
		s.WriteByte(' ')
	}
	if speaker != "" && speaker != s.speaker {
		s.WriteString(speaker + ": ")
	}
	s.speaker = speaker
	s.WriteString(text)
	if s.length += len(text); s.length > longParagraph && strings.ContainsAny(text[len(text)-1:], ".?!") {
		s.length = 0
	}
}

// fromJSON reads a transcript in JSON, as the podcast namespace describes it.
func fromJSON(data []byte) string {
	var document struct {
		Segments []struct{ Speaker, Body string }
	}
	if json.Unmarshal(data, &document) != nil {
		return ""
	}
	var s speech
	for _, part := range document.Segments {
		s.add(part.Speaker, part.Body)
	}
	return s.String()
}

// voice matches the tag of a speaker in WebVTT, and tag any tag.
var (
	voice = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`<v(?:\.[^ >]*)?[ \t]+([^>]*)>`) })
	tag   = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`<[^>]*>`) })
)

// fromCues reads the cues of WebVTT or SubRip: blocks of lines, of which one has the times.
func fromCues(text string) string {
	var s speech
	inCue := false
	for line := range strings.Lines(strings.ReplaceAll(text, "\r\n", "\n")) {
		switch line = strings.TrimSpace(line); {
		case line == "":
			inCue = false
		case strings.Contains(line, "-->"):
			inCue = true
		case inCue:
			speaker := s.speaker
			if m := voice().FindStringSubmatch(line); m != nil {
				speaker = strings.TrimSpace(m[1])
			}
			s.add(speaker, html.UnescapeString(tag().ReplaceAllString(line, "")))
		}
	}
	return s.String()
}
