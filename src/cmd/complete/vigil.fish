# Completion for fish.
function __vigil_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    set -l program (string replace -r '^~' $HOME -- $words[1])
    set -l lines ($program __complete $words[2..-1] (string unescape -- $current) 2>/dev/null)
    if test "$lines[-1]" = :f
        set -l flag (string match -r -- '^-[^=]*=' $current)
        __fish_complete_path (string replace -r -- '^-[^=]*=' '' $current) | string replace -r -- '^' "$flag"
        return
    end
    test (count $lines) -gt 1; and printf '%s\n' $lines[1..-2]
end
complete -c vigil -f -a '(__vigil_complete)'
