# bash completion of iopstui: eval "$(iopstui completion bash)"
_iopstui() {
    local line=${COMP_LINE:0:COMP_POINT} word words=() reply keep
    # bash takes words apart at = and : , which stand in options' values
    read -ra words <<<"$line"
    [[ $line == *[[:space:]] ]] && words+=("")
    word=${words[${#words[@]} - 1]}
    keep=${word%"${word##*[=:]}"}
    COMPREPLY=()
    while IFS= read -r reply; do
        case $reply in
            :files) compopt -o filenames 2>/dev/null
                while IFS= read -r reply; do
                    COMPREPLY+=("${reply#"$keep"}")
                done < <(compgen -f -- "$word") ;;
            *) reply=${reply%%$'\t'*}
                [[ $reply == *[=/] ]] && compopt -o nospace 2>/dev/null
                COMPREPLY+=("${reply#"$keep"}") ;;
        esac
    done < <(printf '%s\n' "${words[@]:1}" | "${words[0]}" completion words 2>/dev/null)
}
complete -F _iopstui iopstui
