# memlab, completion for bash: of memlab @version@; print it again after an update.
#   memlab completion bash >~/.local/share/bash-completion/completions/memlab

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
  local word=${COMP_WORDS[COMP_CWORD]} at=$COMP_CWORD head='' cur key list
  if [[ $word == '=' ]]; then word=''; head='='; ((at--)); head=${COMP_WORDS[at]}$head
  elif ((at > 1)) && [[ ${COMP_WORDS[at-1]} == '=' ]]; then head=${COMP_WORDS[at-2]}=; fi   # bash cuts words at =
  cur=$head$word
  COMPREPLY=()
  if ((COMP_CWORD == 1)); then
    COMPREPLY=($(compgen -W "@commands@" -- "$cur")); return
  fi
  if [[ $cur == *=* ]]; then
    key=${cur%%=*}; key=${key#+}
    list=$(_memlab_values "$key")
    local value=${cur#*=} before=''
    [[ $value == *,* ]] && before=${value%,*},
    if [[ -n $list ]]; then
      COMPREPLY=($(compgen -P "${cur%%=*}=$before" -W "$list" -- "${value##*,}"))
      COMPREPLY=("${COMPREPLY[@]#"$head"}")
    else
      compopt -o filenames 2>/dev/null
      [[ -n $head ]] && key='' || key=${cur%%=*}=
      while IFS= read -r list; do COMPREPLY+=("$key$list"); done < <(compgen -f -- "$value")
    fi
    return
  fi
  list=$(_memlab_words "${COMP_WORDS[1]}")
  if [[ $list == *'+exp='* && $cur == *.* ]]; then list=$(_memlab_settings "${cur%%.*}"); fi
  COMPREPLY=($(compgen -W "$list" -- "$cur"))
  if [[ ${#COMPREPLY[@]} -gt 0 && ${COMPREPLY[0]} == *[=./] ]]; then compopt -o nospace 2>/dev/null; fi
  if [[ $cur != -* && " @without_files@ " != *" ${COMP_WORDS[1]} "* && ( ${#COMPREPLY[@]} -eq 0 || $list != *'+exp='* ) ]]; then
    compopt -o filenames 2>/dev/null
    while IFS= read -r list; do COMPREPLY+=("$list"); done < <(compgen -f -- "$cur")
  fi
}

complete -F _memlab memlab
