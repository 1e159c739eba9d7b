package feeddir

import (
	"slices"
	"strings"
)

// InCategory tells whether a category, a path of folders, is one of a feed's, or
// above one, in capitals or not. Every feed is in "".
func InCategory(categories []string, category string) bool {
	return category == "" || slices.ContainsFunc(categories, func(c string) bool {
		return strings.EqualFold(c, category) || len(c) > len(category) && c[len(category)] == '/' && strings.EqualFold(c[:len(category)], category)
	})
}
