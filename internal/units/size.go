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
	digits, shift := strings.TrimSpace(v), 0
	if last := len(digits) - 1; last >= 0 {
		if i := strings.IndexByte("kmgKMG", digits[last]); i >= 0 {
			digits, shift = strings.TrimSpace(digits[:last]), 10*(1+i%3)
		}
	}
	n, err := strconv.ParseUint(digits, 10, 63)
	if err != nil || n < 1 || n > math.MaxInt64>>shift {
		return 0, fmt.Errorf("%q is no number of bytes such as 4096, 64K, 256M or 1G", v)
	}
	return int64(n) << shift, nil
}
