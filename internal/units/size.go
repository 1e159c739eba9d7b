package units

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// ParseSize reads a number of bytes, at least 1: "4096", or with K, M or G behind it
// for as many times 2¹⁰, 2²⁰ or 2³⁰.
func ParseSize(v string) (int64, error) {
	text := strings.TrimSpace(v)
	shift := 0
	if text != "" {
		switch text[len(text)-1] {
		case 'k', 'K':
			shift = 10
		case 'm', 'M':
			shift = 20
		case 'g', 'G':
			shift = 30
		}
	}
	digits := text
	if shift > 0 {
		digits = strings.TrimSpace(text[:len(text)-1])
	}
	n, err := strconv.ParseUint(digits, 10, 63)
	if err != nil || n < 1 || n > math.MaxInt64>>shift {
		return 0, fmt.Errorf("%q is no number of bytes such as 4096, 64K, 256M or 1G", v)
	}
	return int64(n) << shift, nil
}
