#compdef vigil
# Completion for zsh.
_vigil() {
    local line name help
    local -a lines names shown open open_shown
    lines=("${(@f)$("${(Q)words[1]/#\~/$HOME}" __complete "${(@Q)words[2,CURRENT]}" 2>/dev/null)}")
    if [[ $lines[-1] = :f ]]; then
        compset -P '*='
        _files
        return
    fi
    for line in "${(@)lines[1,-2]}"; do
        name=${line%%$'\t'*}
        help=${line#$name}
        if [[ $name = */ || $name = *= ]]; then
            open+=("$name")
        else
            names+=("$name")
            shown+=("$name${help:+  -- ${help#$'\t'}}")
        fi
    done
    (( $#open )) && compadd -S '' -a open
    (( $#names )) && compadd -l -d shown -a names
}
if [ "$funcstack[1]" = _vigil ]; then
    _vigil "$@"
else
    compdef _vigil vigil
fi
