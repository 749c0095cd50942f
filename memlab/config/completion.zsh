#compdef memlab
# memlab, completion for zsh: of memlab @version@; print it again after an update.
#   memlab completion zsh >"${fpath[1]}/_memlab"

_memlab_words() {   # the words of a command
  case $1 in
@words@
  esac
}

_memlab_values() {   # the values of a slot or a setting
  case $1 in
@values@
  esac
}

_memlab_settings() {   # the settings whose first word is given
  case $1 in
@settings@
  esac
}

_memlab() {
  local cur=$words[CURRENT] list
  if ((CURRENT == 2)); then
    list="@commands@"
    compadd -- ${=list}
  elif [[ $cur == *=* ]]; then
    local key=${cur%%=*}
    list=$(_memlab_values ${key#+})
    compset -P '*='
    if [[ -n $list ]]; then
      compset -P '*,'
      compadd -- ${=list}
    else
      _files
    fi
  else
    list=$(_memlab_words $words[2])
    local takes_settings=${${(M)list:#*+exp=*}:+yes}
    [[ -n $takes_settings && $cur == *.* ]] && list=$(_memlab_settings ${cur%%.*})
    local -a whole open
    whole=(${${=list}:#*[=.]}) open=(${(M)${=list}:#*[=.]})
    compadd -- $whole
    compadd -S '' -- $open
    [[ -z $takes_settings && $cur != -* && " @without_files@ " != *" $words[2] "* ]] && _files
  fi
}

if [[ $funcstack[1] == _memlab ]]; then _memlab "$@"; else compdef _memlab memlab; fi
