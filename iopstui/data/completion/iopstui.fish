# fish completion of iopstui: iopstui completion fish | source
function __iopstui_words
    set -l words (commandline -opc) (commandline -ct)
    for reply in (printf '%s\n' $words[2..-1] | $words[1] completion words 2>/dev/null)
        if test "$reply" = :files
            __fish_complete_path (commandline -ct)
        else
            printf '%s\n' $reply
        end
    end
end
complete -c iopstui -f -a '(__iopstui_words)'
