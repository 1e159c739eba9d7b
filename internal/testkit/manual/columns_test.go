package manual

import (
	"slices"
	"testing"
)

func TestColumnsIn(t *testing.T) {
	const page = `.Ss ls
.Cm title , url ;
or
.Ql id
These are more:
.Bl -tag
.It Cm one , two
text
.It Cm three
.Cm four
.El
.Cm five
.Ss rm
.Cm six
`
	for from, want := range map[string][]string{
		".Ss ls":          {"title", "url", "id", "one", "two", "three", "four", "five"},
		"These are more:": {"one", "two", "three", "four"},
		".It Cm three":    {"four"},
		".Ss mv":          nil,
	} {
		if got := columnsIn("\n"+page, from); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", from, got, want)
		}
	}
}
