package save

import (
	"crypto"
	_ "crypto/sha256" // for integrity
	_ "crypto/sha512"
	"encoding/base64"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/lektordir/lektor/internal/protocol/query"
	"github.com/lektordir/lektor/internal/read/entrystore"
	"github.com/lektordir/lektor/internal/text/feedurl"
	"github.com/lektordir/lektor/lektordir"
)

// alternative is the name of the element of another form of an enclosure.
const alternative = "podcast:alternateEnclosure"

// file is a file of an entry.
type file struct {
	lektordir.Enclosure
	integrity string // digests in the form of subresource integrity, "" if there are none
	ext       string // file name extension; "" for that of the URL or the type
	beside    bool   // it only belongs to an enclosure
}

// files returns the files of an entry to save, each URL once: enclosures, and what belongs to them.
func (d *saver) files(r *entrystore.Record) []file {
	list := d.enclosures(r)
	if len(list) == 0 {
		return nil
	}
	for _, f := range beside(r) {
		list = add(list, f)
	}
	return list
}

// add appends a file, unless its URL is no http or https, or is in the list.
func add(list []file, f file) []file {
	if !feedurl.IsHTTP(f.URL) || slices.ContainsFunc(list, func(o file) bool { return o.URL == f.URL }) {
		return list
	}
	return append(list, f)
}

// enclosures returns the enclosures of an entry to save, each URL once. With a language or a bit rate,
// or if no enclosure has the type, it is the alternative that fits best. A broadcast that has not ended
// has none: its stream is endless.
func (d *saver) enclosures(r *entrystore.Record) []file {
	e := r.Get(lektordir.FieldEnclosures | lektordir.FieldElements)
	if status := e.Elements.Live().Get("status"); status != "" && status != "ended" {
		return nil
	}
	integrity := map[string]string{}
	var best file
	rate := 0
	for x, inside := range e.Elements.Named(alternative) {
		sums := ""
		for i := range inside.Named(x.Name + "/podcast:integrity") {
			if i.Get("type") == "sri" {
				sums = i.Get("value")
			}
		}
		url := ""
		for source := range inside.Named(x.Name + "/podcast:source") {
			if uri := source.Get("uri"); url == "" && feedurl.IsHTTP(uri) && !feedurl.IsVideo(uri) {
				url, integrity[uri] = uri, sums
			}
		}
		f := file{Enclosure: lektordir.Enclosure{URL: url, Type: x.Get("type"), Length: -1}, integrity: sums}
		bits, _ := strconv.ParseFloat(x.Get("bitrate"), 64)
		spoken := strings.HasPrefix(strings.ToLower(x.Get("lang")), strings.ToLower(d.o.Lang))
		if url != "" && spoken && d.o.matches(f) && (best.URL == "" || d.o.prefers(int(bits), rate)) {
			best, rate = f, int(bits)
		}
	}
	var list []file
	for _, enc := range e.Enclosures {
		if f := (file{Enclosure: enc, integrity: integrity[enc.URL]}); d.o.matches(f) {
			list = add(list, f)
		}
	}
	if best.URL != "" && (len(list) == 0 || d.o.Lang != "" || d.o.Bitrate > 0) {
		return []file{best}
	}
	return list
}

// matches reports whether a file has the type.
func (o *Options) matches(f file) bool {
	return strings.HasPrefix(query.EnclosureType(f.Enclosure), o.Type)
}

// prefers reports whether one bit rate fits better than another: the greatest within the limit, or else the
// smallest.
func (o *Options) prefers(one, other int) bool {
	if limit := o.Bitrate * 1000; one <= limit && other <= limit {
		return one > other
	}
	return o.Bitrate > 0 && one < other
}

// beside returns the transcripts and lists of chapters of an entry.
func beside(r *entrystore.Record) (list []file) {
	for _, kind := range []struct{ name, ext string }{
		{lektordir.Transcript, ""}, {lektordir.Chapters, ".chapters.json"},
	} {
		for x := range r.Get(lektordir.FieldElements).Elements.Named(kind.name) {
			f := file{lektordir.Enclosure{URL: x.Get("url"), Type: x.Get("type"), Length: -1}, "", kind.ext, true}
			if lang := x.Get("language"); kind.ext == "" && lang != "" {
				f.ext = "." + fileName(lang, extension(f.Enclosure), 40)
			}
			list = append(list, f)
		}
	}
	return list
}

// integrityError is the error for a file that is not the one of the feed.
type integrityError struct{ url string }

func (e *integrityError) Error() string {
	return feedurl.Brief(e.url) + ": the file was not saved, as it has another digest than the feed says"
}

// check returns an error if a file has none of the digests that the feed has for the strongest algorithm.
func (f *file) check(part *os.File) error {
	sums := " " + strings.Join(strings.Fields(f.integrity), " ") + " "
	for _, h := range []struct {
		name string
		hash crypto.Hash
	}{{"sha512-", crypto.SHA512}, {"sha384-", crypto.SHA384}, {"sha256-", crypto.SHA256}} {
		if !strings.Contains(sums, " "+h.name) {
			continue
		}
		if _, err := part.Seek(0, io.SeekStart); err != nil {
			return err
		}
		w := h.hash.New()
		if _, err := io.Copy(w, part); err != nil {
			return err
		}
		sum := h.name + base64.StdEncoding.EncodeToString(w.Sum(nil))
		if !strings.Contains(sums, " "+sum+" ") && !strings.Contains(sums, " "+sum+"?") {
			return &integrityError{f.URL}
		}
		return nil
	}
	return nil
}
