package query

import (
	"fmt"
	"slices"
	"strings"
)

// flagWords maps words to the flags that they stand for.
var flagWords = map[string]string{"read": "S", "flagged": "F", "trashed": "T", "saved": "d"}

// misnomers maps other words for these flags to the right ones. They are refused, since most of
// them also consist of letters of the user's own flags.
var misnomers = map[string]string{
	"seen": "read", "flag": "flagged", "star": "flagged", "starred": "flagged", "marked": "flagged",
	"important": "flagged",
	"trash":     "trashed", "delete": "trashed", "deleted": "trashed", "removed": "trashed", "save": "saved",
	"downloaded": "saved",
}

// FlagError is the error of a text that is not flags.
type FlagError struct{ Message, Hint string }

func (e *FlagError) Error() string { return e.Message }

// ParseFlags parses flags: the word for one flag, or letters in ASCII order, each once. It refuses
// other words with a [*FlagError], because their letters would be flags that the user did not mean.
func ParseFlags(text string) (string, error) {
	if err := misnamed(text); err != nil {
		return "", err
	}
	if flag, ok := flagWords[text]; ok {
		return flag, nil
	}
	letters := []byte(text)
	for _, c := range letters {
		if lower := c | 0x20; lower < 'a' || lower > 'z' {
			return "", &FlagError{fmt.Sprintf("%q names no flags: flags are ASCII letters", text),
				"F flagged, S read, T trashed, a to z your own"}
		}
	}
	slices.Sort(letters)
	if sorted := string(slices.Compact(letters)); sorted != text {
		return "", &FlagError{
			fmt.Sprintf("%q names no flags", text),
			fmt.Sprintf("words are read, flagged, trashed and saved; for the letters in it, write %s", sorted),
		}
	}
	return text, nil
}

// misnamed returns an error if text is a common but wrong word for a flag, else nil.
func misnamed(text string) error {
	lower := strings.ToLower(text)
	word := misnomers[lower]
	if _, ok := flagWords[lower]; ok && lower != text {
		word = lower
	}
	switch {
	case lower == "unread" || lower == "unseen":
		return &FlagError{fmt.Sprintf("%q names no flag", text),
			"an entry without the flag S is unread: clear read, or S"}
	case word != "":
		return &FlagError{fmt.Sprintf("%q names no flag", text), fmt.Sprintf("write %s, or %s", word, flagWords[word])}
	}
	return nil
}
