// Package rules applies the user's rules to arriving entries: it sets flags and runs commands.
package rules

import (
	"cmp"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"unicode/utf8"

	"github.com/lektordir/lektor/internal/app/viewer/external"
	"github.com/lektordir/lektor/internal/app/viewer/session"
	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/feeds/feedfiles"
	"github.com/lektordir/lektor/internal/files/atomicfile"
	"github.com/lektordir/lektor/internal/protocol/query"
	"github.com/lektordir/lektor/internal/read/entrystore"
	"github.com/lektordir/lektor/internal/text/humanize"
	"github.com/lektordir/lektor/lektordir"
)

// The rules of the user are lines of the file etc/view/rules:
//
//	QUERY -> ACTION, ACTION, …
//
// The manual lists the actions. All rules whose query matches an entry are applied, in the order of
// the file.

// arrows separate a query from the actions. White space must precede an arrow.
var arrows = []string{"->", "→"}

// ruleLine is a line of the file.
type ruleLine struct {
	line  int
	query *query.Query
	// matcher is the query at the time of the run.
	matcher *query.Matcher
	flags   string         // to set
	stop    bool           // do not try the rules below
	run     *external.Argv // nil for none
}

// ruleError is the error of an invalid line.
type ruleError struct {
	line, column int // from 1; column is 0 if unknown
	reason, hint string
}

// Hint returns the hint of the error, "" if it has none.
func (e *ruleError) Hint() string { return e.hint }

func (e *ruleError) Error() string {
	at := fmt.Sprintf("%s, line %d", entrystore.RulesFile, e.line)
	if e.column > 0 {
		at += fmt.Sprintf(", column %d", e.column)
	}
	return at + ": " + e.reason
}

// parse parses the file of rules. It returns the valid rules, and an error for each invalid line.
func parse(text string, parseQuery func(string) (*query.Query, error)) (rules []*ruleLine, bad []error) {
	n := 0
	for line := range strings.Lines(text) {
		n++
		line = strings.TrimRight(line, "\r\n")
		if trimmed := strings.TrimSpace(line); trimmed == "" || strings.HasPrefix(trimmed, "#") {
			continue
		}
		r, err := parseLine(line, parseQuery)
		if err != nil {
			err.line = n
			bad = append(bad, err)
			continue
		}
		r.line = n
		rules = append(rules, r)
	}
	return rules, bad
}

// parseLine parses a line. As a query may have an arrow in quotes, it splits the line at the first
// arrow that follows a valid query.
func parseLine(line string, parseQuery func(string) (*query.Query, error)) (*ruleLine, *ruleError) {
	if !utf8.ValidString(line) {
		return nil, &ruleError{reason: "the line is not UTF-8"}
	}
	var worst *query.Error
	found := false
	for at := range line {
		for _, arrow := range arrows {
			rest, ok := strings.CutPrefix(line[at:], arrow)
			if !ok || at > 0 && !strings.HasSuffix(line[:at], " ") && !strings.HasSuffix(line[:at], "\t") {
				continue
			}
			found = true
			if strings.TrimSpace(line[:at]) == "" {
				return nil, &ruleError{column: column(line, at), reason: "a query is missing before " + arrow,
					hint: "is:unread matches every entry that arrives"}
			}
			q, err := parseQuery(line[:at])
			if err == nil {
				r := &ruleLine{query: q}
				return r, r.actions(line, len(line)-len(rest))
			}
			// The error furthest to the right is the most likely cause.
			if e := (*query.Error)(nil); errors.As(err, &e) &&
				(worst == nil || e.Name == "" && e.Column > worst.Column) {
				worst = e
			}
		}
	}
	switch {
	case worst != nil && worst.Name == "":
		return nil, &ruleError{column: worst.Column, reason: worst.Reason, hint: worst.Hint}
	case worst != nil:
		return nil, &ruleError{reason: worst.Error(), hint: worst.Hint}
	case found:
		return nil, &ruleError{reason: "the part before -> is not a query"}
	}
	return nil, &ruleError{reason: "there is no ->", hint: "a rule is: QUERY -> read, flag F, trash, run CMD ARG"}
}

func column(line string, at int) int { return utf8.RuneCountInString(line[:at]) + 1 }

const actionHint = "actions are read, flag FLAGS, trash, stop, and at the end run CMD ARG"

// actions parses the actions, which begin at byte at of the line.
func (r *ruleLine) actions(line string, at int) *ruleError {
	for {
		at += len(line[at:]) - len(strings.TrimLeft(line[at:], " \t"))
		text, _, more := strings.Cut(line[at:], ",")
		name, value := strings.TrimSpace(text), ""
		if i := strings.IndexAny(name, " \t"); i >= 0 {
			name, value = name[:i], strings.TrimSpace(name[i:])
		}
		fail := func(hint, format string, args ...any) *ruleError {
			return &ruleError{column: column(line, at), reason: fmt.Sprintf(format, args...), hint: hint}
		}
		switch {
		case name == "":
			return fail(actionHint, "an action is missing")
		case name == "run":
			// A comma belongs to the command.
			words, err := cmdline.Words(strings.TrimPrefix(line[at:], "run"))
			if err == nil {
				r.run, err = external.New(words)
			}
			if err != nil {
				return fail("", "run: %v", err)
			}
			return nil
		case name == "flag":
			flags, err := query.ParseFlags(cmp.Or(value, "F"))
			if refused, ok := errors.AsType[*query.FlagError](err); ok {
				return fail(refused.Hint, "flag: %s", refused.Message)
			}
			r.flags += flags
		case value != "":
			return fail(actionHint, "%s takes nothing: %s", name, value)
		case name == "read":
			r.flags += "S"
		case name == "trash":
			r.flags += "T"
		case name == "stop":
			r.stop = true
		default:
			return fail(actionHint, "there is no action %s", name)
		}
		if at += len(text) + 1; !more {
			return nil
		}
	}
}

// read reads the user's rules. If the file does not exist, there are none. If a line is invalid, it
// returns an error, and no rule should be applied, as rules depend on those before them.
func read(d *lektordir.Dir) ([]*ruleLine, error) {
	text, err := atomicfile.Optional(atomicfile.Read(d.Join(entrystore.RulesFile), entrystore.MaxRules))
	if err != nil {
		return nil, err
	}
	rules, bad := parse(string(text), func(text string) (*query.Query, error) {
		return query.ParseWith(text, entrystore.SavedIn(d.Path()))
	})
	for _, r := range rules {
		if r.run != nil {
			if err := feedfiles.TrustedFile(d, strings.Split(entrystore.RulesFile, "/")...); err != nil {
				bad = append(bad, &ruleError{line: r.line, reason: err.Error()})
				break
			}
		}
	}
	return rules, errors.Join(bad...)
}

// check returns the errors of invalid rules, and warns of commands that do not exist.
func check(v *session.Session) error {
	rules, err := read(v.Dir)
	for _, r := range rules {
		if r.run == nil {
			continue
		}
		if _, err := exec.LookPath(r.run.Words()[0]); err != nil {
			v.S.Report.Warn("%v", &ruleError{line: r.line, reason: err.Error()})
		}
	}
	if err == nil {
		v.S.Report.Info("%s in %s", humanize.Count(len(rules), "rule"), v.Dir.Join(entrystore.RulesFile))
	}
	return err
}
