# memlab, completion for bash and zsh: of memlab @version@; print it again after an update.

_memlab() {
  local cur=${COMP_LINE:0:COMP_POINT}
  cur=${cur##* }
  if ((COMP_CWORD == 1)); then
    COMPREPLY=($(compgen -W "@commands@" -- "$cur"))
  elif [[ ${COMP_LINE:0:COMP_POINT} == "memlab import "*"--format $cur" ]]; then
    COMPREPLY=($(compgen -W "@formats@" -- "$cur"))
  elif [[ $cur == *=* ]]; then
    COMPREPLY=($(compgen -W "@choices@" -- "$cur"))
    COMPREPLY=("${COMPREPLY[@]#"${cur%%=*}="}")   # bash cuts words at =
  else
    COMPREPLY=($(compgen -W "@settings@" -- "$cur"))
    if [[ ${#COMPREPLY[@]} -gt 0 ]]; then compopt -o nospace 2>/dev/null; fi
  fi
}

complete -o default -F _memlab memlab
