package tidy

import (
	"bytes"
	"fmt"
	"strings"
	"sync"

	"github.com/lektordir/lektor/internal/text/scan"
)

// Warning describes a fault that was corrected in a document, or a part that was left out. Line
// counts from 1; 0 means that the place is unknown. Limit is "MaxEntries" if this limit left
// something out, else "".
type Warning struct {
	Line  int
	Text  string
	Limit string
}

// warnKind is a kind of warnings, first those of [scan.Defect].
type warnKind uint8

const (
	warnText    = warnKind(scan.StrayText)
	warnComment = warnKind(scan.OpenComment)
	warnCDATA   = warnKind(scan.OpenCDATA)
	warnAttrs   = warnKind(scan.ManyAttributes)
)

const (
	warnJunk = warnKind(scan.Defects) + iota
	warnUnclosed
	warnStray
	warnDepth
	warnDecls
	warnNames
	warnNodes
	warnGrow
	warnAfter
	warnCut
	warnBase64
	warnEntries
	warnExtDepth
	warnExtSize
	warnNested
	numWarnings
)

// TooManyReferences is the warning that the budget for resolving URLs is used up.
const TooManyReferences = "too many relative references under a long base; the rest was left relative"

// warnRule is the text and the rules of a kind of warning.
type warnRule struct {
	text   string // with %s for a name
	once   bool   // not repeated
	limit  bool   // a limit left something out
	option string // the one that raises the limit, if there is one
}

var warnRules = sync.OnceValue(func() *[numWarnings]warnRule {
	say := fmt.Sprintf
	return &[numWarnings]warnRule{
		warnJunk:     {text: "content before the feed was skipped", once: true},
		warnUnclosed: {text: "<%s> is not closed"},
		warnStray:    {text: "an end tag </%s> of nothing open was dropped"},
		warnCDATA:    {text: "a CDATA section in <%s> is not closed"},
		warnComment:  {text: "a comment is not closed"},
		warnDepth: {text: say("elements that are more than %d deep were dropped, <%%s> the first", MaxDepth-2),
			once: true, limit: true},
		warnAttrs: {text: say("<%%s> has more than %d attributes; the rest was dropped", scan.MaxAttrs),
			limit: true},
		warnDecls: {text: say("more than %d namespace declarations are in scope, or the document has more than %d namespaces, or one whose name is longer than %d bytes; what is in these was not read", maxDeclarations, maxNamespaces, maxURILen), once: true, limit: true},
		warnNames: {text: say("there are more than %d different element names, or one is longer than %d bytes; the rest was dropped", maxNames, maxNameLen), once: true, limit: true},
		warnNodes: {text: say("there are more than %d elements and attributes; the rest was dropped", maxNodes),
			once: true, limit: true, option: "MaxEntries"},
		warnGrow:   {text: TooManyReferences, once: true},
		warnAfter:  {text: "the document goes on after its end", once: true},
		warnText:   {text: "a < that starts no tag was read as text"},
		warnCut:    {text: "the document ends inside <%s>"},
		warnBase64: {text: "the base64 text of <%s> could not be decoded as text"},
		warnEntries: {text: "there are more than %s entries; the rest was left out", once: true, limit: true,
			option: "MaxEntries"},
		warnExtDepth: {text: say("an extension is more than %d elements deep at <%%s>; it was left out",
			MaxExtensionDepth), limit: true},
		warnExtSize: {text: say("the extensions of an entry or feed are more than %d elements or %d bytes at <%%s>; what passes that was left out", MaxExtensions, maxExtensionBytes), limit: true},
		warnNested:  {text: "a <%s> inside of another was not taken for one"},
	}
})

// warnings collects the warnings and their positions.
type warnings struct {
	doc     []byte // the document whose lines are counted
	warned  [numWarnings]int
	list    []Warning
	linePos int
	line    int
	lost    string // the first warning of what a limit left out
}

// warn adds a warning about pos. Lines are counted only here.
func (w *warnings) warn(k warnKind, pos int, name []byte) {
	w.warned[k]++
	n := w.warned[k]
	rule := warnRules()[k]
	if n > maxSameWarning || n > 1 && rule.once {
		return
	}
	text := rule.text
	if strings.Contains(text, "%s") {
		if len(name) > 60 {
			name = name[:60]
		}
		text = fmt.Sprintf(text, bytes.ToValidUTF8(name, nil))
	}
	if rule.limit && w.lost == "" {
		w.lost = text
	}
	w.list = append(w.list, Warning{Line: w.lineAt(pos), Text: text, Limit: rule.option})
}

// lineAt returns the line of pos. It counts on from the position of the last call.
func (w *warnings) lineAt(pos int) int {
	if pos < w.linePos {
		return w.line - bytes.Count(w.doc[pos:w.linePos], []byte("\n"))
	}
	w.line += bytes.Count(w.doc[w.linePos:pos], []byte("\n"))
	w.linePos = pos
	return w.line
}

// all returns the warnings. For each kind, those beyond the limit become one.
func (w *warnings) all() []Warning {
	for k, n := range w.warned {
		rule := warnRules()[k]
		if more := n - maxSameWarning; more > 0 && !rule.once {
			w.list = append(w.list, Warning{Text: fmt.Sprintf(
				"and %d more like: %s", more, strings.ReplaceAll(rule.text, "%s", "…"))})
		}
	}
	return w.list
}
