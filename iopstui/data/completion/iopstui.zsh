#compdef iopstui
# zsh completion of iopstui: eval "$(iopstui completion zsh)" behind compinit
_iopstui() {
    local reply files=
    local -a plain open
    # _describe takes what stands before a colon for the word
    for reply in ${(f)"$(print -rl -- "${(@)words[2,CURRENT-1]}" "$PREFIX" |
            ${words[1]} completion words 2>/dev/null)"}; do
        if [[ $reply == :files ]]; then
            files=1
        elif [[ ${reply%%$'\t'*} == *[=/] ]]; then
            open+=("${${reply%%$'\t'*}//:/\\:}:${reply#*$'\t'}")
        else
            plain+=("${${reply%%$'\t'*}//:/\\:}:${reply#*$'\t'}")
        fi
    done
    local found=1
    (( $#plain )) && _describe iopstui plain && found=0
    (( $#open )) && _describe iopstui open -S '' && found=0
    [[ -n $files ]] && _files && found=0
    return found
}
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
    _iopstui "$@"
else
    compdef _iopstui iopstui
fi
