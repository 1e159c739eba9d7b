package index

import (
	"math"
	"unicode/utf8"

	"github.com/lektordir/lektor/internal/query"
)

// needle is a piece of text that a query looks for, and what the index knows of which
// entries have it. What it says no to has it not; yes it says only where it knows.
type needle struct {
	s *session
	// void tells that the index knows nothing; exact that what it finds has the needle,
	// and not only the words of it.
	void, exact bool
	set         idSet // of what is found
	count       int
}

const (
	// manyWords is how many words of the vocabulary may stand for a piece of one that has
	// others beside it, which say enough.
	manyWords = 64
	// tooManyWords is where to look them up takes longer than to read entries.
	tooManyWords = 20000
)

// manyFound is how many entries are looked for at most, of so many, where only the newest
// are wanted. To find those of a word takes the longer the more have it, and to read the
// newest until enough of them have it the shorter: there both take about the same.
func manyFound(all int64) int { return int(300 * math.Sqrt(float64(all))) }

// needle gives what is known of a folded text.
func (v *View) needle(text string) *needle {
	n := v.needles[text]
	if n == nil {
		if v.postings == nil {
			v.postings = v.s.postings()
		}
		n = &needle{s: v.s}
		v.needles[text] = n
		n.find(v.postings, text, v.limited)
		n.waits(text)
		n.count = n.set.count()
	}
	return n
}

// find looks the words up.
func (n *needle) find(p *postings, text string, limited bool) {
	var list []segment
	segments(text, true, func(s segment) { list = append(list, s) })
	n.void = true
	n.exact = len(list) == 1 && list[0].text == text
	most, limit := manyWords, math.MaxInt
	if len(list) == 1 {
		most = tooManyWords
		if limited {
			limit = manyFound(n.s.next)
		}
	}
	words := make([][]string, len(list))
	for i, s := range list {
		needed, ok := n.segment(s, most)
		if len(needed) == 1 {
			words[i] = needed[0]
		}
		for _, either := range needed {
			if ok {
				ok = n.narrow(p, either, 0, limit)
			}
		}
		n.exact = n.exact && ok // the other words will do
	}
	// Entries that came before the pairs have none.
	if pairs, from := n.neighbours(list, words); !n.void {
		for _, either := range pairs {
			n.narrow(p, either, from, limit)
		}
	}
}

// narrow leaves of what was found what has one of some words, or is before an id; it
// reports false if these are too many to tell.
func (n *needle) narrow(p *postings, either []string, from int64, limit int) bool {
	set, ok := p.any(either, limit)
	switch {
	case !ok:
	case n.void:
		n.set, n.void = set, false
	default:
		n.set.both(set, from)
	}
	return ok
}

// segment gives the words that have a segment in them: of each list one is there. ok is
// false where they are more than most.
func (n *needle) segment(s segment, most int) (needed [][]string, ok bool) {
	count := utf8.RuneCountInString(s.text)
	switch {
	case s.class == dense && count >= 3:
		n.exact = n.exact && count == 3
		pieces(s, func(p string) { needed = append(needed, []string{p}) })
		return needed, true
	case s.class == dense:
		// Beside it are more of the same in the same words.
		s.start, s.end = false, false
	case count > longWord/2:
		// It may be cut apart.
		n.exact, s.end = false, false
		s.text = string([]rune(s.text)[:longWord/2])
	}
	if s.start && s.end {
		return [][]string{{s.text}}, true
	}
	words, ok := n.s.wordsWith(s, most)
	if !ok {
		return nil, false
	}
	return [][]string{words}, true
}

func quoted(w string) string { return `"` + w + `"` }

// neighbours gives words for pairs, of each list of which one has to be there because
// words of the list of segments stand side by side.
// They are known of the entries from an id on.
func (n *needle) neighbours(list []segment, words [][]string) (all [][]string, from int64) {
	if len(list) < 2 {
		return nil, 0
	}
	r, ok := n.s.c.meta("paired")
	if !ok {
		return nil, 0
	}
	from = r.int(0)
	common, _ := n.s.c.meta("common")
	set := wordSet(string(common.blob(0)))
	for i := 1; i < len(list); i++ {
		a, b := words[i-1], words[i]
		if list[i-1].class != alpha || list[i].class != alpha || len(a) == 0 || len(b) == 0 || len(a)*len(b) > manyWords {
			continue
		}
		if utf8.RuneCountInString(list[i-1].text) > longWord/2 || utf8.RuneCountInString(list[i].text) > longWord/2 {
			continue
		}
		var both []string
		known := true
		for _, x := range a {
			for _, y := range b {
				_, first := set[x]
				_, second := set[y]
				known = known && first && second
				both = append(both, pairOf(x, y))
			}
		}
		if known {
			all = append(all, both)
		}
	}
	return all, from
}

// found adds an entry.
func (n *needle) found(id int64) {
	if id < 0 || id >= n.s.next {
		n.s.c.fail(errInconsistent)
		return
	}
	if n.set == nil {
		n.set = make(idSet, n.s.next/64+1)
	}
	n.set.add(id)
}

// has tells of an entry whether it has the needle.
func (n *needle) has(id int64) query.Verdict {
	_, waits := n.s.pending[id]
	switch {
	case n.void && !waits:
		return query.Maybe
	case !n.set.has(id):
		return query.No
	case n.exact || waits:
		return query.Yes
	}
	return query.Maybe
}
