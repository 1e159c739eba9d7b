# bash completion of lektor's programs. They say themselves what a word may become,
# quoted for its place in the line, so that nothing of it is read as anything else.
# shellcheck shell=bash

_lektor() {
	local candidate
	COMPREPLY=()
	# The program of this name in $PATH, whatever path was typed.
	while IFS= read -r candidate; do
		COMPREPLY+=("$candidate")
	done < <(command "${1##*/}" __complete bash "${COMP_LINE:0:COMP_POINT}" "$COMP_WORDBREAKS" 2>/dev/null)
}

# Where they say nothing, there are files. A space is theirs to say.
complete -o default -o nospace -F _lektor \
	lektor-article lektor-cloudd lektor-ess lektor-fetch lektor-import lektor-pages lektor-serve lektor-share lektor-view
