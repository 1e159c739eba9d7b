package index

import (
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// A query searches for a piece of text, which may be a part of a word, in folded texts
// (query.Fold). The index has the words of these texts, each once for an entry. A word
// is a longest run of letters, marks and numbers. So a piece of letters, marks and numbers alone
// is in a text exactly if it is in one of the text's words, and the vocabulary lists the words that
// have it.
//
// Scripts that do not part words are taken apart into three characters each,
// overlapping. A word longer than longWord characters is, too, into pieces of that
// length, each beginning half of it later.
//
// Diacritics stay: the query language distinguishes é from e, and so must the index.

// longWord is the maximum number of characters of a word. Longer words are split.
const longWord = 32

type class uint8

const (
	between class = iota // no part of a word
	alpha                // letter of a script that separates words
	dense                // letter of a script that does not
)

func classOf(r rune) class {
	switch {
	case r < utf8.RuneSelf:
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' {
			return alpha
		}
		return between
	case !unicode.IsLetter(r) && !unicode.IsMark(r) && !unicode.IsNumber(r):
		return between
	case isDense(r):
		return dense
	}
	return alpha
}

// isDense reports whether a character is in a block of a script without spaces between
// words: from Thai to Tibetan, Burmese, Khmer, and the Chinese and Japanese ones.
func isDense(r rune) bool {
	switch {
	case r < 0x0E00:
		return false
	case r < 0x10A0, r >= 0x1780 && r < 0x1800, r >= 0x2E80 && r < 0x3130, r >= 0x3190 && r < 0xA4D0,
		r >= 0xF900 && r < 0xFB00, r >= 0xFF66 && r < 0xFFA0, r >= 0x1B000 && r < 0x1B170, r >= 0x20000 && r < 0x40000:
		return true
	}
	return false
}

// segment is a run of characters of one class.
type segment struct {
	text  string
	class class
	// start and end report that the run is whole on that side: beside it is a character of
	// another class, or the end of the text.
	start, end bool
}

// segments yields the word characters of a folded text, in runs. If the text is one that is searched for, a run at its
// beginning or end may go on in the text that has it.
func segments(text string, sought bool, yield func(segment)) {
	from, was := 0, between
	end := func(to int) {
		if was != between && from < to {
			yield(segment{text[from:to], was, from > 0 || !sought, to < len(text) || !sought})
		}
	}
	for i, r := range text {
		if c := classOf(r); c != was {
			end(i)
			from, was = i, c
		}
	}
	end(len(text))
}

// pieces yields the words of the index for a segment of a text.
func pieces(s segment, yield func(string)) {
	width, step := longWord, longWord/2
	if s.class == dense {
		width, step = 3, 1
	}
	if len(s.text) <= width || utf8.RuneCountInString(s.text) <= width {
		yield(s.text)
		return
	}
	starts := make([]int, 0, len(s.text)/2)
	for i := range s.text {
		starts = append(starts, i)
	}
	starts = append(starts, len(s.text))
	n := len(starts) - 1
	for at := 0; at+width < n; at += step {
		yield(s.text[starts[at]:starts[at+width]])
	}
	yield(s.text[starts[n-width]:])
}

// pairs is the number of hashes for two frequent words side by side. Without the hashes, a phrase
// would be searched for in every entry that has its words.
const pairs = 1 << 14

// pairMark begins the word for a pair. It is not valid UTF-8, so no text has such a word.
const pairMark = '\xff'

// pairOf is the word for a pair.
func pairOf(a, b string) string {
	h := mix(hash(hash(offset, a)^'\n', b)) % pairs
	return string([]byte{pairMark, 0x80 | byte(h>>7), 0x80 | byte(h&0x7f)})
}

// tokenizer collects the words of an entry, each once.
type tokenizer struct {
	seen   map[string]struct{}
	common map[string]bool // words whose pairs are kept; nil for none
	text   strings.Builder
	words  []string
}

var tokenizers = sync.Pool{New: func() any { return &tokenizer{seen: map[string]struct{}{}} }}

// tokens returns the words of folded texts, and a text of them and of their pairs for the index.
func tokens(common map[string]bool, folded ...string) (words []string, text string) {
	t := tokenizers.Get().(*tokenizer)
	defer tokenizers.Put(t)
	t.common = common
	for _, f := range folded {
		t.add(f)
	}
	for _, w := range t.words {
		t.text.WriteString(w)
		t.text.WriteByte(' ')
	}
	words, text = t.words, t.text.String()
	t.words = nil
	t.text.Reset()
	clear(t.seen)
	return words, text
}

// add adds the words of a folded text.
func (t *tokenizer) add(text string) {
	last := ""
	segments(text, false, func(s segment) {
		pieces(s, func(w string) {
			if t.isNew(w) {
				t.words = append(t.words, w)
			}
		})
		if !t.common[s.text] || s.class != alpha {
			last = ""
			return
		}
		if last != "" {
			if p := pairOf(last, s.text); t.isNew(p) {
				t.text.WriteString(p)
				t.text.WriteByte(' ')
			}
		}
		last = s.text
	})
}

// isNew reports whether a word was not seen before.
func (t *tokenizer) isNew(w string) bool {
	if _, seen := t.seen[w]; seen {
		return false
	}
	t.seen[w] = struct{}{}
	return true
}

// FNV-1a, with an end that spreads it.
const offset uint64 = 14695981039346656037

func hash(h uint64, s string) uint64 {
	for i := 0; i < len(s); i++ {
		h = (h ^ uint64(s[i])) * 1099511628211
	}
	return h
}

func mix(h uint64) uint64 {
	h ^= h >> 33
	h *= 0xff51afd7ed558ccd
	h ^= h >> 33
	h *= 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}
