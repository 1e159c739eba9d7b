# bash completion of lektor's programs. The programs print the candidates, quoted for their
# place in the line, so that the shell reads each as one word.
# shellcheck shell=bash

_lektor() {
	local candidate
	COMPREPLY=()
	# Run the program of this name in $PATH, whatever path was typed.
	while IFS= read -r candidate; do
		COMPREPLY+=("$candidate")
	done < <(command "${1##*/}" __complete bash "${COMP_LINE:0:COMP_POINT}" "$COMP_WORDBREAKS" 2>/dev/null)
}

# Without candidates, bash completes file names. The programs print the space after a word.
complete -o default -o nospace -F _lektor \
	lektor-article lektor-cloudd lektor-ess lektor-fetch lektor-import lektor-pages lektor-serve lektor-share lektor-view
