package save

import (
	"net/url"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/lektordir/lektor/internal/protocol/query"
	"github.com/lektordir/lektor/internal/text/termsafe"
	"github.com/lektordir/lektor/lektordir"
)

// maxFileName is the maximum length of a file name in bytes.
const maxFileName = 255

// fileName makes a file name of at most limit bytes from untrusted text and a suffix. It replaces
// path separators and characters that are special to a system or a shell, and removes
// control characters and leading dots, minus signs and tildes. The suffix is never cut off.
func fileName(text, suffix string, limit int) string {
	text = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case !unicode.IsGraphic(r) && r != '\u200d', r == utf8.RuneError:
			return -1
		case strings.ContainsRune(`/\:|`, r):
			return '-'
		case strings.ContainsRune(`<>"?*`, r):
			return '_'
		}
		return r
	}, termsafe.Line(strings.ToValidUTF8(text, "")))
	text = strings.Join(strings.Fields(text), " ")
	text = strings.TrimLeft(text, ".-~ ")
	if limit -= len(suffix); len(text) > limit {
		text = strings.ToValidUTF8(text[:limit], "")
	}
	// Some systems drop trailing dots and spaces.
	text = strings.TrimRight(text, ". ")
	if text == "" {
		text = "_"
	}
	return text + suffix
}

// extension returns the file name extension of an enclosure: that of its URL, else the usual one
// of its type, else "".
func extension(e lektordir.Enclosure) string {
	if u, err := url.Parse(e.URL); err == nil {
		ext := strings.ToLower(path.Ext(u.Path))
		if len(ext) > 1 && len(ext) <= 9 && strings.Trim(ext[1:], "abcdefghijklmnopqrstuvwxyz0123456789") == "" {
			return ext
		}
	}
	typ, _, _ := strings.Cut(query.EnclosureType(e), ";")
	for _, usual := range [][]string{
		{".mp3", "audio/mpeg", "audio/mp3"},
		{".m4a", "audio/mp4", "audio/x-m4a", "audio/aac"},
		{".ogg", "audio/ogg", "audio/vorbis"},
		{".opus", "audio/opus"},
		{".flac", "audio/flac", "audio/x-flac"},
		{".mp4", "video/mp4", "video/x-m4v"},
		{".webm", "video/webm"},
		{".pdf", "application/pdf"},
		{".epub", "application/epub+zip"},
		{".jpg", "image/jpeg"},
		{".png", "image/png"},
		{".vtt", "text/vtt"},
		{".srt", "application/srt", "application/x-subrip"},
		{".html", "text/html"},
		{".txt", "text/plain"},
		{".json", "application/json"},
	} {
		if slices.Contains(usual[1:], strings.TrimSpace(typ)) {
			return usual[0]
		}
	}
	return ""
}
