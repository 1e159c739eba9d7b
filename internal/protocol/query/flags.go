package query

import (
	"fmt"
	"slices"
)

// flagWords maps words to the flags that they stand for.
var flagWords = map[string]string{"read": "S", "flagged": "F", "trashed": "T", "saved": "d"}

// FlagError is the error of a text that is not flags.
type FlagError struct{ Message, Hint string }

func (e *FlagError) Error() string { return e.Message }

// ParseFlags parses flags: the word for one flag, or letters in ASCII order, each once. It refuses
// other words with a [*FlagError], because their letters would be flags that the user did not mean.
func ParseFlags(text string) (string, error) {
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
