# Completion for bash.
_vigil() {
    # Bash separates words at ":" and "=" as well; what has no space before it belongs to the word.
    local i word rest=$COMP_LINE words=()
    for ((i = 0; i <= COMP_CWORD; i++)); do
        word=${COMP_WORDS[i]}
        if ((i > 0)) && [[ $rest != [[:space:]]* ]]; then
            words[-1]+=$word
        else
            words+=("$word")
        fi
        rest=${rest#"${rest%%[![:space:]]*}"}
        rest=${rest#"$word"}
    done
    local current=${words[-1]} quote=
    case $current in [\"\']*) quote=${current:0:1} current=${current:1} ;; esac
    words[-1]=${current//\\/}
    local lines kept=${words[-1]%"${2//[\\\"\']/}"}
    mapfile -t lines < <("${words[0]/#\~/$HOME}" __complete "${words[@]:1}" 2>/dev/null)
    COMPREPLY=()
    ((${#lines[@]})) || return
    if [[ ${lines[-1]} = :f ]]; then
        compopt -o filenames
        mapfile -t COMPREPLY < <(compgen -f -- "$2")
        return
    fi
    for word in "${lines[@]:0:${#lines[@]}-1}"; do
        word=${word%%$'\t'*}
        word=${word#"$kept"}
        [[ $quote ]] || printf -v word %q "$word"
        COMPREPLY+=("$word")
    done
    [[ ${COMPREPLY[0]} != *[/=] ]] || compopt -o nospace
}
complete -F _vigil vigil
