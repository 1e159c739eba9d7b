package htmltext

import (
	"strconv"
	"strings"
)

// listNumber parses the number of an item. It returns other if s is not a number.
func listNumber(s string, other int) int {
	if n, err := strconv.Atoi(s); err == nil && max(n, -n) < 1e6 {
		return n
	}
	return other
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
