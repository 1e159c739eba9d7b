package main

import (
	"fmt"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// rooms are the folders below internal, and the public packages, with those that the packages of each may
// import, except in tests. They may also import packages of their own room.
var rooms = map[string][]string{
	"text":      nil,
	"files":     {"text"},
	"dir":       {"text", "files"},
	"lektordir": {"text", "files", "dir"},
	"feedconv":  {"text"},
	"fromfeed":  {"text", "lektordir", "feedconv"},
	"http":      {"text", "files"},
	"content":   {"text", "lektordir"},
	"protocol":  {"text", "dir", "lektordir", "feedconv", "http"},
	"feeds":     {"text", "files", "dir", "lektordir", "feedconv", "fromfeed", "http", "protocol"},
	"cli":       {"text", "files", "lektordir", "http"},
	"read": {"text", "files", "dir", "lektordir", "feedconv", "fromfeed", "http", "content", "protocol", "feeds",
		"cli"},
	"app": {"text", "files", "dir", "lektordir", "feedconv", "fromfeed", "http", "content", "protocol", "feeds", "cli",
		"read"},
	"testkit": {"text", "files", "dir", "lektordir", "feedconv", "fromfeed", "http", "content", "protocol", "feeds",
		"cli",
		"read", "app"},
	"e2e": {"text", "files", "dir", "lektordir", "feedconv", "fromfeed", "http", "content", "protocol", "feeds", "cli",
		"read", "app", "testkit"},
}

// maxRooms is the maximum number of folders below internal.
const maxRooms = 12

// roomOf returns the room of a package, or "" if it is in none, such as a command.
func roomOf(name string) string {
	if name == "lektordir/fromfeed" {
		return "fromfeed"
	}
	first, rest, _ := strings.Cut(name, "/")
	if first == "internal" {
		first, _, _ = strings.Cut(rest, "/")
	}
	if _, ok := rooms[first]; ok {
		return first
	}
	return ""
}

// mayImport returns the sentence about the imports of a room that the comment of its package must have.
func mayImport(room string) string {
	list := rooms[room]
	switch last := len(list) - 1; last {
	case -1:
		return "It imports no other room."
	case 0:
		return "It may import " + list[0] + "."
	default:
		return "It may import " + strings.Join(list[:last], ", ") + " and " + list[last] + "."
	}
}

// circle returns the rooms of a circle in the table, or nil.
func circle(table map[string][]string) []string {
	var walk func(path []string) []string
	walk = func(path []string) []string {
		for _, to := range table[path[len(path)-1]] {
			if i := slices.Index(path, to); i >= 0 {
				return path[i:]
			}
			if found := walk(append(path, to)); found != nil {
				return found
			}
		}
		return nil
	}
	for room := range table {
		if found := walk([]string{room}); found != nil {
			return found
		}
	}
	return nil
}

// plan returns a line for each folder below internal that is not in the table, or whose doc.go does not have
// the sentence of [mayImport], for a circle, and for too many folders.
func plan(root string) (found []string, err error) {
	folders, err := os.ReadDir(filepath.Join(root, "internal"))
	if len(folders) > maxRooms {
		found = append(found, fmt.Sprintf("internal has %d folders; at most %d may be", len(folders), maxRooms))
	}
	if rooms := circle(rooms); rooms != nil {
		found = append(found, "these rooms import each other: "+strings.Join(rooms, ", "))
	}
	for _, f := range folders {
		if _, ok := rooms[f.Name()]; !ok {
			found = append(found, fmt.Sprintf("internal/%s is not in the table of rooms", f.Name()))
			continue
		}
		page := filepath.Join(root, "internal", f.Name(), "doc.go")
		parsed, err := parser.ParseFile(token.NewFileSet(), page, nil, parser.ParseComments)
		if err != nil {
			return found, err
		}
		text := strings.Join(strings.Fields(parsed.Doc.Text()), " ")
		if sentence := mayImport(f.Name()); !strings.Contains(text, sentence) {
			found = append(found, fmt.Sprintf("%s: the comment must have the sentence %q", page,
				sentence))
		}
	}
	return found, err
}
