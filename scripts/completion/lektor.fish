# fish completion of lektor's programs. The programs print the candidates, and fish quotes
# them.
function __lektor_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    set -l program (string replace -r '.*/' '' -- $words[1])
    # Pass the word without its quotes.
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
