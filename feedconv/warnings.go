package feedconv

import (
	"bytes"
	"fmt"
	"strings"
)

type warnKind uint8

const (
	warnJunk warnKind = iota
	warnUnclosed
	warnStray
	warnCDATA
	warnComment
	warnDepth
	warnAttrs
	warnDecls
	warnNames
	warnNodes
	warnRuns
	warnGrow
	warnAfter
	warnText
	warnCut
	warnBase64
	warnEntries
	warnExtDepth
	warnExtSize
	warnNested
	numWarnings
)

var warnTexts = [numWarnings]string{
	warnJunk:     "what stands before the feed was skipped",
	warnUnclosed: "<%s> is not closed",
	warnStray:    "an end tag </%s> of nothing open was dropped",
	warnCDATA:    "a CDATA section in <%s> is not closed",
	warnComment:  "a comment is not closed",
	warnDepth:    fmt.Sprintf("elements that are more than %d deep were dropped, <%%s> the first", maxDepth-2),
	warnAttrs:    fmt.Sprintf("<%%s> has more than %d attributes; the rest was dropped", maxAttrs),
	warnDecls:    fmt.Sprintf("more than %d namespace declarations are in scope, or the document has more than %d namespaces, or one whose name is longer than %d bytes; what is in these was not read", maxDeclarations, maxNamespaces, maxURILen),
	warnNames:    fmt.Sprintf("there are more than %d different element names, or one is longer than %d bytes; the rest was dropped", maxNames, maxNameLen),
	warnNodes:    fmt.Sprintf("there are more than %d elements and attributes; the rest was dropped", maxNodes),
	warnRuns:     fmt.Sprintf("of the text between the children of <%%s> more than %d pieces were dropped", maxTextRuns),
	warnGrow:     "too many relative references under a long base; the rest was left relative",
	warnAfter:    "the document goes on after its end",
	warnText:     "a < that starts no tag was read as text",
	warnCut:      "the document ends inside <%s>",
	warnBase64:   "the base64 text of <%s> could not be decoded as text",
	warnEntries:  "there are more than %s entries; the rest was left out",
	warnExtDepth: fmt.Sprintf("an extension is more than %d elements deep at <%%s>; it was left out", maxExtensionDepth),
	warnExtSize:  fmt.Sprintf("the extensions of an entry or feed are more than %d elements or %d bytes at <%%s>; what passes that was left out", maxExtensions, maxExtensionBytes),
	warnNested:   "a <%s> inside of another was not taken for one",
}

// once tells kinds that are not repeated.
func (k warnKind) once() bool {
	switch k {
	case warnDepth, warnDecls, warnNames, warnNodes, warnGrow, warnAfter, warnEntries, warnJunk:
		return true
	}
	return false
}

// limit tells whether a limit left something out, and names the option that
// raises it if there is one.
func (k warnKind) limit() (option string, ok bool) {
	switch k {
	case warnEntries, warnNodes:
		return "MaxEntries", true
	case warnDepth, warnAttrs, warnDecls, warnNames, warnRuns, warnExtDepth, warnExtSize:
		return "", true
	}
	return "", false
}

// warnings collects what was mended, and where.
type warnings struct {
	doc     []byte // of which the lines are counted
	warned  [numWarnings]int
	list    []Warning
	linePos int
	line    int
	mute    bool
	lost    string // the first warning of what a limit left out
}

// warn notes what was mended at pos. Lines are counted only here.
func (w *warnings) warn(k warnKind, pos int, name []byte) {
	if w.mute {
		return
	}
	w.warned[k]++
	n := w.warned[k]
	if n > maxSameWarning || n > 1 && k.once() {
		return
	}
	text := warnTexts[k]
	if strings.Contains(text, "%s") {
		if len(name) > 60 {
			name = name[:60]
		}
		text = fmt.Sprintf(text, bytes.ToValidUTF8(name, nil))
	}
	option, limit := k.limit()
	if limit && w.lost == "" {
		w.lost = text
	}
	w.list = append(w.list, Warning{Line: w.lineAt(pos), Text: text, Limit: option})
}

// lineAt counts on from the last place it was asked for.
func (w *warnings) lineAt(pos int) int {
	if pos < w.linePos {
		return w.line - bytes.Count(w.doc[pos:w.linePos], []byte("\n"))
	}
	w.line += bytes.Count(w.doc[w.linePos:pos], []byte("\n"))
	w.linePos = pos
	return w.line
}

// all gives the warnings, those that were too many of a kind as one.
func (w *warnings) all() []Warning {
	for k, n := range w.warned {
		if more := n - maxSameWarning; more > 0 && !warnKind(k).once() {
			w.list = append(w.list, Warning{Text: fmt.Sprintf(
				"and %d more like: %s", more, strings.ReplaceAll(warnTexts[k], "%s", "…"))})
		}
	}
	return w.list
}
