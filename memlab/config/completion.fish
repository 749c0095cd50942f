# memlab, completion for fish: of memlab @version@; print it again after an update.
#   memlab completion fish >~/.config/fish/completions/memlab.fish

function __memlab_words   # the words of a command
    switch $argv[1]
@words@
    end
end

function __memlab_values   # the values of a slot or a setting
    switch $argv[1]
@values@
    end
end

function __memlab_settings   # the settings whose first word is given
    switch $argv[1]
@settings@
    end
end

function __memlab
    set -l words (commandline -opc)
    set -l cur (commandline -ct)
    if test (count $words) -lt 2
        string split ' ' -- "@commands@"
        return
    end
    if string match -q '*=*' -- $cur
        set -l parts (string split -m 1 = -- $cur)
        set -l list (__memlab_values (string replace -r '^\+' '' -- $parts[1]))
        set -l before (string match -r '.*,' -- $parts[2]; or echo '')
        if test -n "$list"
            printf '%s\n' $parts[1]=$before(string split ' ' -- $list)
        else
            printf '%s\n' $parts[1]=(__fish_complete_path $parts[2])
        end
        return
    end
    set -l list (__memlab_words $words[2])
    if string match -q '*+exp=*' -- $list; and string match -q '*.*' -- $cur
        set list (__memlab_settings (string split -m 1 . -- $cur)[1])
    end
    string split ' ' -- $list
    if not contains $words[2] @without_files@; and not string match -q '*+exp=*' -- $list; and not string match -q -- '-*' $cur
        __fish_complete_path $cur
    end
end

complete -c memlab -f -a '(__memlab)'
