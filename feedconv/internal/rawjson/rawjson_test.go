package rawjson

import (
	"reflect"
	"testing"
)

func TestJSONStrings(t *testing.T) {
	for in, want := range map[string]string{
		`""`: "", `"a"`: "a", `"a\"b\\c\/d"`: `a"b\c/d`, `"\n\t\r\n\b\f|"`: "\n\t\n  |", `"\u00e9"`: "é", `"\u00E9"`: "é",
		`"\ud83c\udf4f"`: "🍏", `"\ud83cx"`: "\uFFFDx", `"\udf4f"`: "\uFFFD", `"\ud83c\u0041"`: "\uFFFDA", `"\u12"`: "\uFFFD12",
		`"\u0000\u0008x"`: "x", `"\x"`: "x", "\"raw\nline\x01end\"": "raw\nlineend", `"é"`: "é", "\"\xff\"": "\uFFFD",
		`"cut`: "cut", `"cut\`: "cut\uFFFD", `12`: "", `{}`: "", ``: "",
	} {
		if got := Value(in).Str(); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

func TestJSONScalars(t *testing.T) {
	for in, want := range map[string]string{
		`"a"`: "a", `12`: "12", `-1.5e300`: "-1.5e300", `12345678901234567890123`: "12345678901234567890123",
		`true`: "", `null`: "", `[1]`: "", `{"a": 1}`: "", ``: "",
	} {
		if got := Value(in).Scalar(); got != want {
			t.Errorf("%s: got %q, want %q", in, got, want)
		}
	}
	for in, want := range map[string]bool{`true`: true, `"true"`: true, `1`: true, `"yes"`: true, `false`: false, `null`: false, `"no"`: false, `{}`: false, ``: false} {
		if got := Value(in).IsTrue(); got != want {
			t.Errorf("%s: got %t", in, got)
		}
	}
}

func TestJSONFields(t *testing.T) {
	for in, want := range map[string][]string{
		`{}`: nil, `{"a": 1, "b": [2, {"c": 3}], "d": "}"}`: {"a=1", `b=[2, {"c": 3}]`, `d="}"`},
		`{"a":1,"a":2}`:            {"a=1", "a=2"},
		`{"a": {"b": "]}\""}, }`:   {`a={"b": "]}\""}`},
		`{"a" 1, "b": 2}`:          {"b=2"},
		`{"a": , "b": 2}`:          {"b=2"},
		`{a: 1, "b": 2}`:           {"b=2"},
		`{"a": 1, "b": "cut`:       {"a=1"},
		`{"a": 1, "b": 12`:         {"a=1"},
		`{"a": 1, "b": [1, 2`:      {"a=1", "b=[1, 2"},
		`{"a": 1, "b": {"c": [1,`:  {"a=1", `b={"c": [1,`},
		`{"a": 1, "b`:              {"a=1"},
		`{"a": 1, "b"`:             {"a=1"},
		`{"a": 1, "b":`:            {"a=1"},
		`[{"a": 1}]`:               nil,
		`"a"`:                      nil,
		`{"a": 1}, {"b": 2}`:       {"a=1"},
		`{"\u0061": 1, "": null }`: {"a=1", "=null"},
	} {
		var got []string
		Value(in).Fields(func(name string, v Value) bool {
			got = append(got, name+"="+string(v))
			return true
		})
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %q, want %q", in, got, want)
		}
	}
}

func TestJSONElements(t *testing.T) {
	for in, want := range map[string][]string{
		`[]`: nil, `[1, "a", [2], {"b": 3}, null]`: {"1", `"a"`, "[2]", `{"b": 3}`, "null"}, `[1,,2,]`: {"1", "2"},
		`[1 2]`: {"1", "2"}, `[1, [2`: {"1"}, `[1, "cut`: {"1"}, `["a]", 1]`: {`"a]"`, "1"}, `[1, 2`: {"1"},
		`"one"`: {`"one"`}, `{"a": 1}`: {`{"a": 1}`}, `null`: nil, ``: nil,
	} {
		var got []string
		Value(in).Each(func(v Value) bool {
			got = append(got, string(v))
			return true
		})
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %q, want %q", in, got, want)
		}
	}
}

func TestJSONGet(t *testing.T) {
	v := Value(`{"b": 1, "a": null, "c": 2, "a": 3}`)
	for want, names := range map[string][]string{"1": {"b"}, "3": {"a", "b"}, "2": {"x", "c"}, "": {"x", "y"}} {
		if got := string(v.Object().Get(names...)); got != want {
			t.Errorf("%v: got %q, want %q", names, got, want)
		}
	}
}
