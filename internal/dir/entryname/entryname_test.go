package entryname

import (
	"strings"
	"testing"
	"time"
)

func TestEscapeHost(t *testing.T) {
	for _, c := range [][2]string{
		{"a/b:c;d", `a\057b\072c\073d`},
		{"host.example", "host.example"},
		{"hé\n", `h\303\251\012`},
		{"", "localhost"},
	} {
		if got := EscapeHost(c[0]); got != c[1] {
			t.Errorf("EscapeHost(%q) = %q, want %q", c[0], got, c[1])
		}
	}
	if n := len(Unique(time.Unix(1<<40, 999999999), 1<<22, 1<<60, strings.Repeat("f", 16), EscapeHost(strings.Repeat(";", 300)))); n > 240 {
		t.Errorf("a unique name may be %d bytes long", n)
	}
}

func TestUniqueName(t *testing.T) {
	name := Unique(time.Unix(1700000000, 123456789), 42, 7, "0123456789abcdef", `a\057b.c`)
	if want := `1700000000.M123456P42Q7I0123456789abcdef.a\057b.c`; name != want {
		t.Fatalf("%s, want %s", name, want)
	}
	if Identity(name) != "0123456789abcdef" {
		t.Error(Identity(name))
	}
	if got := Delivered(name); !got.Equal(time.Unix(1700000000, 123456000)) {
		t.Error(got)
	}
	if u, ok := Split(name); !ok || u.Host != `a\057b.c` {
		t.Error(u, ok)
	}
	for _, foreign := range []string{"1700000000.P42.host", "1700000000.M1P2Q3.host", "1700000000.M1P2Q3I01.host", "1700000000.M1P2Q3Ixyzxyzxyzxyzxyz1.host", "x"} {
		if _, ok := Split(foreign); ok {
			t.Errorf("%s is parsed as lektor's form", foreign)
		}
		if got := Identity(foreign); got != "" {
			t.Errorf("%s has identity %s", foreign, got)
		}
	}
}

func TestCompareUnique(t *testing.T) {
	sorted := []string{
		"999999999.9.h", "1700000000.M5P1Q9I0123456789abcdef.h", "1700000000.M5P1Q10I0123456789abcdef.h",
		"1700000000.M10P1Q1I0123456789abcdef.h", "1700000001.M0P1Q1I0123456789abcdef.h",
	}
	for i := range sorted {
		for j := range sorted {
			got := Compare(sorted[i], sorted[j])
			if (got < 0) != (i < j) || (got > 0) != (i > j) {
				t.Errorf("compare %s %s = %d", sorted[i], sorted[j], got)
			}
		}
	}
}
