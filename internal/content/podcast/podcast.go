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

	"github.com/lektordir/lektor/lektordir"
)

// Kept returns the file that was saved from a URL, nil if there is none.
type Kept func(url string) []byte

// Field is a property of an entry to show. Text or URL may be empty.
type Field struct{ Name, Text, URL string }

// Value returns the field as text.
func (f Field) Value() string {
	switch {
	case f.URL == "":
		return f.Text
	case f.Text == "":
		return f.URL
	}
	return f.URL + " (" + f.Text + ")"
}

// Fields returns the properties of an entry.
func Fields(e *lektordir.Entry) (list []Field) {
	add := func(name, url string, texts ...string) {
		if text := joined(texts...); text+url != "" {
			list = append(list, Field{name, text, url})
		}
	}
	live := e.Elements.Live()
	add("Live", "", live.Get("status"), live.Get("start"), live.Get("end"))
	if e.Duration > 0 {
		add("Duration", "", Clock(e.Duration))
	}
	number := func(what string, n int, name string) string {
		if n > 0 {
			what += " " + strconv.Itoa(n)
		} else if name == "" {
			return ""
		}
		if name != "" {
			what += " (" + name + ")"
		}
		return what
	}
	add("Episode", "", number("season", e.Season, e.Elements.First("podcast:season").Get("name")),
		number("episode", e.Episode, e.Elements.First("podcast:episode").Get("display")),
		e.Elements.First("itunes:episodeType").Text)
	switch strings.ToLower(e.Elements.First("itunes:explicit").Text) {
	case "true", "yes", "explicit":
		add("Explicit", "", "yes")
	}
	for x := range e.Elements.Named("podcast:person") {
		role := cmp.Or(x.Get("role"), "host")
		add("Person", x.Get("href"), x.Text, role)
	}
	for x, inside := range e.Elements.Named("podcast:alternateEnclosure") {
		bits, _ := strconv.ParseFloat(x.Get("bitrate"), 64)
		rate := ""
		if bits > 0 {
			rate = fmt.Sprintf("%.0f kbit/s", bits/1000)
		}
		source := inside.First("podcast:alternateEnclosure/podcast:source").Get("uri")
		add("Alternative", source, x.Get("type"), rate, x.Get("lang"), x.Get("title"))
	}
	for x := range e.Elements.Named("podcast:soundbite") {
		add("Soundbite", "", Clock(seconds(x.Get("startTime"))), x.Text)
	}
	for x := range e.Elements.Named(lektordir.Transcript) {
		add("Transcript", x.Get("url"), x.Get("type"), x.Get("language"))
	}
	for x := range e.Elements.Named(lektordir.Chapters) {
		add("Chapters", x.Get("url"), x.Get("type"))
	}
	for x := range e.Elements.Named("podcast:socialInteract") {
		add("Discussion", x.Get("uri"), x.Get("accountId"))
	}
	for x := range e.Elements.Named("podcast:license") {
		add("License", x.Get("url"), x.Text)
	}
	return list
}

// joined joins the texts that are not empty.
func joined(texts ...string) string {
	var list []string
	for _, t := range texts {
		if t = strings.TrimSpace(t); t != "" {
			list = append(list, t)
		}
	}
	return strings.Join(list, ", ")
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
				StartTime float64
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
		kind, _, _ := strings.Cut(strings.ToLower(x.Get("type")), ";")
		switch kind = strings.TrimSpace(kind); {
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
