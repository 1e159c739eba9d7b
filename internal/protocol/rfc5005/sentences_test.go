package rfc5005

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// sentences holds the sentences of RFC 5005 and of the drafts with MUST or SHOULD that concern a
// reader: its duties, and its reaction to publishers that violate theirs. tests names the tests of
// each.
var sentences = []struct{ text, tests string }{
	// RFC 5005.
	{"any entry not actually in the feed document SHOULD NOT be considered part of that feed", "TestCompleteFeed TestComplete"},
	{"clients SHOULD NOT present paged feeds as coherent or complete, or make assumptions to that effect", "TestPages"},
	{"Paged feed documents MUST have at least one of these link relations present", "TestKinds"},
	{"The set of entries contained in an archive document published at a particular URI SHOULD NOT change over time", "TestPublishersDo"},
	{"the URI for a particular archive document SHOULD NOT change over time", "TestPublishersDo"},
	{`Subscription documents and archive documents MUST have a "prev-archive" link relation, unless there are no preceding archives available`, "TestKinds TestWalk"},
	{`Archive documents SHOULD also have a "next-archive" link relation, unless there are no following archives available`, "TestHistoryRequests"},
	{`Archive documents SHOULD indicate their associated subscription documents using the "current" link relation`, "TestReached TestAddArchive"},
	{"Archive documents SHOULD also contain an fh:archive element in their head sections", "TestReached TestSpecifications"},
	{"Publishers SHOULD construct their feed documents in such a way as to make duplicate removal unambiguous", "TestWalkModel"},
	{"If duplicate entries are found, clients SHOULD consider only the most recently updated entry to be part of the logical feed", "TestChoice TestWalkModel TestTwiceInOneDocument"},
	{"the entry sourced from the most recently updated feed document SHOULD replace all other duplicates of that entry", "TestChoice TestWalkModel"},
	{"Clients SHOULD warn users when they are not able to reconstruct the entire logical feed", "TestHostileArchives TestMissing"},
	// Draft -06.
	{"any entry not actually in the feed document SHOULD NOT be presented as part of that feed", "TestCompleteFeed"},
	{"Paged feed documents MUST have at least one of these link relations present, and SHOULD contain as many as practical and applicable", "TestKinds"},
	{"The set of entries contained in an archive document published at a particular URI MUST NOT change over time", "TestPublishersDo"},
	{"the URI for a particular archive document MUST NOT change over time", "TestPublishersDo"},
	{`Subscription documents and archive documents MUST have a "prev-archive" link relation, unless there are no archives available`, "TestKinds TestWalk"},
	{`Archive documents SHOULD have "next-archive" and "current" link relations`, "TestReached TestHistoryRequests"},
	{"Archive document SHOULD also contain an fh:archive element in their head sections", "TestReached TestSpecifications"},
	{"Clients SHOULD warn users when they are not able to reconstruct the complete, logical feed", "TestHostileArchives TestMissing"},
	// Draft -05; these sentences are not in draft -06.
	{`the value of the "self" link relation, if present, SHOULD be used as the URI of the feed document it occurs in`, "TestPublishersDo TestRecord"},
	{`consumers MUST NOT require their presence to reconstruct a feed's state`, "TestHistoryRequests"},
}

// TestSentences checks that the tests of each sentence exist, and that the list has all
// sentences of the texts.
func TestSentences(t *testing.T) {
	there := map[string]bool{}
	for _, dir := range []string{".", "../../app/fetcher", "../../feeds/history", "../../feeds/subscriptions", "../../feeds/feedstage", "../../../lektordir"} {
		files, err := filepath.Glob(filepath.Join(filepath.FromSlash(dir), "*_test.go"))
		if err != nil || len(files) == 0 {
			t.Fatal(dir, err)
		}
		for _, f := range files {
			text, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range regexp.MustCompile(`(?m)^func (Test\w+)\(`).FindAllStringSubmatch(string(text), -1) {
				there[m[1]] = true
			}
		}
	}
	for _, s := range sentences {
		for name := range strings.FieldsSeq(s.tests) {
			if !there[name] {
				t.Errorf("%s: the test %s does not exist", s.text, name)
			}
		}
	}
	for _, file := range []string{"rfc5005.txt", "feed-history-draft-06.txt"} {
		text, err := os.ReadFile(filepath.Join(filepath.FromSlash("../../../../shared/specs"), file))
		if err != nil {
			if text, err = os.ReadFile(filepath.Join(filepath.FromSlash("../../../../../shared/specs"), file)); err != nil {
				t.Skip("no ../shared/specs")
			}
		}
		for _, s := range strings.Split(flow(string(text)), ". ") {
			if !regexp.MustCompile(`\b(MUST|SHOULD)\b`).MatchString(s) || strings.Contains(s, "key words") {
				continue
			}
			known := false
			for _, k := range sentences {
				known = known || strings.Contains(flow(s), flow(k.text))
			}
			if !known {
				t.Errorf("%s: no test names %q", file, s)
			}
		}
	}
}

// flow joins the lines of a text, without page breaks and hyphens at the ends of lines.
func flow(text string) string {
	var kept []string
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "Nottingham ") && !strings.HasPrefix(line, "RFC 5005 ") && !strings.HasPrefix(line, "Internet-Draft ") {
			kept = append(kept, line)
		}
	}
	return strings.ReplaceAll(strings.Join(strings.Fields(strings.Join(kept, "\n")), " "), "- ", "-")
}
