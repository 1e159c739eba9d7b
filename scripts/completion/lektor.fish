# fish completion of lektor's programs, which say themselves what a word may become.
# fish quotes it.
function __lektor_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    set -l program (string replace -r '.*/' '' -- $words[1])
    # As it would be without its quotes.
    set current (string unescape -- $current; or string replace -ra '[\'"\\\\]' '' -- $current)
    set -l candidates (command $program __complete words $words[2..-1] $current 2>/dev/null)
    if test (count $candidates) -eq 0
        __fish_complete_path $current
        return
    end
    for c in $candidates
        set -l fields (string split \t -- $c)
        printf '%s\t%s\n' $fields[1] $fields[2]
    end
end

for program in lektor-article lektor-cloudd lektor-ess lektor-fetch lektor-import lektor-pages lektor-serve lektor-share lektor-view
    complete -c $program -f -a '(__lektor_complete)'
end
