package htmltext

import (
	"bytes"
	"cmp"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/html"
)

// maxOpen is the number of elements within each other whose ends are looked for. An element that is
// deeper is not hidden.
const maxOpen = 256

// Shown returns markup as a browser without scripts shows it, and each thing once, for readers that
// have no style sheets. The result is as untrusted as the markup.
//
//   - The src of each image and frame is its true source. If a noscript element beside it has the
//     same image, only one of them stays.
//   - Hidden elements, scripts, styles and comments are left out. An element that is never closed is
//     not hidden, so that a missing tag loses no text. The picture of a formula beside its MathML is
//     left out if it is hidden from screen readers.
//   - MathML has no annotations. Its attribute alttext is the formula in TeX, or else the author's
//     alternative text. Math elements that are never closed do not have this attribute.
func Shown(markup []byte) []byte {
	var s shower
	s.read(markup, false)
	return bytes.Join(s.out, nil)
}

// shower is a run of [Shown]. It works on tokens, as the renderer does, and takes tokens back.
type shower struct {
	out    [][]byte  // the result, a part for each token
	open   []element // open elements whose end counts
	last   thing     // the thing before, if only tags and blanks are between
	images int       // number of images so far
	words  bool      // text was written
	choice string    // the source that the open picture element offers, until it has an image
}

// element is an open element.
type element struct {
	name   string
	at     int    // index of its start tag
	hidden bool   // left out when it ends
	aside  bool   // hidden from screen readers
	tex    string // the attribute alttext or encoding; in the end, the formula
}

// thing is a range of tokens that may have a twin beside it.
type thing struct {
	kind     kind
	from, to int
	source   string // of an image, "" for none
	lazy     bool   // a script sets the source
}

type kind int

const (
	image     kind = iota + 1
	alternate      // a noscript element with one image and no text
	formula
	aside // an element hidden from screen readers
)

// unshown are the elements whose tags are left out. The content of some is shown.
var unshown = map[string]bool{"script": false, "style": false, "iframe": false, "noscript": true, "noembed": true,
	"noframes": true}

// read reads markup. inside reports whether the markup is the content of a noscript element. Then
// it must not change the meaning of the markup after it, whatever it leaves open.
func (s *shower) read(markup []byte, inside bool) {
	z := html.NewTokenizer(bytes.NewReader(markup))
	z.AllowCDATA(true) // text that a publisher escaped twice
	within := ""       // the open element of unshown
	for {
		kind := z.Next()
		token := markup[:min(len(z.Raw()), len(markup))]
		markup = markup[len(token):]
		switch kind {
		case html.ErrorToken:
			return
		case html.TextToken:
			switch {
			case within == "":
				s.text(token)
			case unshown[within]:
				s.noscript(token)
			}
		case html.StartTagToken, html.SelfClosingTagToken, html.EndTagToken:
			t := z.Token()
			within = ""
			if _, block := blocks[t.Data]; block && s.last.kind >= formula {
				s.last = thing{}
			}
			switch _, raw := unshown[t.Data]; {
			case inside && (unshown[t.Data] || slices.Contains([]string{"textarea", "title", "xmp", "plaintext"},
				t.Data)):
				z.NextIsNotRawText() // its tags could hide the text after the noscript element
				continue
			case kind == html.EndTagToken:
				s.end(token, t.Data)
				continue
			case kind == html.SelfClosingTagToken:
				z.NextIsNotRawText()
			case raw:
				within = t.Data
			}
			s.start(token, t)
		}
	}
}

// text writes text.
func (s *shower) text(token []byte) {
	s.out = append(s.out, token)
	if len(bytes.TrimSpace(token)) > 0 {
		s.last, s.words = thing{}, true
	}
}

// noscript writes the content of a noscript element, unless it only repeats the image beside it.
func (s *shower) noscript(content []byte) {
	from, before, open := len(s.out), s.last, s.open
	s.open, s.last, s.images, s.words = nil, thing{}, 0, false
	s.read(content, true)
	this := thing{kind: alternate, from: from, to: len(s.out), source: s.last.source}
	s.open, s.last = open, thing{}
	switch {
	case s.images != 1 || s.words:
	case !before.twin(this, image):
		s.last = this
	case before.source == "":
		clear(s.out[before.from:before.to])
	default:
		s.out = s.out[:from]
	}
}

// twin reports whether a thing is of a kind, and the image of both is the same.
func (t thing) twin(other thing, kind kind) bool {
	return t.kind == kind && (t.lazy || other.lazy || t.source == other.source)
}

// start handles a start tag.
func (s *shower) start(token []byte, t html.Token) {
	e := s.element(t)
	_, raw := unshown[e.name]
	closed := t.Type == html.SelfClosingTagToken
	switch {
	case e.name == "img" || e.name == "iframe":
		s.image(token, t, e)
		return
	case raw || closed && e.hidden:
		return
	case e.name == "picture":
		s.choice = ""
	case e.name == "source":
		// The last source has the format that most programs know. A source of a player has no srcset.
		if src, lazy := source(t.Attr); lazy {
			s.choice = cmp.Or(src, s.choice)
		}
	case e.name == "math":
		if token = []byte("<math>"); s.last.kind == aside {
			clear(s.out[s.last.from:s.last.to])
			s.last = thing{}
		}
	}
	if !closed && len(s.open) < maxOpen && (e.hidden || e.aside || e.name == "math" || s.find(e.name) >= 0) {
		s.open = append(s.open, e)
	}
	s.out = append(s.out, token)
}

// element returns an element that begins now.
func (s *shower) element(t html.Token) element {
	e := element{name: t.Data, at: len(s.out), hidden: t.Data == "template"}
	if strings.HasPrefix(t.Data, "annotation") {
		e.hidden = s.find("math") >= 0
	}
	for _, a := range t.Attr {
		switch a.Key {
		case "hidden":
			e.hidden = e.hidden || a.Val != "until-found"
		case "style":
			e.hidden = e.hidden || strings.Contains(strings.Join(strings.Fields(strings.ToLower(a.Val)), ""),
				"display:none")
		case "aria-hidden":
			e.aside = a.Val == "true"
			e.hidden = e.hidden || e.aside && s.last.kind == formula
		case "alttext", "encoding":
			e.tex = a.Val
		}
	}
	return e
}

// find returns the index of the innermost open element of a name, or -1.
func (s *shower) find(name string) int {
	for i, e := range slices.Backward(s.open) {
		if e.name == name {
			return i
		}
	}
	return -1
}

// end handles an end tag.
func (s *shower) end(token []byte, name string) {
	if name == "picture" && s.choice != "" {
		s.image([]byte("<img>"), html.Token{Data: "img"}, element{})
	}
	var e element
	if i := s.find(name); i >= 0 {
		e, s.open = s.open[i], s.open[:i]
	}
	switch _, raw := unshown[name]; {
	case raw:
		return
	case e.hidden:
		if i := s.find("math"); i >= 0 && name == "annotation" && strings.HasSuffix(strings.ToLower(e.tex), "tex") {
			s.open[i].tex = html.UnescapeString(string(bytes.Join(s.out[e.at+1:], nil)))
		}
		s.out, s.last = s.out[:e.at], thing{}
		return
	case e.name == "math" && e.tex != "":
		s.out[e.at] = []byte(`<math alttext="` + html.EscapeString(e.tex) + `">`)
	}
	s.out = append(s.out, token)
	switch {
	case e.name == "math":
		s.last = thing{kind: formula}
	case e.aside:
		s.last = thing{kind: aside, from: e.at, to: len(s.out)}
	}
}

// image writes an image or a frame with its true source.
func (s *shower) image(token []byte, t html.Token, e element) {
	src, lazy := source(t.Attr)
	src, s.choice = cmp.Or(src, s.choice), ""
	if e.hidden && (!lazy || src == "") {
		return // a lazy image may be hidden until its script runs
	}
	s.images++
	before := s.last
	s.last = thing{image, len(s.out), len(s.out) + 1, src, lazy}
	if before.twin(s.last, alternate) {
		if s.last = (thing{}); src == "" {
			return
		}
		clear(s.out[before.from:before.to])
	}
	if lazy && src != "" {
		token = []byte("<" + t.Data + ` src="` + html.EscapeString(src) + `"` + string(token[1+len(t.Data):]))
	}
	if s.out = append(s.out, token); t.Data == "iframe" {
		s.out[len(s.out)-1] = append(bytes.Clone(token), "</iframe>"...)
	}
}

// source returns the true source of an image, "" if there is only a placeholder. lazy reports whether
// it is not the attribute src. There is no standard for lazy images: their scripts use an attribute
// whose name ends in src or srcset.
func source(attrs []html.Attribute) (src string, lazy bool) {
	const set, plain, late = 1, 2, 3
	best := 0
	for _, a := range attrs {
		rank, v := 0, strings.TrimSpace(a.Val)
		name, isSet := strings.CutSuffix(a.Key, "set")
		if isSet {
			v = largest(v)
		}
		switch {
		case a.Key == "src":
			rank = plain
		case a.Key == "srcset":
			rank = set
		case strings.HasSuffix(name, "-lowsrc"): // a placeholder
		case strings.Contains(name, "-") && strings.HasSuffix(name, "src"), name == "data-original",
			name == "data-lazy":
			rank = late
		}
		if rank > best && !placeholder(v) {
			src, best = v, rank
		}
	}
	return src, best != plain
}

// placeholder reports whether a URL stands for one that a script sets, or is not a URL but a flag.
func placeholder(url string) bool {
	scheme, _, _ := strings.Cut(strings.ToLower(url), ":")
	return !strings.ContainsAny(url, "./") || scheme == "data" || scheme == "about" || strings.ContainsAny(url, "{<")
}

// largest returns the largest candidate of a srcset (HTML, "Parsing a srcset attribute"). A URL may
// have commas in it.
func largest(srcset string) (url string) {
	most := 0.0
	for rest := strings.Join(strings.Fields(srcset), " "); rest != ""; rest = strings.TrimLeft(rest, ", ") {
		candidate, descriptor := "", ""
		if candidate, rest, _ = strings.Cut(rest, " "); !strings.HasSuffix(candidate, ",") {
			descriptor, rest, _ = strings.Cut(rest, ",")
		}
		size, err := strconv.ParseFloat(strings.TrimRight(descriptor, "wx"), 64)
		if err != nil {
			size = 1
		}
		if candidate = strings.TrimRight(candidate, ","); size > most && !placeholder(candidate) {
			url, most = candidate, size
		}
	}
	return url
}
