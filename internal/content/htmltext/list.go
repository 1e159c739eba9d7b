package htmltext

import (
	"bytes"
	"strconv"
	"strings"

	"golang.org/x/net/html"
)

// Limits for lists that count down, whose items are counted to find the first number: the number
// of lists, and the bytes of each.
const (
	maxReversed      = 20
	maxReversedBytes = 64 << 10
)

// listFrame returns the frame of a list (HTML, "The ol element").
func (r *renderer) listFrame(t startTag) frame {
	f := frame{tag: t.name, count: 1, step: 1, style: t.attrs["type"]}
	if _, reversed := t.attrs["reversed"]; reversed {
		f.step = -1
		if r.reversed < maxReversed {
			r.reversed++
			f.count = countItems(t.rest[:min(len(t.rest), maxReversedBytes)])
		}
	}
	f.count = listNumber(t.attrs["start"], f.count)
	return f
}

// listNumber parses the number of an item. It returns other if s is not a number.
func listNumber(s string, other int) int {
	if n, err := strconv.Atoi(s); err == nil && abs(n) < 1e6 {
		return n
	}
	return other
}

// countItems returns the number of items of a list, from the markup after its start tag.
func countItems(markup []byte) int {
	z := html.NewTokenizer(bytes.NewReader(markup))
	depth, items := 0, 0
	for {
		token := z.Next()
		if token == html.ErrorToken {
			return items
		}
		name, _ := z.TagName()
		switch list := string(name) == "ol" || string(name) == "ul"; {
		case list && token == html.StartTagToken:
			depth++
		case list && token == html.EndTagToken:
			if depth--; depth < 0 {
				return items
			}
		case token == html.StartTagToken && depth == 0 && string(name) == "li":
			items++
		}
	}
}

// ordinal returns the number of an item in the style of its list: a, A, i or I. Numbers without
// such a form are digits.
func ordinal(n int, style string) string {
	s := ""
	switch strings.ToLower(style) {
	case "a":
		for ; n > 0; n = (n - 1) / 26 {
			s = string(rune('a'+(n-1)%26)) + s
		}
	case "i":
		s = roman(n)
	}
	switch {
	case s == "":
		return strconv.Itoa(n)
	case style == "A" || style == "I":
		return strings.ToUpper(s)
	}
	return s
}

// roman returns the Roman numeral of a number from 1 to 3999, "" for others.
func roman(n int) string {
	if n < 1 || n > 3999 {
		return ""
	}
	var b strings.Builder
	for i, value := range []int{1000, 900, 500, 400, 100, 90, 50, 40, 10, 9, 5, 4, 1} {
		for ; n >= value; n -= value {
			b.WriteString([]string{"m", "cm", "d", "cd", "c", "xc", "l", "xl", "x", "ix", "v", "iv", "i"}[i])
		}
	}
	return b.String()
}
